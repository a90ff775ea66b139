"""The agents of a training run (evaluation.py): policies, those of `evaluation.agents`, and the oracle."""

from typing import Any

from agents.agent_code import gives_probabilities, reply_identity
from agents.agent_process import build_agent
from agents.child_process import Limits
from agents.registry import is_own, parse_spec
from replay_sessions.store import SessionStore
from shop_env.evaluation.generate import AgentSpec
from shop_env.evaluation.log import Process
from shop_env.evaluation.protocol import Agent
from shop_env.evaluation.reply_cache import Identity
from shop_env.observation import ContextConfig

__all__ = ["identity", "make", "policy", "process", "spec"]


def spec(text: str) -> AgentSpec:
    """The agent that `text` names; raises UnknownAgent or MissingExtra where none can be made."""
    parsed = parse_spec(text)
    gives_probabilities(parsed)  # finds it
    return parsed


def identity(spec: AgentSpec, context: ContextConfig, store: SessionStore, seed: int) -> Identity:
    """Everything that decides its replies, and of somebody else's agent where it ran."""
    decides = reply_identity(spec, context, store, seed)
    return decides if is_own(spec) else decides | {"process": process(spec)}


def make(spec: AgentSpec, store: SessionStore) -> Agent:
    """The agent, made for the store; somebody else's in a process of its own."""
    return build_agent(spec, store, Limits(hidden=(store.path,)))


def process(spec: AgentSpec) -> Process:
    """Whose process it runs in."""
    return "evaluator's" if is_own(spec) else Limits().process


def policy(model: Any, tokenizer: Any, info: Any) -> Agent:
    """The policy that is in memory."""
    from agents.local.policy_agent import PolicyAgent  # noqa: PLC0415 - loads torch, which a plan of runs does without

    return PolicyAgent(policy=(model, tokenizer, info))
