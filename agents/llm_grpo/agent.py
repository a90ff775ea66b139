"""The agent of a trained policy, under the name of the room that trains it.

It lives in agents/local, since the registry builds agents of checkpoints and this room imports the registry.
"""

from agents.local.policy_agent import PolicyAgent

__all__ = ["PolicyAgent"]
