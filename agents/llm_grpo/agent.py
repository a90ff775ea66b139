"""The agent of a trained policy, importable from the package that trains it.

It is defined in agents/local, because the registry imports it and this package imports the registry.
"""

from agents.local.policy_agent import PolicyAgent

__all__ = ["PolicyAgent"]
