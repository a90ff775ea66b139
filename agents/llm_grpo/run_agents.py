"""The agents of a training run (train/run/evaluation.py): policies, those of `evaluation.agents`, and the oracle."""

from typing import Any

from agents.agent_code import reply_identity as identity
from agents.registry import agent_class, make_agent, parse_spec
from replay_sessions.store import SessionStore
from shop_env.evaluation.generate import AgentSpec
from shop_env.evaluation.protocol import Agent

__all__ = ["identity", "make", "policy", "spec"]


def spec(text: str) -> AgentSpec:
    """The agent that `text` names; raises UnknownAgent or MissingExtra where none can be made."""
    parsed = parse_spec(text)
    agent_class(parsed)
    return parsed


def make(spec: AgentSpec, store: SessionStore) -> Agent:
    """The agent, made for the store."""
    return make_agent(spec, store=store)


def policy(model: Any, tokenizer: Any, info: Any) -> Agent:
    """The policy that is in memory."""
    from agents.local.policy_agent import PolicyAgent  # noqa: PLC0415 - loads torch, which a plan of runs does without

    return PolicyAgent(policy=(model, tokenizer, info))
