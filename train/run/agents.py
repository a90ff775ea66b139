"""The agents that a run validates with and ranks in its final table, handed in by the entry point.

Training imports no agent: `agents.llm_grpo.run_agents` provides these, and the command passes them on.
"""

from typing import Any, Protocol

from replay_sessions.store import SessionStore
from shop_env.evaluation.generate import AgentSpec
from shop_env.evaluation.protocol import Agent
from shop_env.evaluation.reply_cache import Identity
from shop_env.observation import ContextConfig
from train.checkpoints import CheckpointInfo


class RunAgents(Protocol):
    """Makes agents; a module with these functions will do."""

    def spec(self, text: str) -> AgentSpec:
        """The agent that a text names, checked before hours of work.

        Raises:
            UnknownAgent: There is none of that name.
            MissingExtra: What it needs is not installed.
        """
        ...

    def identity(self, spec: AgentSpec, context: ContextConfig, store: SessionStore, seed: int) -> Identity:
        """Everything that decides its replies: an agent that was edited, or has other arguments, has another."""
        ...

    def make(self, spec: AgentSpec, store: SessionStore) -> Agent:
        """The agent, made for the store."""
        ...

    def policy(self, model: Any, tokenizer: Any, info: CheckpointInfo) -> Agent:
        """The policy that is in memory, at the temperature of its info."""
        ...
