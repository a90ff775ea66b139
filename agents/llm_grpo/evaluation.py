"""Evaluates a run: validation during training, and the rows of the final table, distributed over processes.

    checkpoint ─► agent ─► shop_env.evaluation ─► RUN/agents/ROW/steps.jsonl ─► Entry
        ─► EvaluationLog ─► table, paired differences, sentences ─► results.json, results.md

The rows are the agents of `evaluation.agents`, the policy of each phase, and the oracle if it is known, on the same
steps. Every process runs the agents on its share of the sessions. Each step has its own seed (evaluation/generate.py),
so the records do not depend on the number of processes.

Policies are decoded as in the papers (temperature 0.6), and also greedily and by the most probable action
(agents/local/policy_agent.py). The row of the most probable action also has the likelihood and the calibration of the
distribution over actions. Weights are chosen on the validation split, not by this table.
"""

import shlex
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from agents.agent_code import gives_probabilities, reply_identity
from agents.child_process import build_agent
from agents.llm_grpo.config import TrainConfig
from agents.registry import GROUPS, parse_spec
from replay_sessions.foundation.errors import BadConfig
from replay_sessions.foundation.provenance import provenance
from replay_sessions.foundation.table import Table, print_results
from replay_sessions.schema import Split
from replay_sessions.store import SessionStore
from shop_env.evaluation.ceiling import ceiling_rows, shoppers_context
from shop_env.evaluation.comparing import Comparison, adjusted, compare_records
from shop_env.evaluation.entries import AgentToEvaluate, build_entry, prepare_agent, run_agent
from shop_env.evaluation.evaluate import evaluate
from shop_env.evaluation.generate import AgentSpec
from shop_env.evaluation.protocol import Agent
from shop_env.evaluation.reading import convergence_sentences, training_sentences
from shop_env.evaluation.results import EMPTY_RATIONALES, ResultRow, intervals_text, results_table, sorted_rows
from shop_env.evaluation.results_file import Entry, EvaluationLog, TrainingPart, steps_file, write_log
from shop_env.evaluation.sample import describe_sample
from shop_env.evaluation.scored_steps import EvaluationConfig
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
    max_sessions: int | None,
    seed: int,
    inferred: bool,
    **options: Any,
) -> list[StepRecord]:
    """Returns the records of `evaluate` with its options, computed by all processes.

    All processes must call it, and each gets all records.
    """
    keys = EvaluationConfig(split=split, sessions=max_sessions, seed=seed, inferred=inferred).keys(store)
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
    sampled = [
        (name, phase.label, phase.context, config.evaluation.get_decodings(phase.temperatures))
        for name, phase in config.phases.items()
    ]
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
    entries = [entry for entry, _ in results.values()]
    comparisons, over_best = compare_rows({label: records for label, (_, records) in results.items()}, entries, config)
    training = TrainingPart(
        phases=msgspec.to_builtins(phases),
        comparisons=comparisons,
        over_best_agent=over_best,
        users_held_out=users_are_held_out(store),
    )
    log = EvaluationLog(
        provenance=provenance(config, store=store, seed=config.seed),
        config=config.evaluation_config,
        sample=describe_sample(store, config.evaluation_config, [entry.context for entry in entries]),
        entries=entries,
        ceilings=ceiling_rows(store, config.evaluation_config, temperature=config.evaluation.temperature),
        training=training,
    )
    users = "held-out users" if training.users_held_out else "held-out sessions"
    title = f"{store.path.name}, {log.config.split} split: {log.sample.text}, {users}"
    print_results(_table(log, title), *_summary(log))
    write_log(folder, log, markdown(log))
    functions = log.config.named_functions
    report = shlex.join(["shop-r1", "report", str(folder), *(["--trust", *functions] if functions else [])])
    print_results(f"Written: {folder}/results.md, results.json", f"Every session, step by step: {report}")


def users_are_held_out(store: SessionStore) -> bool:
    """Returns whether no user of the test split is in the train split."""
    trained, tested = (set(map(store.user_id, store.session_ids(split))) for split in ("train", "test"))
    return trained.isdisjoint(tested)


def compare_rows(
    records: Mapping[str, Sequence[StepRecord]], entries: Sequence[Entry], config: TrainConfig
) -> tuple[list[Comparison], list[Comparison]]:
    """Returns comparisons of phases with the phases in their `against`, and of every policy with the best other agent.

    Phases are compared with each decoding, by exact match and by macro-F1.
    """
    comparisons = [
        compare_records(records, decoding.label(phase.label), decoding.label(config.phases[other].label), metric)
        for phase in config.phases.values()
        for decoding in config.evaluation.get_decodings()
        for other in phase.against
        for metric in ("exact_accuracy", "type_f1_macro")
    ]
    agents = [entry.row for entry in entries[: len(config.evaluation.agents)]]
    return adjusted(comparisons), over_best_agent(records, agents, config)


def markdown(log: EvaluationLog) -> str:
    """Returns the content of results.md."""
    lines = ["# Training run\n", _table(log).markdown(), *(f"- {sentence}" for sentence in _sentences(log))]
    return "\n".join(lines) + "\n"


def _table(log: EvaluationLog, title: str = "") -> Table:
    """Builds the table of rows in the order of the run; the best baseline, which policies must beat, comes last."""
    baselines = sorted_rows([entry.row for entry in log.entries if entry.spec.target in GROUPS["baselines"]])
    rows = [entry.row for entry in log.entries if entry.row not in baselines[:1]] + baselines[:1]
    notes = [intervals_text(rows, log.config.reward_config)]
    return results_table(rows, title=title, notes=notes, sample=log.sample, metrics=log.config.metrics)


def _summary(log: EvaluationLog) -> Iterator[str]:
    """Yields the sentences below the printed table; results.md has more."""
    assert log.training is not None, "the log of a training run"
    if over_best := log.training.over_best_agent:
        best = max(over_best, key=lambda comparison: comparison.difference)
        yield (
            f"The best policy is {best.first}: {best.text()} of exact match over {best.second}, the best other agent "
            f"({best.verdict})."
        )
    yield from _policies_without_rationales(log)
    yield from convergence_sentences(log)
    tests = log.training.comparisons
    tested, different = sum(test.p_value is not None for test in tests), sum(test.significant for test in tests)
    yield (
        f"Of {len(tests)} differences between phases {tested} could be tested and {different} are significant, over "
        "users and for one training seed; results.md lists them."
    )


def _sentences(log: EvaluationLog) -> Iterator[str]:
    """Yields remarks on the agents, the comparisons, and the limits of one training seed."""
    assert log.training is not None, "the log of a training run"
    yield from (f"{entry.label}: {remark}." for entry in log.entries for remark in entry.remarks)
    yield from _policies_without_rationales(log)
    if over_best := log.training.over_best_agent:
        added = "; ".join(f"{comparison.first} {comparison.text()}" for comparison in over_best)
        yield f"Exact match over {over_best[0].second}, the best agent beside the policies: {added}."
    yield from training_sentences(log)


def _policies_without_rationales(log: EvaluationLog) -> Iterator[str]:
    """Yields a sentence for each policy that is asked for rationales and writes none."""
    config = msgspec.convert(log.provenance["config"], TrainConfig)
    for entry in log.entries:
        phase, empty = config.phases.get(entry.spec.target), entry.row.figures.get(EMPTY_RATIONALES)
        is_asked = phase is not None and phase.teach_rationales and config.prompt.rationales
        if is_asked and empty is not None and empty.value == 1:
            yield f"{entry.label}: all its rationales are empty, although its prompt asks for one."


def over_best_agent(
    records: Mapping[str, Sequence[StepRecord]], agents: Sequence[ResultRow], config: TrainConfig
) -> list[Comparison]:
    """Compares the exact match of each policy with that of the best other agent.

    The best agent is chosen on the same steps that are compared, which favours the agent.

    Args:
        agents: The rows of the other agents.
    """
    exact = {row.label: row.figures["exact_accuracy"].value for row in agents if "exact_accuracy" in row.figures}
    if not exact:
        return []
    best = max(exact, key=lambda label: exact[label])
    return [
        compare_records(records, decoding.label(phase.label), best, "exact_accuracy")
        for phase in config.phases.values()
        for decoding in config.evaluation.get_decodings(phase.temperatures)
    ]
