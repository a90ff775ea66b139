"""Who predicts best, how sure that is, and what the first screen says of it in words.

Rows are ranked as everywhere (agents.results.sorted_rows). Each is compared, step by step, with the best row that is no
reference; a reference, such as the demo shop's own policy, knows what no agent can.
"""

from collections import Counter
from collections.abc import Sequence
from itertools import product

from agents.comparing import adjusted, compare_records
from agents.results import ALL_COLUMNS, IN_NATS, IN_POINTS, Comparison, Figure, ResultRow, errors_as_misses, sorted_rows
from benchmarks.report.evidence import Evidence
from benchmarks.report.judged_steps import OUTCOMES, RIGHT, JudgedStep
from benchmarks.report.tables import Cell, Column, Table, Unit
from replay_sessions.progress_bar import progress_bar

__all__ = ["COMPARED", "differences", "differences_table", "headline", "leader", "ranking", "ranking_table"]

COMPARED = {"exact_accuracy": "exact match", "type_f1_macro": "macro-F1"}


def ranking(evidence: Evidence) -> list[ResultRow]:
    """All rows, best first."""
    return sorted_rows(evidence.rows)


def leader(evidence: Evidence) -> ResultRow | None:
    """The best of the ranked agents; None where none answered every step."""
    agents = [row for row in ranking(evidence) if row.ranked and not row.known and row.label in evidence.records]
    return next((row for row in agents if row.label not in evidence.references), agents[0] if agents else None)


def differences(evidence: Evidence) -> list[Comparison]:
    """Each row less the best one, then what the run itself has compared."""
    best = leader(evidence)
    if best is None:
        return list(evidence.declared)
    others = [row.label for row in ranking(evidence) if row.label in evidence.records and row.label != best.label]
    found = []
    with progress_bar("differences", len(others) * len(COMPARED)) as advance:
        for label, metric in product(others, COMPARED):
            found.append(_difference(evidence, label, best.label, metric))
            advance(1)
    known = {(one.first, one.second, one.metric) for one in found}
    return adjusted([*found, *(one for one in evidence.declared if (one.first, one.second, one.metric) not in known)])


def _difference(evidence: Evidence, first: str, second: str, metric: str) -> Comparison:
    """Steps without a reply count as misses."""
    counting = evidence.counting
    return compare_records(
        {label: errors_as_misses(evidence.records[label]) for label in (first, second)},
        first,
        second,
        metric,
        cluster=counting.cluster,
        samples=counting.samples,
        seed=counting.seed,
        preset=counting.metrics,
    )


def headline(evidence: Evidence, found: Sequence[Comparison], judged: dict[str, list[JudgedStep]]) -> list[str]:
    """Who predicts best; how sure that is; where it goes wrong: a sentence each."""
    best = leader(evidence)
    if best is None:
        return ["No agent answered every step, so none is ranked."]
    exact = best.figures.get("exact_accuracy")
    if exact is None:
        return ["The log knows no step's whole action, so nothing can match it exactly."]
    rivals = _rivals(evidence, best, found)
    verdict = "predicts best" if all(one.told_apart for one in rivals) else "is ahead, but not clearly"
    return [
        f"{best.label} {verdict}: {_points(exact.value)}% of steps exactly as the shopper did.",
        *_how_sure(evidence, best, exact, found),
        *_where_wrong(judged[best.label]),
    ]


def _rivals(evidence: Evidence, best: ResultRow, found: Sequence[Comparison]) -> list[Comparison]:
    """The other agents less the best one, the nearest first."""
    against = [one for one in found if one.second == best.label and one.metric == "exact_accuracy"]
    return sorted((one for one in against if one.first not in evidence.references), key=lambda one: -one.difference)


def _how_sure(evidence: Evidence, best: ResultRow, exact: Figure, found: Sequence[Comparison]) -> list[str]:
    said = []
    if exact.low is not None and exact.high is not None:
        said.append(f"Over {best.steps:,} steps: 95% interval {_points(exact.low)} to {_points(exact.high)}%.")
    rivals = _rivals(evidence, best, found)
    if rivals:
        near = rivals[0]
        low, high = near.ends
        ends = f"95%: {_points(-high)} to {_points(-low)}"
        said.append(f"It stands {_points(-near.difference)} points above {near.first} ({ends}){_verdict(near)}.")
    if tied := [one.first for one in rivals[1:] if not one.told_apart]:
        said.append(f"Not told apart from it either: {', '.join(tied)}.")
    against = [one for one in found if one.second == best.label and one.metric == "exact_accuracy"]
    if of_reference := [one for one in against if one.first in evidence.references]:
        most = max(of_reference, key=lambda one: one.difference)
        ends = " to ".join(map(_points, most.ends))
        more = f"{_points(most.difference)} points above it (95%: {ends})"
        said.append(f"The shoppers' own policy, {most.first}, stands {more}{_verdict(most)}.")
    return [" ".join(said)]


def _verdict(one: Comparison) -> str:
    return "" if one.told_apart else ": the two cannot be told apart"


def _points(share: float) -> str:
    return f"{100 * share:.1f}".replace("-", "−")


def _where_wrong(judged: Sequence[JudgedStep]) -> list[str]:
    wrong = Counter(step.outcome for step in judged if step.outcome not in (RIGHT, "unknown"))
    total = sum(wrong.values())
    if not total:
        return []
    parts = [f"it {OUTCOMES[outcome]} in {100 * count / total:.0f}% of them" for outcome, count in wrong.most_common(3)]
    return [f"It is wrong at {total:,} steps: {'; '.join(parts)}."]


def ranking_table(evidence: Evidence) -> Table:
    """Every column that a row has, as the run's own table shows them, with all intervals."""
    rows = ranking(evidence)
    names = [name for name in ALL_COLUMNS if any(name in row.figures for row in rows)]
    columns = [
        Column("agent", "agent"),
        *(Column(name, ALL_COLUMNS[name], _unit(name), with_interval=True) for name in names),
        Column("steps", "steps", "count"),
        Column("errors", "no reply", "count"),
    ]
    cells: list[Sequence[Cell]] = [
        [_label(row), *(row.figures.get(name) for name in names), row.steps, row.errors] for row in rows
    ]
    caption = f"Figures with 95% intervals (bootstrap over {evidence.counting.cluster}s); shares in percent"
    return Table("ranking", caption, columns, cells)


def _label(row: ResultRow) -> str:
    return row.label if row.ranked else f"{row.label} (not ranked: {row.errors} steps without a reply)"


def _unit(name: str) -> Unit:
    return "points" if name in IN_POINTS else "nats" if name in IN_NATS else "percent"


def differences_table(found: Sequence[Comparison]) -> Table:
    columns = [
        Column("first", "agent"),
        Column("second", "less"),
        Column("metric", "metric"),
        Column("difference", "points", "difference"),
        Column("low", "from", "difference"),
        Column("high", "to", "difference"),
        Column("told_apart", "told apart"),
        Column("t_low", "CR2 from", "difference"),
        Column("t_high", "CR2 to", "difference"),
        Column("sign_flips", "sign flips p", "p"),
        Column("holm", "Holm p", "p"),
    ]
    rows = [
        [one.first, one.second, COMPARED.get(one.metric, one.metric), one.difference, one.low, one.high,
         "yes" if one.told_apart else "no", *_tested(one)]
        for one in found
    ]  # fmt: skip
    caption = (
        "Paired differences on the same steps, with 95% intervals of a bootstrap over users and of CR2, the p of "
        "swapping the two user by user, and that p adjusted for the metrics of the same two (Holm)"
    )
    return Table("differences", caption, columns, rows)


def _tested(one: Comparison) -> list[Cell]:
    if one.test is None:
        return [None, None, None, None]
    return [one.test.low, one.test.high, one.test.sign_flip_p_value, one.holm_p_value]
