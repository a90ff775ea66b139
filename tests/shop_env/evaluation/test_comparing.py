"""A comparison holds one interval and one test, and its verdict and sentence follow from the adjusted p."""

import re

import msgspec
import pytest

from replay_sessions.foundation.table import Estimate
from replay_sessions.schema import Click
from shop_env.evaluation.comparing import Comparison, adjusted, compare_records
from shop_env.evaluation.results import METRIC_COLUMNS
from shop_env.metrics import MetricChoices, paired_test
from shop_env.metrics.all_metrics import all_metrics
from tests.shop_env.planted import answer, random_sessions

SESSIONS = random_sessions(60, 1, users=10)
RECORDS = {
    "right": answer(SESSIONS, lambda session, index: session.steps[index].action),
    "cart": answer(SESSIONS, lambda session, index: Click(name="cart")),
}


def test_it_holds_the_interval_and_the_test():
    comparison = compare_records(RECORDS, "right", "cart", "exact_accuracy")
    test = paired_test(RECORDS["right"], RECORDS["cart"], "exact_accuracy")
    assert {name: getattr(comparison, name) for name in test.__struct_fields__} == msgspec.structs.asdict(test)


def test_the_sentence_says_the_interval_the_verdict_the_p_and_the_users():
    comparison = Comparison(
        first="a",
        second="b",
        metric="exact_accuracy",
        difference=0.052,
        low=0.039,
        high=0.064,
        p_value=0.0123,
        clusters=15,
        steps=300,
    )
    expected = "a − b, exact_accuracy: +5.2 [3.9, 6.4] points: significantly better (p 0.012, 15 users)."
    assert comparison.sentence() == expected
    twice = msgspec.structs.replace(comparison, holm_p_value=0.06, by_seed=(0.05, 0.054))
    assert twice.sentence() == (
        "a − b, exact_accuracy: +5.2 [3.9, 6.4] points, by seed +5.0, +5.4: not significant (p 0.012, Holm 0.06, "
        "15 users)."
    )
    equal = msgspec.structs.replace(twice, equal_within=0.071).sentence()
    assert equal.endswith("15 users); equal within ±7.1 (two one-sided tests at 5%).")
    reward = msgspec.structs.replace(comparison, metric="mean_reward", difference=-1.5, low=-2.0, high=-1.0)
    assert reward.sentence().startswith("a − b, mean_reward: −1.50 [−2.00, −1.00]: significantly worse")


def test_the_adjusted_p_decides():
    comparison = compare_records(RECORDS, "right", "cart", "exact_accuracy")
    assert comparison.p_value is not None and comparison.p_value < 0.001
    assert (comparison.sign, comparison.significant) == (1, True)
    adjusted_away = msgspec.structs.replace(comparison, holm_p_value=0.2)
    assert (adjusted_away.sign, adjusted_away.verdict) == (0, "not significant")
    assert compare_records(RECORDS, "cart", "right", "exact_accuracy").verdict == "significantly worse"


def test_holm_goes_over_the_metrics_of_the_same_two():
    def compared(first: str, metric: str, p_value: float | None) -> Comparison:
        comparison = compare_records(RECORDS, "right", "cart", "exact_accuracy")
        return msgspec.structs.replace(comparison, first=first, metric=metric, p_value=p_value)

    given = [
        compared("a", "x", 0.04),
        compared("b", "x", 0.04),
        compared("a", "w", None),
        compared("a", "y", 0.01),
        compared("a", "z", 0.03),
    ]
    assert [one.holm_p_value for one in adjusted(given)] == [pytest.approx(0.06), 0.04, None, 0.03, pytest.approx(0.06)]


@pytest.mark.parametrize("metric", sorted({*all_metrics(MetricChoices()), *METRIC_COLUMNS}))
def test_every_metric_has_a_direction(metric):
    better = bool(re.search("accuracy|f1|reward|agreement|similarity|coverage|shown", metric))
    assert better != bool(re.search("nll|brier|error$|rate$|too_", metric))
    more = Comparison(first="a", second="b", metric=metric, difference=0.1, p_value=0.001, clusters=20, steps=200)
    assert more.verdict == ("significantly better" if better else "significantly worse")


def test_a_comparison_survives_its_file():
    comparison = compare_records(RECORDS, "right", "cart", "type_f1_macro")
    assert msgspec.json.decode(msgspec.json.encode(comparison), type=Comparison) == comparison


@pytest.mark.parametrize("users", [1, 2, 7])
def test_too_few_users_are_not_tested(users):
    names = [f"u{number}" for number in range(users)]
    few = {label: [r for r in side if r.user_id in names] for label, side in RECORDS.items()}
    comparison = compare_records(few, "right", "cart", "exact_accuracy")
    assert comparison.estimate == Estimate(comparison.difference) and not comparison.significant
    assert comparison.sentence().endswith("points: not tested: fewer than 8 users.")
