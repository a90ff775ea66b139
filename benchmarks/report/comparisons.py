"""Who predicts best, how sure that is, and what the first screen says of it in words.

Rows are ranked as everywhere (sorted_rows). Each is compared, step by step, with the best row that is no
reference; a reference, such as the demo shop's own policy, knows what no agent can.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import product

from benchmarks.report.evidence import OUTCOMES, RIGHT, Evidence, Judged, JudgedStep
from replay_sessions.foundation.progress import progress_bar
from replay_sessions.foundation.table import Column, Estimate, Table, format_cell
from shop_env.evaluation.comparing import Comparison, adjusted, compare_records
from shop_env.evaluation.results import ResultRow, errors_as_misses

COMPARED = {"exact_accuracy": "exact match", "type_f1_macro": "macro-F1"}


def leader(evidence: Evidence) -> ResultRow | None:
    """The best of the ranked agents; None where none answered every step."""
    agents = [row for row in evidence.rows if row.ranked and not row.known and row.label in evidence.records]
    return next((row for row in agents if row.label not in evidence.references), agents[0] if agents else None)


def differences(evidence: Evidence) -> list[Comparison]:
    """Each row less the best one, then what the run itself has compared; steps without a reply count as misses."""
    best, config, training = leader(evidence), evidence.config, evidence.log.training
    own = training.comparisons if training else []
    if best is None:
        return own
    others = [label for label in evidence.labels if label != best.label]
    records = {label: errors_as_misses(steps) for label, steps in evidence.records.items()}
    compared = []
    with progress_bar("differences", len(others) * len(COMPARED)) as advance:
        for label, metric in product(others, COMPARED):
            compared.append(
                compare_records(records, label, best.label, metric, cluster=config.cluster, preset=config.metrics)
            )
            advance(1)
    pairs = {(test.first, test.second, test.metric) for test in compared}
    return adjusted(compared + [test for test in own if (test.first, test.second, test.metric) not in pairs])


def headline(evidence: Evidence, compared: Sequence[Comparison], judged: Judged) -> list[str]:
    """Who predicts best; how sure that is; where it goes wrong: a sentence each."""
    best = leader(evidence)
    if best is None:
        return ["No agent answered every step, so none is ranked."]
    exact = best.figures.get("exact_accuracy")
    if exact is None:
        return ["The log knows no step's complete action, so nothing can match it exactly."]
    against = [test for test in compared if test.second == best.label and test.metric == "exact_accuracy"]
    rivals = sorted(
        (test for test in against if test.first not in evidence.references),
        key=lambda test: -test.difference,
    )
    verdict = "predicts best" if all(test.sign < 0 for test in rivals) else "is ahead, but not significantly"
    return [
        f"{best.label} {verdict}: {format_cell(exact.value, 'percent')}% of steps exactly as the shopper did.",
        " ".join(_certainty(evidence, best, exact, rivals, against)),
        *_where_wrong(judged[best.label]),
    ]


def _certainty(
    evidence: Evidence, best: ResultRow, exact: Estimate, rivals: Sequence[Comparison], against: Sequence[Comparison]
) -> Iterator[str]:
    if exact.low is not None:
        yield f"Over {best.steps:,} steps: {format_cell(exact, 'percent')}% with its 95% interval."
    if rivals:
        nearest, *others = rivals
        low, high = (None if end is None else -end for end in (nearest.high, nearest.low))
        ahead = format_cell(Estimate(-nearest.difference, low, high), "difference")
        yield f"It is {ahead} points from {nearest.first}{_unless_significant(nearest)}."
        if tied := [comparison.first for comparison in others if not comparison.significant]:
            yield f"Not significantly different from it either: {', '.join(tied)}."
    if references := [comparison for comparison in against if comparison.first in evidence.references]:
        most = max(references, key=lambda comparison: comparison.difference)
        yield f"The shoppers' own policy, {most.first}, is {most.text()} from it{_unless_significant(most)}."


def _unless_significant(comparison: Comparison) -> str:
    return "" if comparison.significant else f" ({comparison.verdict})"


def _where_wrong(judged: Sequence[JudgedStep]) -> list[str]:
    wrong = Counter(step.outcome for step in judged if step.outcome not in (RIGHT, "unknown"))
    total = sum(wrong.values())
    if not total:
        return []
    parts = [f"it {OUTCOMES[outcome]} in {100 * count / total:.0f}% of them" for outcome, count in wrong.most_common(3)]
    return [f"It is wrong at {total:,} steps: {'; '.join(parts)}."]


def differences_table(comparisons: Sequence[Comparison]) -> Table:
    return Table(
        name="differences",
        title="Paired differences on the same steps",
        columns=[
            Column("agent", name="first"),
            Column("less", name="second"),
            Column("metric"),
            Column("points", "difference", "difference"),
            Column("p", "p"),
            Column("Holm p", "p", "holm_p"),
            Column("verdict"),
        ],
        rows=[
            [
                *(comparison.first, comparison.second, COMPARED.get(comparison.metric, comparison.metric)),
                *(comparison.estimate, comparison.p_value, comparison.holm_p_value, comparison.verdict),
            ]
            for comparison in comparisons
        ],
        notes=[
            "In brackets 95% intervals (CR2 over users). p: t test over users, beside it adjusted for the metrics of "
            "the same two agents (Holm); significant: adjusted p ≤ 0.05."
        ],
    )
