"""The agents of a training run (train/run/evaluation.py): policies, those of `evaluation.agents`, and the oracle."""

from typing import Any

from agents.agent_code import gives_probabilities
from agents.agent_code import reply_identity as identity
from agents.agent_process import make_foreign_agent
from agents.child_process import Limits
from agents.registry import is_own, make_agent, parse_spec
from replay_sessions.store import SessionStore
from shop_env.evaluation.generate import AgentSpec
from shop_env.evaluation.log import Process
from shop_env.evaluation.protocol import Agent

__all__ = ["identity", "make", "policy", "process", "spec"]


def spec(text: str) -> AgentSpec:
    """The agent that `text` names; raises UnknownAgent or MissingExtra where none can be made."""
    parsed = parse_spec(text)
    gives_probabilities(parsed)  # finds it
    return parsed


def make(spec: AgentSpec, store: SessionStore) -> Agent:
    """The agent, made for the store; somebody else's in a process of its own."""
    return make_agent(spec, store=store) if is_own(spec) else make_foreign_agent(spec, store, Limits())


def process(spec: AgentSpec) -> Process:
    """Whose process it runs in."""
    return "evaluator's" if is_own(spec) else "own"


def policy(model: Any, tokenizer: Any, info: Any) -> Agent:
    """The policy that is in memory."""
    from agents.local.policy_agent import PolicyAgent  # noqa: PLC0415 - loads torch, which a plan of runs does without

    return PolicyAgent(policy=(model, tokenizer, info))
