"""Agents: whatever answers an observation with a reply.

    registry.py       a name, class or checkpoint -> an agent     agent_code.py   what an agent consists of, as a digest
    adapted.py        what an agent sees of a store; functions, policies, distributions as agents
    conformance.py    checks for authors of agents                templates/      an agent to begin with, and its test
    baselines/        agents without a language model
    local/  prompting/  sb3/   language models here (trained policies too) and behind a server; discrete policies
    llm_grpo/         the training command and the agents that its table ranks
    rationales/                           … write the rationales that a log lacks

How an agent is evaluated: shop_env/evaluation.

Importing this package loads no model library. The distribution `openai-agents` also imports as `agents`; `__project__`
tells ours from it (registry.py).
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
__project__ = "shop-r1"  # before the imports: registry.py checks it

from agents.conformance import check_agent
from agents.registry import make_agent, parse_spec
from shop_env.evaluation.evaluate import evaluate
from shop_env.evaluation.generate import AgentSpec
from shop_env.evaluation.protocol import Agent, BatchAgent
from shop_env.evaluation.results import ResultRow, summarise
