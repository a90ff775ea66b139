"""Agents, which answer observations with replies.

    catalogue.py      the agents of this project, with what is declared of each
    registry.py       builds an agent from a name, class or checkpoint
    agent_identity.py computes the digest of an agent's code and files
    child_process.py  runs the agents of users in child processes (worker.py)
    adapted.py        base classes; functions and policies as agents
    conformance.py    checks for authors of agents
    templates/        templates of agents, rewards, metrics and importers, with tests
    baselines/        agents without a language model
    local/            language models in this process, trained policies included
    prompting/        language models behind a server
    sb3/              policies of Stable-Baselines3 on the discrete view
    policies/         two tiny trained policies
    llm_grpo/         the training command
    rationales/       the command that writes the rationales that a log lacks

shop_env/evaluation evaluates agents.

Importing this package loads no model library. The distribution `openai-agents` also imports as `agents`; registry.py
checks `__project__` to distinguish the two.
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
from shop_env.evaluation.protocol import Agent, BatchAgent
from shop_env.evaluation.results import ResultRow, summarise
from shop_env.evaluation.waves import AgentSpec
