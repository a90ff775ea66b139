"""Where a reward puts two policies in another order than their worth does.

For every pair of policies that answer differently somewhere: which one the reward pays more, and which one is worth
more, each where the CR2 t test of the paired difference over users is significant at 5% (one test for each pair).

| verdict | reward | worth |
|---|---|---|
| `agrees` | a above b | a above b |
| `opposite` | a above b | b above a |
| `unfounded` | a above b | not significant |
| `blind` | not significant | one above the other |
| `silent` | not significant | not significant |
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Literal

import msgspec

from benchmarks.studies.reward_hacking.earnings import Answers, rescore
from replay_sessions.foundation.records import Record
from shop_env.evaluation.comparing import is_significant
from shop_env.metrics import StepRecord, paired_test
from shop_env.reward import RewardConfig

Verdict = Literal["agrees", "opposite", "unfounded", "blind", "silent"]
WORTH = ("exact_accuracy", "type_f1_macro")


class Gap(msgspec.Struct, frozen=True):
    """A paired difference, the ends of its 95% interval over users and its p; None with fewer than 8 users."""

    difference: float
    low: float | None
    high: float | None
    p_value: float | None = None

    @property
    def sign(self) -> int:
        """Of the difference where it is significant, else 0."""
        return (1 if self.difference > 0 else -1) if is_significant(self.p_value) else 0

    def __neg__(self) -> "Gap":
        low, high = (None if end is None else -end for end in (self.high, self.low))
        return Gap(-self.difference, low, high, self.p_value)


class Opposite(Record):
    """`paid_more` earns more than `worth_more`, and is worth less."""

    paid_more: str
    worth_more: str
    reward: Gap
    worth: Gap


class Disagreements(Record):
    """One reward beside one worth.

    Attributes:
        pairs: The number of pairs with each verdict.
        opposite: Those pairs, the largest difference of rewards first.
    """

    reward: str
    worth: str
    pairs: dict[str, int]
    opposite: list[Opposite]


def find_disagreements(policies: Sequence[Answers], rewards: Mapping[str, RewardConfig]) -> list[Disagreements]:
    """Every reward beside exact accuracy and beside macro-F1."""
    distinct: dict[str, Answers] = {}  # by their answers, the first of those that answer alike
    for policy in policies:
        distinct.setdefault(repr([record.predicted for record in policy.records]), policy)
    worths = {worth: _compute_gaps(worth, {p.label: p.records for p in distinct.values()}) for worth in WORTH}
    rows = []
    for reward, config in rewards.items():
        paid = _compute_gaps("mean_reward", {p.label: rescore(p, config)[0] for p in distinct.values()})
        for worth, gaps in worths.items():
            verdicts = {pair: verdict(paid[pair], gaps[pair]) for pair in paid}
            opposite = [
                Opposite(paid_more=a, worth_more=b, reward=paid[a, b], worth=gaps[a, b])
                if paid[a, b].sign > 0
                else Opposite(paid_more=b, worth_more=a, reward=-paid[a, b], worth=-gaps[a, b])
                for (a, b), result in verdicts.items()
                if result == "opposite"
            ]
            opposite.sort(key=lambda pair: -pair.reward.difference)
            counts = Counter[str](verdicts.values())
            rows.append(Disagreements(reward=reward, worth=worth, pairs=dict(counts), opposite=opposite))
    return rows


def verdict(paid: Gap, worth: Gap) -> Verdict:
    """What a pair's two differences say together.

    >>> verdict(Gap(1.0, 0.5, 1.5, 0.01), Gap(-0.1, -0.2, -0.05, 0.02))
    'opposite'
    """
    if not paid.sign:
        return "blind" if worth.sign else "silent"
    if not worth.sign:
        return "unfounded"
    return "agrees" if paid.sign == worth.sign else "opposite"


def _compute_gaps(metric: str, records: Mapping[str, Sequence[StepRecord]]) -> dict[tuple[str, str], Gap]:
    gaps = {}
    for a, b in combinations(records, 2):
        test = paired_test(records[a], records[b], metric)
        assert test is not None, "every policy answers every step"
        gaps[a, b] = Gap(test.difference, test.low, test.high, test.p_value)
    return gaps
