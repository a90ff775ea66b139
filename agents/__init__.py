"""Agents: whatever answers an observation with a reply.

    protocol.py      what an agent is                     registry.py       a name, class or checkpoint -> an agent
    train_view.py    what it sees of a store              scored_steps.py   which steps it is asked about
    asking.py        observations and seeds -> replies    probabilities.py  … -> how likely it holds what was logged
    evaluate.py      an agent over a split -> records     results.py        records -> table rows with intervals
    one_sided.py     who says mostly one type of action
    free_run.py      an agent left to itself              adapted.py        functions and policies as agents
    conformance.py   checks for authors of agents         new_agent.py      an agent to begin with, and its test
    kept_replies.py  replies as they come, in a file      agent_code.py     what an agent is made of, as a digest
    human/           people as agents
    scripted/  floors/                    agents without a language model
    llm_grpo/  local/  sb3/  prompting/   trained policies, language models as they are, here and behind a server
    rationales/                           … write the rationales that a log lacks

Importing this package loads no model library. The distribution `openai-agents` also imports as `agents`; `__project__`
lets ours be told apart (agents/evaluate.py).
"""

__all__ = [
    "Agent",
    "AgentSpec",
    "BatchAgent",
    "ResultRow",
    "check_agent",
    "evaluate",
    "make_agent",
    "parse_spec",
    "summarise",
]
__project__ = "shop-r1"

from agents.conformance import check_agent
from agents.evaluate import evaluate
from agents.protocol import Agent, BatchAgent
from agents.registry import AgentSpec, make_agent, parse_spec
from agents.results import ResultRow, summarise
