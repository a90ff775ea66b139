"""The end of a run: every policy, baseline and ceiling on people held out, and what the paired differences say.

    evaluated_rows ─► table, paired differences, sentences ─► results.json, results.md

Decoding is the paper's (temperature 0.6), greedy beside it. Nothing here has any part in choosing weights: that is done
on the validation split.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from agents.comparing import adjusted, compare_records
from agents.llm_grpo.config import TrainConfig
from agents.llm_grpo.evaluated_rows import evaluated_rows, record_files
from agents.llm_grpo.row_names import decodings, decodings_of
from agents.llm_grpo.training_run import TrainingRun
from agents.one_sided import one_sided
from agents.registry import parse_spec
from agents.results import Comparison, ResultRow, markdown_table, render_table, results_console, summarise
from agents.scripted.oracle import ceiling, is_demo_store
from replay_sessions.provenance import provenance
from replay_sessions.store.durable_files import replace_file
from shop_env.metrics import StepRecord
from shop_env.metrics.intervals import Cluster
from shop_env.versions import METRICS_VERSION, SCORING_VERSION

__all__ = ["evaluate_run", "over_best_agent", "verdicts"]

CLUSTER: Cluster = "user"


def evaluate_run(run: TrainingRun) -> list[ResultRow]:
    """Evaluates everything the run made, prints the table, and writes results.json and results.md."""
    records = evaluated_rows(run)
    rows = [summarise(rows, label=label, cluster=CLUSTER) for label, rows in records.items()]
    table = _Table(
        rows,
        _comparisons(records, run.config),
        over_best_agent(records, rows, run.config),
        _one_sided(records, run.config),
    )
    if run.ranks.writes:
        _print(run, table)
        _write(run, table)
    return rows


@dataclass(frozen=True)
class _Table:
    """What was found.

    Attributes:
        comparisons: Of phases with each other.
        over_best_agent: Of every phase with the best agent that is none.
        one_sided: Which phases' policies say mostly one type of action, in words.
    """

    rows: Sequence[ResultRow]
    comparisons: Sequence[Comparison]
    over_best_agent: Sequence[Comparison]
    one_sided: Sequence[str]

    def sentences(self, config: TrainConfig) -> Iterator[str]:
        """The last lines, which say what it comes to."""
        yield from verdicts(self.comparisons, config)
        yield from self.one_sided
        if self.over_best_agent:
            yield _what_is_added(self.over_best_agent)


def _comparisons(records: dict[str, list[StepRecord]], config: TrainConfig) -> list[Comparison]:
    """Each phase against those that it names, sampled and greedy; exact match and macro-F1."""
    comparisons = []
    for phase in config.phases.values():
        for decoding in decodings(config.evaluation):
            for other in (config.phases[name] for name in phase.against):
                first, second = decoding.label(phase.label), decoding.label(other.label)
                comparisons += [
                    compare_records(records, first, second, metric, cluster=CLUSTER)
                    for metric in ("exact_accuracy", "type_f1_macro")
                ]
    return adjusted(comparisons)


def over_best_agent(
    records: dict[str, list[StepRecord]], rows: Sequence[ResultRow], config: TrainConfig
) -> list[Comparison]:
    """Exact match of each policy less that of the best of `evaluation.agents`.

    The best is chosen on the very steps that are compared, which is to its advantage.
    """
    exact = {row.label: row.figures["exact_accuracy"].value for row in rows if "exact_accuracy" in row.figures}
    agents = [spec.label for spec in map(parse_spec, config.evaluation.agents) if spec.label in exact]
    if not agents:
        return []
    best = max(agents, key=lambda name: exact[name])
    return [compare_records(records, policy, best, "exact_accuracy", cluster=CLUSTER) for policy in _policies(config)]


def _policies(config: TrainConfig) -> list[str]:
    """The labels of the rows that are a phase's."""
    return [
        decoding.label(phase.label) for name, phase in config.phases.items() for decoding in decodings_of(config, name)
    ]


def _one_sided(records: dict[str, list[StepRecord]], config: TrainConfig) -> list[str]:
    return [f"{policy}: {said.sentence}." for policy in _policies(config) if (said := one_sided(records[policy]))]


def _what_is_added(comparisons: Sequence[Comparison]) -> str:
    """One sentence."""
    added = (
        f"{one.first} {100 * one.difference:+.1f} [{100 * one.ends[0]:+.1f}, {100 * one.ends[1]:+.1f}]"
        for one in comparisons
    )
    return (
        f"Exact match over {comparisons[0].second}, the best agent beside the policies, in points: {'; '.join(added)}."
    )


def verdicts(comparisons: Sequence[Comparison], config: TrainConfig) -> list[str]:
    """What RL did to exact match, one sentence for each phase of GRPO that is compared with another phase."""
    found = []
    for phase in config.phases.values():
        labels = [decoding.label(phase.label) for decoding in decodings(config.evaluation)]
        of_phase = [c for c in comparisons if c.metric == "exact_accuracy" and c.first in labels]
        if phase.method == "grpo" and of_phase:
            found.append(_verdict(phase.label, of_phase))
    return found


def _verdict(label: str, exact: Sequence[Comparison]) -> str:
    """One sentence from all comparisons of one policy."""
    sampled = [comparison for comparison in exact if not comparison.first.endswith("greedy")]
    greedy = [comparison for comparison in exact if comparison.first.endswith("greedy")]
    reading = f"{label}: sampled, it {_reading(sampled)}"
    if greedy:
        reading += f"; greedy, it {_reading(greedy)}"
        if _reading(sampled) == BETTER and _reading(greedy) != BETTER:
            reading += ": it sharpened the policy, but the likeliest reply is no better"
    figures = "; ".join(f"{_signed(comparison)} against {comparison.second}" for comparison in exact)
    return f"{reading} (points of exact match: {figures})."


BETTER = "is better than each that it is compared with"


def _reading(comparisons: Sequence[Comparison]) -> str:
    """What the intervals of one decoding say together."""
    signs = {comparison.sign for comparison in comparisons}
    if len(signs) > 1:
        return "is " + ", ".join(f"{RELATIONS[comparison.sign]} {comparison.second}" for comparison in comparisons)
    return {1: BETTER, 0: "cannot be told apart", -1: "is worse than each that it is compared with"}[signs.pop()]


RELATIONS = {1: "better than", 0: "not told apart from", -1: "worse than"}


def _signed(comparison: Comparison) -> str:
    return f"{100 * comparison.difference:+.1f}{'' if comparison.told_apart else ' (not told apart from 0)'}"


def _print(run: TrainingRun, table: _Table) -> None:
    console = results_console()
    split, users = run.config.evaluation.split, "users held out" if _users_held_out(run) else "sessions held out"
    title = (
        f"{run.store.path.name}, {split} split: {table.rows[0].sessions} sessions, {users}; 95% intervals over users"
    )
    console.print(render_table(table.rows, title=title, width=console.width))
    for comparison in table.comparisons:
        console.print(comparison.sentence(), highlight=False, soft_wrap=True)
    for sentence in table.sentences(run.config):
        console.print(sentence, highlight=False, soft_wrap=True)
    console.print(f"Written: {run.folder}/results.md, results.json", highlight=False)


def _users_held_out(run: TrainingRun) -> bool:
    store = run.store
    trained = {store.user_id(session_id) for session_id in store.session_ids("train")}
    return not any(store.user_id(session_id) in trained for session_id in store.session_ids("test"))


def _write(run: TrainingRun, table: _Table) -> None:
    config = run.config
    results: dict[str, Any] = {
        "rows": msgspec.to_builtins(table.rows),
        "records": record_files(run),
        "versions": {"scoring": SCORING_VERSION, "metrics": METRICS_VERSION},
        "comparisons": msgspec.to_builtins(table.comparisons),
        "over_best_agent": msgspec.to_builtins(table.over_best_agent),
        "ceiling": msgspec.to_builtins(_ceiling(run)),
        "phases": msgspec.to_builtins(run.results),
        "users_held_out": _users_held_out(run),
        "provenance": provenance(msgspec.to_builtins(config), store=run.store, seed=config.seed),
    }
    text = [
        f"# {run.folder.name}\n",
        markdown_table(table.rows),
        *(f"- {c.sentence()}" for c in table.comparisons),
        *(f"- {sentence}" for sentence in table.sentences(config)),
    ]
    replace_file(run.folder / "results.md", "\n".join(text) + "\n")
    replace_file(run.folder / "results.json", json.dumps(results, indent=2) + "\n")


def _ceiling(run: TrainingRun) -> Any:
    if not is_demo_store(run.store):
        return None
    config = run.config.evaluation
    return ceiling(run.store, config.split, temperature=config.temperature, max_sessions=config.sessions)
