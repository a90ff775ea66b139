"""Builds the log of a training run and its table: the run's own part, paired differences, and sentences on them.

    Entry, StepRecord of each row ─► build_log ─► EvaluationLog ─► table, sentences ─► results.json, results.md
                                                                └► read_training: `shop-r1 verify`, report, sweeps

A policy that gains in exact match may lose in macro-F1. The intervals of one run are over users and say nothing about
another seed.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

import msgspec

from agents.catalogue import LEARNT_FROM_STORE, Kind, entry_of
from agents.llm_grpo.config import TrainConfig
from replay_sessions.foundation.errors import BadConfig
from replay_sessions.foundation.records import Config
from replay_sessions.foundation.table import Table
from replay_sessions.store import SessionStore
from shop_env.evaluation import entries as evaluation
from shop_env.evaluation.comparing import Comparison, adjusted, compare_records
from shop_env.evaluation.results import EMPTY_RATIONALES, ResultRow, intervals_text, results_table, sorted_rows
from shop_env.evaluation.results_file import Entry, EvaluationLog
from shop_env.metrics import StepRecord

COMPARED = {"exact_accuracy": "exact match", "type_f1_macro": "macro-F1"}


class TrainingPart(Config):
    """The part of a log that only a training run has.

    Attributes:
        phases: For each phase by name, `steps` and `seconds` of training, `best_step` (the step with the chosen
            weights), `best_exact` (their exact match on the validation sessions), and `is_converged` (False if NLL
            was lowest at the last validation).
        comparisons: Comparisons of phases with the phases that they name.
        over_best_agent: Comparisons of every policy with the best agent that is not a policy of the run.
        users_held_out: Whether no user of the test split was trained on.
    """

    phases: dict[str, Any]
    comparisons: list[Comparison]
    over_best_agent: list[Comparison]
    users_held_out: bool


def build_log(
    config: TrainConfig,
    store: SessionStore,
    phases: dict[str, Any],
    entries: Sequence[Entry],
    records: Mapping[str, Sequence[StepRecord]],
    provenance: dict[str, Any],
) -> EvaluationLog:
    """Builds the log of a run.

    Args:
        phases: As in TrainingPart.
        entries: The rows, in the order of evaluation.table_rows.
        records: The records of each row, by its label.
        provenance: The run's provenance, with its configuration.
    """
    comparisons = [compare_records(records, *pair, metric) for pair in compared_rows(config) for metric in COMPARED]
    agents = [entry.row for entry in entries[: len(config.evaluation.agents)]]
    training = TrainingPart(
        phases=phases,
        comparisons=adjusted(comparisons),
        over_best_agent=over_best_agent(records, agents, config),
        users_held_out=_users_are_held_out(store),
    )
    return evaluation.build_log(
        config.evaluation_config,
        store,
        entries,
        provenance=provenance,
        temperature=config.evaluation.temperature,
        training=msgspec.to_builtins(training),
    )


def compared_rows(config: TrainConfig) -> Iterator[tuple[str, str]]:
    """Yields the labels of rows to compare: of phases by each decoding of both, further temperatures aside."""
    for name, phase in config.phases.items():
        for decoding in config.evaluation.get_decodings(rationales=config.writes_rationales(phase)):
            for other in phase.against:
                if all(decoding.name in [each.name for each in config.get_decodings(of)] for of in (name, other)):
                    yield decoding.label(phase.label), decoding.label(config.phases[other].label)


def read_training(log: EvaluationLog) -> TrainingPart | None:
    """Returns the part of a training run; None for the log of a leaderboard.

    Raises:
        BadConfig: The part is not that of a training run.
    """
    try:
        return None if log.training is None else msgspec.convert(log.training, TrainingPart)
    except msgspec.ValidationError as error:
        raise BadConfig(f"the log's `training` is not the part of a training run: {error}") from error


def kinds_of(log: EvaluationLog) -> dict[str, Kind | None]:
    """Returns the kind of each agent by its label: "policy" for the phases of a run, None for an agent of a user."""
    phases, kinds = log.provenance["config"].get("phases", {}), dict[str, Kind | None]()
    for entry in log.entries:
        declared = entry_of(entry.spec)
        kinds[entry.label] = "policy" if entry.spec.target in phases else declared and declared.kind
    return kinds


def _users_are_held_out(store: SessionStore) -> bool:
    """Returns whether no user of the test split is in the train split."""
    trained, tested = (set(map(store.user_id, store.session_ids(split))) for split in ("train", "test"))
    return trained.isdisjoint(tested)


def markdown(log: EvaluationLog) -> str:
    """Returns the content of results.md."""
    training, sentences = _training(log), [f"{entry.label}: {text}." for entry in log.entries for text in entry.remarks]
    sentences += _policies_without_rationales(log)
    if over_best := training.over_best_agent:
        added = "; ".join(f"{comparison.first} {comparison.text()}" for comparison in over_best)
        sentences.append(f"Exact match over {over_best[0].second}, the best agent beside the policies: {added}.")
    sentences += training_sentences(log)
    return "\n".join(["# Training run\n", _table(log).markdown(), *(f"- {text}" for text in sentences)]) + "\n"


def printed_lines(log: EvaluationLog) -> Iterator[Table | str]:
    """Yields what a run prints at its end: the table, and some of the sentences of results.md."""
    training, store = _training(log), log.provenance["store"]["name"]
    users = "held-out users" if training.users_held_out else "held-out sessions"
    yield _table(log, f"{store}, {log.config.split} split: {log.sample.text}, {users}")
    if training.over_best_agent:
        best = max(training.over_best_agent, key=lambda comparison: comparison.difference)
        yield (
            f"The best policy is {best.first}: {best.text()} of exact match over {best.second}, the best other agent "
            f"({best.verdict})."
        )
    yield from _policies_without_rationales(log)
    yield from _unconverged_phases(log, training)
    if tests := training.comparisons:
        tested, different = sum(test.p_value is not None for test in tests), sum(test.significant for test in tests)
        yield (
            f"Of {len(tests)} differences between phases {tested} could be tested and {different} are significant, "
            "over users and for one training seed; results.md lists them."
        )


def training_sentences(log: EvaluationLog) -> Iterator[str]:
    """Yields how each policy compares, the training times, and the limits of one seed; nothing for a leaderboard."""
    training = read_training(log)
    if training is None:
        return
    against: dict[str, list[str]] = {}
    for (first, second), tests in groupby(training.comparisons, lambda test: (test.first, test.second)):
        figures = (f"{test.text()} of {COMPARED.get(test.metric, test.metric)} ({test.verdict})" for test in tests)
        against.setdefault(first, []).append(f"{', '.join(figures)} against {second}")
    yield from (f"{first}: {'; '.join(texts)}." for first, texts in against.items())
    phases = log.provenance["config"]["phases"]
    times = (
        f"{phases[name]['label']} {phase['seconds']:.0f} s ({phase['steps']:,} steps)"
        for name, phase in training.phases.items()
        if phase["steps"]
    )
    yield f"Time in training steps: {', '.join(times)}."
    yield from _unconverged_phases(log, training)
    yield "The intervals are over users, for one training seed; another seed may order the policies otherwise."


def _unconverged_phases(log: EvaluationLog, training: TrainingPart) -> Iterator[str]:
    """Yields a sentence for each phase whose NLL on validation was still falling at its end."""
    for name, phase in training.phases.items():
        if phase.get("is_converged") is False:
            label = log.provenance["config"]["phases"][name]["label"]
            yield f"{label}: not converged: by NLL on validation sessions the best step is the last."


def _training(log: EvaluationLog) -> TrainingPart:
    training = read_training(log)
    assert training is not None, "the log of a training run"
    return training


def _table(log: EvaluationLog, title: str = "") -> Table:
    """Builds the table of rows in the order of the run; the best baseline, which policies must beat, comes last."""
    kinds = kinds_of(log)
    baselines = sorted_rows([entry.row for entry in log.entries if kinds[entry.label] in LEARNT_FROM_STORE])
    rows = [entry.row for entry in log.entries if entry.row not in baselines[:1]] + baselines[:1]
    notes = [intervals_text(rows, log.config.reward_config)]
    return results_table(rows, title=title, notes=notes, sample=log.sample, metrics=log.config.metrics)


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
        for name, phase in config.phases.items()
        for decoding in config.get_decodings(name)
    ]
