"""The end of a run: every policy, baseline and ceiling on held-out users, and what the paired differences say.

    evaluation.py ─► EvaluationLog ─► table, paired differences, sentences ─► results.json, results.md

Decoding is the paper's (temperature 0.6), greedy beside it. Nothing here has any part in choosing weights: that is done
on the validation split.
"""

from collections.abc import Iterator, Mapping, Sequence

import msgspec

from replay_sessions.foundation.provenance import provenance
from replay_sessions.foundation.table import print_results
from replay_sessions.store import SessionStore
from shop_env.evaluation.comparing import Comparison, adjusted, compare_records
from shop_env.evaluation.log import Entry, EvaluationLog, TrainingPart, write_log
from shop_env.evaluation.results import ResultRow, ceiling_rows, results_table
from shop_env.metrics import StepRecord
from train.run.config import TrainConfig
from train.run.evaluation import evaluate_rows
from train.run.rows import decodings, decodings_of
from train.run.training_run import TrainingRun


def evaluate_run(run: TrainingRun) -> None:
    """Evaluates everything the run made, prints the table, and writes results.json and results.md."""
    results = evaluate_rows(run.config, run.store, run.folder, run.agents, run.ranks)
    if not run.ranks.is_main:
        return
    config, store = run.config, run.store
    entries = [entry for entry, _ in results.values()]
    comparisons, over_best = compare_rows({label: records for label, (_, records) in results.items()}, entries, config)
    training = TrainingPart(
        phases=msgspec.to_builtins(run.results),
        comparisons=comparisons,
        over_best_agent=over_best,
        users_held_out=users_are_held_out(store),
    )
    log = EvaluationLog(
        provenance=provenance(msgspec.to_builtins(config), store=store, seed=config.seed),
        config=config.evaluation_config,
        entries=entries,
        ceilings=ceiling_rows(store, config.evaluation_config, temperature=config.evaluation.temperature),
        training=training,
    )
    users = "held-out users" if training.users_held_out else "held-out sessions"
    rows = [entry.row for entry in entries]
    title = (
        f"{store.path.name}, {log.config.split} split: {rows[0].sessions} sessions, {users}; 95% intervals over users"
    )
    written = f"Written: {run.folder}/results.md, results.json"
    print_results(results_table(rows, title=title), *_sentences(log, config), written)
    write_log(run.folder, log, markdown(log, config))


def users_are_held_out(store: SessionStore) -> bool:
    """Whether no user of the test split is in the train split."""
    trained, tested = (set(map(store.user_id, store.session_ids(split))) for split in ("train", "test"))
    return trained.isdisjoint(tested)


def compare_rows(
    records: Mapping[str, Sequence[StepRecord]], entries: Sequence[Entry], config: TrainConfig
) -> tuple[list[Comparison], list[Comparison]]:
    """Phases with those that they name, and every policy with the best agent that is none.

    Phases are compared sampled and greedy, by exact match and by macro-F1.
    """
    comparisons = [
        compare_records(records, decoding.label(phase.label), decoding.label(config.phases[other].label), metric)
        for phase in config.phases.values()
        for decoding in decodings(config.evaluation)
        for other in phase.against
        for metric in ("exact_accuracy", "type_f1_macro")
    ]
    agents = [entry.row for entry in entries[: len(config.evaluation.agents)]]
    return adjusted(comparisons), over_best_agent(records, agents, config)


def markdown(log: EvaluationLog, config: TrainConfig) -> str:
    """results.md."""
    table = results_table([entry.row for entry in log.entries]).markdown()
    lines = ["# Training run\n", table, *(f"- {sentence}" for sentence in _sentences(log, config))]
    return "\n".join(lines) + "\n"


def _sentences(log: EvaluationLog, config: TrainConfig) -> Iterator[str]:
    """The comparisons of the table, and the last lines, which sum them up."""
    assert log.training is not None, "the log of a training run"
    yield from (comparison.sentence() for comparison in log.training.comparisons)
    yield from verdicts(log.training.comparisons, config)
    policies = set(_policies(config))
    yield from (f"{e.label}: {remark}." for e in log.entries if e.label in policies for remark in e.remarks)
    if over_best := log.training.over_best_agent:
        added = "; ".join(f"{comparison.first} {comparison.text()}" for comparison in over_best)
        yield f"Exact match over {over_best[0].second}, the best agent beside the policies: {added}."


def over_best_agent(
    records: Mapping[str, Sequence[StepRecord]], agents: Sequence[ResultRow], config: TrainConfig
) -> list[Comparison]:
    """Exact match of each policy less that of the best of the agents beside them, by their rows.

    The best is chosen on the very steps that are compared, which is to its advantage.
    """
    exact = {row.label: row.figures["exact_accuracy"].value for row in agents if "exact_accuracy" in row.figures}
    if not exact:
        return []
    best = max(exact, key=lambda label: exact[label])
    return [compare_records(records, policy, best, "exact_accuracy") for policy in _policies(config)]


def _policies(config: TrainConfig) -> list[str]:
    """The labels of the rows that are a phase's."""
    return [
        decoding.label(phase.label) for name, phase in config.phases.items() for decoding in decodings_of(config, name)
    ]


def verdicts(comparisons: Sequence[Comparison], config: TrainConfig) -> list[str]:
    """What RL did to exact match, one sentence for each phase of GRPO that is compared with another phase."""
    sentences = []
    for phase in config.phases.values():
        labels = [decoding.label(phase.label) for decoding in decodings(config.evaluation)]
        of_phase = [c for c in comparisons if c.metric == "exact_accuracy" and c.first in labels]
        if phase.method == "grpo" and of_phase:
            sentences.append(_verdict(phase.label, of_phase))
    return sentences


def _verdict(label: str, exact: Sequence[Comparison]) -> str:
    """One sentence from all comparisons of one policy."""
    sampled = [comparison for comparison in exact if not comparison.first.endswith("greedy")]
    greedy = [comparison for comparison in exact if comparison.first.endswith("greedy")]
    reading = f"{label}: sampled, it {_reading(sampled)}"
    if greedy:
        reading += f"; greedy, it {_reading(greedy)}"
        if _reading(sampled) == BETTER and _reading(greedy) != BETTER:
            reading += ": it sharpened the policy, but the likeliest reply is no better"
    differences = "; ".join(f"{comparison.text()} against {comparison.second}" for comparison in exact)
    return f"{reading} (exact match: {differences})."


BETTER = "is significantly better than each that it is compared with"


def _reading(comparisons: Sequence[Comparison]) -> str:
    """What the intervals of one decoding say together."""
    signs = {comparison.sign for comparison in comparisons}
    if len(signs) > 1:
        return "is " + ", ".join(f"{RELATIONS[comparison.sign]} {comparison.second}" for comparison in comparisons)
    return {
        1: BETTER,
        0: "is not significantly different",
        -1: "is significantly worse than each that it is compared with",
    }[signs.pop()]


RELATIONS = {
    1: "significantly better than",
    0: "not significantly different from",
    -1: "significantly worse than",
}
