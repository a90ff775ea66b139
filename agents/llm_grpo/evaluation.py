"""Evaluates a run: validation during training, and the rows of the final table, distributed over processes.

    checkpoint ─► agent ─► shop_env.evaluation ─► RUN/agents/ROW/steps.jsonl ─► Entry
        ─► training_log.py (EvaluationLog, table, sentences) ─► results.json, results.md

The rows are the agents of `evaluation.agents`, the policy of each phase, and the oracle if it is known, on the same
steps. Every process runs the agents on its share of the sessions. Each step has its own seed (evaluation/waves.py),
so the records do not depend on the number of processes.

Policies are decoded as in the papers (temperature 0.6), and also greedily and by the most probable action
(agents/local/policy_agent.py). That row, which is the first of a policy that writes no rationale, also has the
likelihood and the calibration of the distribution over actions. Weights are chosen on the validation split, not by this
table.
"""

import shlex
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from agents.agent_identity import gives_probabilities, reply_identity
from agents.child_process import build_agent
from agents.llm_grpo.config import TrainConfig
from agents.llm_grpo.training_log import build_log, markdown, printed_lines
from agents.registry import parse_spec
from replay_sessions.foundation.errors import BadConfig
from replay_sessions.foundation.provenance import provenance
from replay_sessions.foundation.table import print_results
from replay_sessions.schema import Split
from replay_sessions.store import SessionStore
from shop_env.evaluation.ceiling import shoppers_context
from shop_env.evaluation.entries import AgentToEvaluate, build_entry, prepare_agent, run_agent
from shop_env.evaluation.evaluate import evaluate
from shop_env.evaluation.protocol import Agent
from shop_env.evaluation.results_file import Entry, steps_file, write_log
from shop_env.evaluation.scored_steps import EvaluationConfig
from shop_env.evaluation.waves import AgentSpec
from shop_env.metrics import StepRecord
from shop_env.observation import ContextConfig
from train.phase import PhaseResult
from train.ranks import Ranks


def evaluate_shared(
    ranks: Ranks,
    agent: Agent,
    store: SessionStore,
    split: Split,
    *,
    sessions: int | None,
    seed: int,
    inferred: bool,
    **options: Any,
) -> list[StepRecord]:
    """Returns the records of `evaluate` with its options, computed by all processes.

    All processes must call it, and each gets all records.
    """
    keys = EvaluationConfig(split=split, sessions=sessions, seed=seed, inferred=inferred).keys(store)
    shard = ranks.shard(list(dict.fromkeys(session_id for session_id, _ in keys)))
    records = evaluate(agent, store, split, session_ids=shard, seed=seed, inferred=inferred, **options) if shard else []
    ranks.barrier()  # a barrier has no time limit, but the exchange of records has
    by_key = {record.key: record for rank_records in ranks.all_gather(records) for record in rank_records}
    return [by_key[key] for key in keys]


def table_rows(
    config: TrainConfig, agents: Sequence[AgentSpec], *, oracle: tuple[ContextConfig, str] | None
) -> list[tuple[str, AgentSpec, ContextConfig]]:
    """Returns the rows of the final table: the name of the row's folder, the agent, and its context.

    Args:
        agents: The agents of `evaluation.agents`.
        oracle: The context of the demo shop's own policy, and the suffix of its label (shoppers_context); None leaves
            the oracle out.
    """
    rows = [(spec.label, spec, config.context) for spec in agents]
    sampled = [(name, phase.label, phase.context, config.get_decodings(name)) for name, phase in config.phases.items()]
    if oracle is not None:
        by_tokens = [decoding for decoding in config.evaluation.get_decodings() if decoding.rationales is None]
        sampled.append(("oracle", f"oracle{oracle[1]}", oracle[0], by_tokens))
    for name, label, context, decodings in sampled:
        for decoding in decodings:
            spec = AgentSpec(target=name, arguments=decoding.arguments, label=decoding.label(label))
            rows.append((decoding.file_name(name), spec, context))
    return rows


def check_rows(config: TrainConfig) -> None:
    """Raises if an agent of the final table is missing, or if two rows have the same label or file of steps."""
    specs = [parse_spec(text) for text in config.evaluation.agents]
    for spec in specs:
        gives_probabilities(spec)  # raises if the agent does not exist or needs a missing package
    rows = [(spec.label, steps_file(name)) for name, spec, _ in table_rows(config, specs, oracle=(config.context, ""))]
    for names in zip(*rows, strict=True):
        if repeated := [name for name in names if names.count(name) > 1]:
            raise BadConfig(
                f"two rows of the final table have the name '{repeated[0]}'; give agents of evaluation.agents other "
                "labels, as LABEL=AGENT."
            )


def evaluate_rows(
    config: TrainConfig, store: SessionStore, folder: Path, ranks: Ranks
) -> dict[str, tuple[Entry, list[StepRecord]]]:
    """Returns each row's entry and records by its label, in the order of the table; rank 0 alone returns rows.

    Recorded steps are not run again, so a run that was stopped here continues within the row.
    """
    evaluation = config.evaluation_config
    keys = evaluation.keys(store)
    shard = set(ranks.shard(list(dict.fromkeys(session_id for session_id, _ in keys))))
    specs = [parse_spec(text) for text in config.evaluation.agents]
    results = {}
    for name, spec, context in table_rows(config, specs, oracle=shoppers_context(store, config.context)):
        runnable = spec.within(folder)
        agent = AgentToEvaluate(
            spec=spec,
            name=name,
            context=context,
            # A checkpoint of the run is identified by its name within the run, because the run may be moved.
            identity=reply_identity(runnable, context, store, evaluation.seed) | {"target": spec.target},
            build=partial(build_agent, runnable, store, context),
            config=evaluation,
            store=store,
            folder=folder,
            probabilities="decode" in spec.arguments,  # their replies come from probabilities
        )
        if ranks.is_main:
            prepare_agent(agent, retry_errors=False)  # a page that does not fit the model's context fails again
        ranks.barrier()
        records = run_agent(agent, [key for key in keys if key[0] in shard], progress=ranks.is_main)
        ranks.barrier()
        if ranks.is_main:
            results[spec.label] = build_entry(agent, records)
    return results


def evaluate_run(
    config: TrainConfig,
    store: SessionStore,
    folder: Path,
    ranks: Ranks,
    phases: Mapping[str, PhaseResult],
) -> None:
    """Evaluates the run's policies and agents, prints the table, and writes results.json and results.md."""
    results = evaluate_rows(config, store, folder, ranks)
    if not ranks.is_main:
        return
    log = build_log(
        config,
        store,
        msgspec.to_builtins(phases),
        [entry for entry, _ in results.values()],
        {label: records for label, (_, records) in results.items()},
        provenance(config, store=store, seed=config.seed),
    )
    print_results(*printed_lines(log))
    write_log(folder, log, markdown(log))
    functions = log.config.named_functions
    report = shlex.join(["shop-r1", "report", str(folder), *(["--trust", *functions] if functions else [])])
    print_results(f"Written: {folder}/results.md, results.json", f"Every session, step by step: {report}")
