"""The agents of a training run (evaluation.py): policies, those of `evaluation.agents`, and the oracle."""

from typing import Any

from agents.agent_code import gives_probabilities, reply_identity
from agents.child_process import build_agent
from agents.registry import parse_spec
from replay_sessions.store import SessionStore
from shop_env.evaluation.generate import AgentSpec
from shop_env.evaluation.protocol import Agent
from shop_env.evaluation.steps_file import Identity
from shop_env.observation import ContextConfig

__all__ = ["identity", "make", "policy", "spec"]


def spec(text: str) -> AgentSpec:
    """The agent that `text` names; raises UnknownAgent or MissingExtra where none can be made."""
    parsed = parse_spec(text)
    gives_probabilities(parsed)  # finds it
    return parsed


def identity(spec: AgentSpec, context: ContextConfig, store: SessionStore, seed: int) -> Identity:
    """Everything that decides its replies."""
    return reply_identity(spec, context, store, seed)


def make(spec: AgentSpec, store: SessionStore) -> Agent:
    """The agent, made for the store; somebody else's in a process of its own."""
    return build_agent(spec, store)


def policy(model: Any, tokenizer: Any, info: Any) -> Agent:
    """The policy that is in memory."""
    from agents.local.policy_agent import PolicyAgent  # noqa: PLC0415 - loads torch, which a plan of runs does without

    return PolicyAgent(policy=(model, tokenizer, info))
