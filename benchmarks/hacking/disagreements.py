"""Where a reward puts two policies in another order than their worth does.

For every pair of policies that answer differently somewhere: which one the reward pays more, and which one is worth
more, each told apart or not by the 95% interval of the paired difference over users.

| verdict | reward | worth |
|---|---|---|
| `agrees` | a above b | a above b |
| `opposite` | a above b | b above a |
| `unfounded` | a above b | cannot be told apart |
| `blind` | cannot be told apart | one above the other |
| `silent` | cannot be told apart | cannot be told apart |
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from benchmarks.hacking.earned import Answers, rescored
from shop_env.metrics import StepRecord, metric_preset
from shop_env.metrics.all_metrics import find_metric
from shop_env.metrics.cluster_sums import user_sums
from shop_env.metrics.intervals import difference_interval
from shop_env.metrics.shares_and_f1 import Metric
from shop_env.metrics.step_table import StepTable
from shop_env.reward import RewardConfig

__all__ = ["Disagreements", "Gap", "Opposite", "Verdict", "disagreements", "verdict"]

Verdict = Literal["agrees", "opposite", "unfounded", "blind", "silent"]
WORTH = ("exact_accuracy", "type_f1_macro")
Floats = NDArray[np.float64]


class Gap(msgspec.Struct, frozen=True):
    """A paired difference with the ends of its 95% interval over users."""

    difference: float
    low: float
    high: float

    @property
    def sign(self) -> int:
        """Of the difference where it is told apart from none, else 0."""
        return (self.low > 0) - (self.high < 0)


class Opposite(msgspec.Struct, frozen=True, kw_only=True):
    """`paid_more` earns more than `worth_more`, and is worth less."""

    paid_more: str
    worth_more: str
    reward: Gap
    worth: Gap


class Disagreements(msgspec.Struct, frozen=True, kw_only=True):
    """One reward beside one worth.

    Attributes:
        pairs: How many there are of each verdict.
        opposite: Those pairs, the largest difference of rewards first.
    """

    reward: str
    worth: str
    pairs: dict[str, int]
    opposite: list[Opposite]


def disagreements(
    policies: Sequence[Answers], rewards: Mapping[str, RewardConfig], *, samples: int
) -> list[Disagreements]:
    """Every reward beside exact accuracy and beside macro-F1."""
    distinct = _distinct(policies)
    worths = {name: _gaps(name, {one.label: one.records for one in distinct}, samples) for name in WORTH}
    found = []
    for reward, config in rewards.items():
        paid = _gaps("mean_reward", {one.label: rescored(one, config)[0] for one in distinct}, samples)
        found += [_compared(reward, paid, worth, gaps) for worth, gaps in worths.items()]
    return found


def verdict(paid: Gap, worth: Gap) -> Verdict:
    """What a pair's two differences say together.

    >>> verdict(Gap(1.0, 0.5, 1.5), Gap(-0.1, -0.2, -0.05))
    'opposite'
    """
    if not paid.sign:
        return "blind" if worth.sign else "silent"
    if not worth.sign:
        return "unfounded"
    return "agrees" if paid.sign == worth.sign else "opposite"


def _compared(
    reward: str, paid: Mapping[tuple[str, str], Gap], worth: str, worths: Mapping[tuple[str, str], Gap]
) -> Disagreements:
    verdicts = {pair: verdict(paid[pair], worths[pair]) for pair in paid}
    opposite = [
        Opposite(paid_more=a, worth_more=b, reward=paid[a, b], worth=worths[a, b])
        if paid[a, b].sign > 0
        else Opposite(paid_more=b, worth_more=a, reward=_turned(paid[a, b]), worth=_turned(worths[a, b]))
        for (a, b), said in verdicts.items()
        if said == "opposite"
    ]
    opposite.sort(key=lambda one: -one.reward.difference)
    return Disagreements(reward=reward, worth=worth, pairs=dict(Counter(verdicts.values())), opposite=opposite)


def _turned(gap: Gap) -> Gap:
    return Gap(-gap.difference, -gap.high, -gap.low)


def _distinct(policies: Sequence[Answers]) -> list[Answers]:
    """Without those that do what an earlier one does at every step."""
    found: dict[str, Answers] = {}
    for one in policies:
        found.setdefault(repr([record.predicted for record in one.records]), one)
    return list(found.values())


def _gaps(metric: str, records: Mapping[str, Sequence[StepRecord]], samples: int) -> dict[tuple[str, str], Gap]:
    choices = metric_preset("shop_r1")
    found = find_metric(metric, choices)
    sums = {label: user_sums(found, StepTable(rows, choices)) for label, rows in records.items()}
    return {(a, b): _gap(found, sums[a], sums[b], samples) for a, b in combinations(sums, 2)}


def _gap(metric: Metric, a: Floats, b: Floats, samples: int) -> Gap:
    difference = float(metric.value(a.sum(axis=0)) - metric.value(b.sum(axis=0)))
    return Gap(difference, *difference_interval(metric, a, b, samples=samples))
