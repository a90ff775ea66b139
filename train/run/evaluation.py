"""The evaluation of a run: validation while it trains, and the rows of its final table, dealt out over its processes.

checkpoint ─► agent ─► shop_env.evaluation ─► RUN/agents/ROW/replies, steps.jsonl ─► Entry ─► table.py

Rows are the agents of `evaluation.agents`, each phase's policy, and the oracle where it is known, on the same steps.
Every process runs the agents on its share of the sessions; a step's seed is its own (evaluation/generate.py), so the
records are those of one process that runs all of them.
"""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from replay_sessions.demo_shop import SOURCE as DEMO_SHOP
from replay_sessions.schema import Split
from replay_sessions.store import SessionStore
from shop_env.evaluation.entries import ORDER_CHECK, AgentToEvaluate, build_entry, fill_entry_cache
from shop_env.evaluation.evaluate import evaluate
from shop_env.evaluation.generate import AgentSpec
from shop_env.evaluation.log import Entry, Process
from shop_env.evaluation.protocol import Agent
from shop_env.evaluation.reply_cache import Identity, merge_parts
from shop_env.evaluation.scored_steps import scored_keys
from shop_env.metrics import StepRecord
from shop_env.observation import ContextConfig
from train.checkpoints import CheckpointInfo
from train.ranks import Ranks
from train.run.config import TrainConfig
from train.run.rows import decodings, decodings_of


class RunAgents(Protocol):
    """Makes the agents that a run validates with and ranks; a module with these functions will do.

    Training imports no agent: `agents.llm_grpo.run_agents` provides these, and the command hands them in.
    """

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

    def process(self, spec: AgentSpec) -> Process:
        """Whose process it runs in."""
        ...

    def policy(self, model: Any, tokenizer: Any, info: CheckpointInfo) -> Agent:
        """The policy that is in memory, at the temperature of its info."""
        ...


def evaluate_shared(
    ranks: Ranks, agent: Agent, store: SessionStore, split: Split, *, max_sessions: int | None, **options: Any
) -> list[StepRecord]:
    """The records of `evaluate`, with its options; all processes call it, and all have all records."""
    keys = scored_keys(store, split, max_sessions=max_sessions)
    own = ranks.shard(list(dict.fromkeys(session_id for session_id, _ in keys)))
    records = evaluate(agent, store, split, session_ids=own, **options) if own else []
    ranks.barrier()  # here, and not in an exchange, one waits for as long as it takes
    by_key = {record.key: record for part in ranks.all_gather(records) for record in part}
    return [by_key[key] for key in keys]


def table_rows(
    config: TrainConfig, agents: Sequence[AgentSpec], *, demo_shop: bool
) -> list[tuple[str, AgentSpec, ContextConfig]]:
    """The rows of the final table: the name of each one's folder, the agent, and what it is shown.

    Args:
        agents: Those of `evaluation.agents`.
        demo_shop: Whether the shoppers' own policy, the oracle, is known.
    """
    rows = [(spec.label, spec, config.context) for spec in agents]
    sampled = [
        (name, phase.label, config.context_of(name), decodings_of(config, name))
        for name, phase in config.phases.items()
    ]
    if demo_shop:
        sampled.append(("oracle", "oracle", config.context, decodings(config.evaluation)))
    for name, label, context, ways in sampled:
        for decoding in ways:
            arguments = {"temperature": decoding.temperature}
            spec = AgentSpec(target=name, arguments=arguments, label=decoding.label(label))
            rows.append((decoding.file_name(name), spec, context))
    return rows


def evaluate_rows(
    config: TrainConfig, store: SessionStore, folder: Path, agents: RunAgents, ranks: Ranks
) -> dict[str, tuple[Entry, list[StepRecord]]]:
    """Every row's entry and records by its label, in the order of the table; none in processes that do not write.

    What is cached is not run again: a run that was stopped here goes on within the row.
    """
    evaluation = config.evaluation_config
    keys = evaluation.keys(store)
    own = set(ranks.shard(list(dict.fromkeys(session_id for session_id, _ in keys))))
    specs = [agents.spec(text) for text in config.evaluation.agents]
    results = {}
    for name, spec, context in table_rows(config, specs, demo_shop=store.manifest.source == DEMO_SHOP):
        runnable = spec.within(folder)
        agent = AgentToEvaluate(
            spec=spec,
            name=name,
            context=context,
            # Of a checkpoint of its own the name within the run: the run may be moved.
            identity=agents.identity(runnable, context, store, evaluation.seed) | {"target": spec.target},
            build=partial(agents.make, runnable, store),
            config=evaluation,
            store=store,
            folder=folder,
            process=agents.process(runnable),
            order_check=0 if agents.process(runnable) == "evaluator's" else ORDER_CHECK,
        )
        if ranks.is_main:
            merge_parts(agent.replies)  # of a run that was stopped
        ranks.barrier()
        filled = fill_entry_cache(
            agent,
            [key for key in keys if key[0] in own],
            part=None if ranks.is_single else ranks.rank,
            retry_errors=False,  # a page that does not fit the model's context never will
            progress=ranks.is_main,
        )
        ranks.barrier()
        if ranks.is_main:
            merge_parts(agent.replies)
            results[spec.label] = build_entry(agent, filled)
    return results
