"""Compares two agents on the same steps: the difference of a metric, and whether it is significant.

    records of both ─► compare_records ─► Comparison ─► adjusted (Holm) ─► verdict, sentence

A difference is significant if the p value of the CR2 t test over users is at most 5%, Holm-adjusted over the metrics
that are compared for the same two agents. All comparisons of agents use this module: the training run, the leaderboard,
sweeps and the report.
"""

from collections.abc import Mapping, Sequence

import msgspec

from replay_sessions.foundation.table import format_cell
from shop_env.evaluation.results import difference_unit
from shop_env.metrics import PairedTest, StepRecord, paired_test
from shop_env.metrics.clustered_errors import MIN_CLUSTERS, holm
from shop_env.metrics.intervals import Cluster

LEVEL = 0.05
_ERRORS_AND_LOSSES = """
nll brier calibration_error top1_calibration_error invalid_rate empty_rationale_rate page_cut_rate
pages_lost_rate too_long_rate stop_brier stop_too_early stop_too_late"""
LOWER_IS_BETTER = tuple(_ERRORS_AND_LOSSES.split())


class Comparison(PairedTest):
    """A metric of `first` minus that of `second` on the same steps.

    Attributes:
        first, second: The labels of the two agents.
        metric: The name of the metric, as in `ResultRow.figures`.
        cluster: The clusters of the interval and the test: users or sessions.
        holm_p_value: The p value, adjusted for all metrics that are compared for the same two agents.
        by_seed: The difference in each seed, if the agents have several seeds.
        equal_within: The smallest margin within which two one-sided tests at 5% find the two equal.
    """

    first: str
    second: str
    metric: str
    cluster: Cluster = "user"
    holm_p_value: float | None = None
    by_seed: tuple[float, ...] = ()
    equal_within: float | None = None

    @property
    def significant(self) -> bool:
        return is_significant(self.p_value if self.holm_p_value is None else self.holm_p_value)

    @property
    def sign(self) -> int:
        """1 if `first` is significantly better, -1 if it is significantly worse, else 0."""
        better = (self.difference > 0) != (self.metric in LOWER_IS_BETTER)
        return (1 if better else -1) if self.significant else 0

    @property
    def verdict(self) -> str:
        if not self.steps:
            return "one of them has no such metric"
        if self.p_value is None:
            return f"not tested: fewer than {MIN_CLUSTERS} {self.cluster}s"
        return {1: "significantly better", 0: "not significant", -1: "significantly worse"}[self.sign]

    def text(self) -> str:
        """Formats the difference with its interval: `+5.2 [3.9, 6.4] points`."""
        unit = difference_unit(self.metric)
        return format_cell(self.estimate, unit) + (" points" if unit == "difference" else "")

    def sentence(self) -> str:
        tested = ""
        if self.p_value is not None:
            adjusted = "" if self.holm_p_value is None else f", Holm {self.holm_p_value:.2g}"
            tested = f" (p {self.p_value:.2g}{adjusted}, {self.clusters} {self.cluster}s)"
        seeds = ", ".join(format_cell(value, difference_unit(self.metric)) for value in self.by_seed)
        seeds = f", by seed {seeds}" if len(self.by_seed) > 1 else ""
        equal = ""
        if self.equal_within is not None and not self.significant:
            margin = format_cell(self.equal_within, difference_unit(self.metric)).lstrip("+")
            equal = f"; equal within ±{margin} (two one-sided tests at 5%)"
        return f"{self.first} − {self.second}, {self.metric}: {self.text()}{seeds}: {self.verdict}{tested}{equal}."


def compare_records(
    records: Mapping[str, Sequence[StepRecord]],
    first: str,
    second: str,
    metric: str,
    *,
    cluster: Cluster = "user",
    preset: str = "shop_r1",
) -> Comparison:
    """Computes the difference of a metric, `first` minus `second`, with its interval and test.

    Args:
        records: Records by the agent's label; those of both agents are of the same steps.
        cluster: The clusters of the interval and the test: users or sessions.
        preset: The choices of the metrics (shop_env/metrics/presets.py).
    """
    test = paired_test(records[first], records[second], metric, cluster=cluster, preset=preset)
    test = test or PairedTest(difference=float("nan"), clusters=0, steps=0)
    return Comparison(first=first, second=second, metric=metric, cluster=cluster, **msgspec.structs.asdict(test))


def adjusted(comparisons: Sequence[Comparison]) -> list[Comparison]:
    """Returns the comparisons with p values adjusted by Holm over the metrics of the same two agents."""
    pairs: dict[tuple[str, str], list[float]] = {}
    for comparison in comparisons:
        if comparison.p_value is not None:
            pairs.setdefault((comparison.first, comparison.second), []).append(comparison.p_value)
    p_values = {pair: iter(holm(p_values)) for pair, p_values in pairs.items()}
    return [
        comparison
        if comparison.p_value is None
        else msgspec.structs.replace(comparison, holm_p_value=next(p_values[comparison.first, comparison.second]))
        for comparison in comparisons
    ]


def is_significant(p_value: float | None) -> bool:
    """Returns whether a p value is at most 5%; None means not tested. With several tests pass the adjusted value."""
    return p_value is not None and p_value <= LEVEL
