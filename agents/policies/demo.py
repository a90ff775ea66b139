"""The two packaged policies as agents, with the options of a checkpoint (agents/local/policy_agent.py)."""

from agents.local.policy_agent import PolicyAgent


class DemoSft(PolicyAgent):
    """A tiny policy of the demo shop: SFT without past rationales."""


class DemoShopR1(PolicyAgent):
    """A tiny policy of the demo shop: Shop-R1, SFT without past rationales."""
