"""Intervals over users (or sessions), linearised for F1: the jackknife's of a metric, CR2's of a difference."""

import random
import time

import msgspec
import numpy as np
import pytest
from scipy import stats
from scipy.special import expit, logit

from replay_sessions.foundation.errors import BadConfig
from replay_sessions.foundation.table import Estimate
from replay_sessions.schema import Click
from shop_env.metrics import MetricChoices, StepRecord, estimate_metric, paired_test, step_metrics
from shop_env.metrics.all_metrics import all_metrics
from shop_env.metrics.intervals import estimate_metrics
from tests.shop_env.planted import answer, copy_the_log, noisy, random_sessions, ten_steps


def width(estimate: Estimate) -> float:
    assert estimate.low is not None and estimate.high is not None
    return estimate.high - estimate.low


def by_user(records: list[StepRecord]) -> dict[str, list[StepRecord]]:
    users: dict[str, list[StepRecord]] = {}
    for record in records:
        users.setdefault(record.user_id, []).append(record)
    return users


@pytest.mark.parametrize("metric", ["exact_accuracy", "mean_reward"])
def test_the_interval_of_a_mean_is_that_of_clustered_residuals(metric: str) -> None:
    records = answer(random_sessions(60, 1, users=12), noisy(0.5, 1))
    values = {
        user: [float(r.predicted == r.logged) if metric == "exact_accuracy" else r.reward for r in own]
        for user, own in by_user(records).items()
    }
    steps = sum(map(len, values.values()))
    mean = sum(map(sum, values.values())) / steps
    shares = np.array([len(own) / steps for own in values.values()])
    residuals = np.array([sum(value - mean for value in own) / steps for own in values.values()])
    changes = residuals / (1 - shares)  # without one user after another
    freedom = np.sum(changes**2) ** 2 / np.sum(changes**4)
    margin = stats.t.ppf(0.975, freedom) * np.sqrt(np.sum(changes**2))
    low, high = mean - margin, mean + margin
    if metric == "exact_accuracy":
        reach = margin / (mean * (1 - mean))
        low, high = (float(expit(logit(mean) + shift)) for shift in (-reach, reach))
    estimate = estimate_metric(records, metric)
    assert 1 <= freedom <= len(values)
    assert (estimate.value, estimate.low, estimate.high) == pytest.approx((mean, low, high))


@pytest.mark.parametrize(
    ("metric", "preset"),
    [
        ("type_f1_macro", "shop_r1"),
        ("exact_accuracy_shop_r1_mix", "shop_r1"),
        ("type_f1_weighted_shop_r1_mix", "lu_2025"),
        ("exact_accuracy", "shop_r1,mix=1:20:40"),
    ],
)
def test_f1_and_a_mix_of_types_have_the_interval_that_leaving_out_users_foretells(metric: str, preset: str) -> None:
    often, seldom = noisy(0.9, 3), noisy(0.2, 3)
    sessions = random_sessions(400, 3, users=40)
    records = answer(sessions, lambda s, i: (seldom if isinstance(s.steps[i].action, Click) else often)(s, i))
    estimate = estimate_metric(records, metric, preset=preset)
    left_out = [step_metrics([r for r in records if r.user_id != user], preset)[metric] for user in by_user(records)]
    changes = np.array(left_out) - np.mean(left_out)
    freedom = np.sum(changes**2) ** 2 / np.sum(changes**4)
    jackknife = np.sqrt(39 / 40 * np.sum(changes**2))
    slope = estimate.value * (1 - estimate.value)
    reach = slope * (logit(estimate.high) - logit(estimate.low)) / 2
    assert reach == pytest.approx(stats.t.ppf(0.975, freedom) * jackknife, rel=0.05)


def test_macro_f1_has_no_interval_where_a_type_has_few_right_predictions() -> None:
    records = answer(random_sessions(400, 3, users=40), noisy(0.5, 3))
    right = [r for r in records if r.predicted == r.logged and r.logged["type"] == "terminate"]
    few = [r for r in records if r not in right[19:]]
    assert estimate_metric([*few, right[19]], "type_f1_macro").low is not None
    assert estimate_metric(few, "type_f1_macro").low is None
    assert estimate_metric(few, "exact_accuracy").low is not None


def test_intervals_are_wider_over_users_than_over_sessions_when_users_differ() -> None:
    sessions = random_sessions(200, 2, users=10)
    records = answer(sessions, lambda s, i: s.steps[i].action if s.user_id in ("u0", "u1", "u2") else "?")
    over_sessions = estimate_metric(records, "exact_accuracy", cluster="session")
    assert width(estimate_metric(records, "exact_accuracy", cluster="user")) > width(over_sessions)


def test_users_are_what_counts_unless_a_caller_says_otherwise() -> None:
    records = answer(random_sessions(60, 2, users=9), noisy(0.5, 2))
    assert estimate_metric(records, "type_f1") == estimate_metric(records, "type_f1", cluster="user")
    other = answer(random_sessions(60, 2, users=9), noisy(0.3, 5))
    over_users = paired_test(records, other, "type_f1", cluster="user").estimate
    assert paired_test(records, other, "type_f1").estimate == over_users
    assert over_users.low is not None


def test_all_metrics_at_once_are_those_one_by_one() -> None:
    records = answer(random_sessions(60, 4, users=9), noisy(0.5, 4))
    estimates = estimate_metrics(records)
    assert estimates.keys() == step_metrics(records).keys() & all_metrics(MetricChoices()).keys()
    assert all(estimates[name] == estimate_metric(records, name) for name in estimates)
    assert estimate_metrics([]) == {}


def test_an_interval_ends_where_its_metric_does() -> None:
    rare = random.Random(1)
    records = answer(random_sessions(60, 1, users=12), lambda s, i: s.steps[i].action if rare.random() < 0.02 else "?")
    estimate = estimate_metric(records, "exact_accuracy")
    assert estimate.low is not None and 0 < estimate.low < estimate.value
    errors = estimate_metric(records, "invalid_rate")
    assert errors.high is not None and errors.value < errors.high < 1


@pytest.mark.parametrize("users", [2, 7])
def test_fewer_than_eight_users_have_no_interval_and_no_test(users: int) -> None:
    sessions = random_sessions(60, 6, users=users)
    a, b = answer(sessions, noisy(0.7, 6)), answer(sessions, noisy(0.3, 7))
    assert estimate_metric(a, "exact_accuracy").low is None
    test = paired_test(a, b, "exact_accuracy")
    assert test is not None and test.clusters == users
    assert (test.low, test.high, test.p_value, test.smallest_difference) == (None, None, None, None)
    eight = random_sessions(60, 6, users=8)
    assert estimate_metric(answer(eight, noisy(0.7, 6)), "exact_accuracy").low is not None


def test_users_who_are_all_alike_have_no_interval() -> None:
    records = answer(random_sessions(60, 1, users=12), copy_the_log)
    assert estimate_metric(records, "exact_accuracy") == Estimate(1.0)
    large, none = ([msgspec.structs.replace(r, reward=reward) for r in records] for reward in (1000.3, 0.0))
    assert estimate_metric(large, "mean_reward") == Estimate(pytest.approx(1000.3))
    test = paired_test(large, none, "mean_reward")
    assert test is not None and (test.low, test.p_value) == (None, 2.0**-11)


def test_an_agent_does_not_differ_from_itself() -> None:
    records = answer(random_sessions(20, 4, users=10), noisy(0.5, 4))
    assert paired_test(records, records, "type_f1_macro").estimate == Estimate(0.0)


def test_pairing_sees_a_small_difference_that_two_intervals_do_not() -> None:
    sessions = random_sessions(300, 5, users=12)
    worse = answer(sessions, noisy(0.5, 5))
    gain = random.Random(6)
    better = [
        record if record.predicted == record.logged or gain.random() > 0.06 else right
        for record, right in zip(worse, answer(sessions, copy_the_log), strict=True)
    ]
    difference = paired_test(better, worse, "exact_accuracy", cluster="user").estimate
    assert difference.low is not None and difference.high is not None
    assert 0 < difference.low < difference.value < difference.high
    expected = step_metrics(better)["exact_accuracy"] - step_metrics(worse)["exact_accuracy"]
    assert difference.value == pytest.approx(expected)
    high, low = estimate_metric(worse, "exact_accuracy").high, estimate_metric(better, "exact_accuracy").low
    assert high is not None and low is not None and high > low


def test_order_of_records_does_not_matter_to_a_pair() -> None:
    sessions = random_sessions(20, 7, users=9)
    a, b = answer(sessions, noisy(0.7, 7)), answer(sessions, noisy(0.3, 8))
    assert paired_test(a, b, "type_accuracy").estimate == paired_test(a, b[::-1], "type_accuracy").estimate


def test_steps_that_one_agent_failed_are_left_out_for_both() -> None:
    a = answer(ten_steps(), lambda s, i: None if s.session_id == "a" else s.steps[i].action)
    b = answer(ten_steps(), lambda s, i: s.steps[i].action if s.session_id == "a" else "?")
    assert paired_test(a, b, "exact_accuracy").estimate == Estimate(1.0)


def test_different_steps_cannot_be_paired() -> None:
    a = answer(ten_steps(), lambda s, i: Click(name="x"))
    with pytest.raises(
        BadConfig, match=r"not evaluated on the same steps: 1 steps have only one .* step 3 of session 'c'"
    ):
        paired_test(a, a[:-1], "exact_accuracy")


def test_wrong_settings_are_named() -> None:
    records = answer(ten_steps(), lambda s, i: Click(name="x"))
    with pytest.raises(BadConfig, match=r"Unknown metric 'exact'"):
        estimate_metric(records, "exact")
    with pytest.raises(BadConfig, match="cluster is 'shop'; it must be 'session' or 'user'"):
        estimate_metric(records, "exact_accuracy", cluster="shop")  # type: ignore[arg-type]
    with pytest.raises(BadConfig, match="no scored steps"):
        estimate_metric([], "exact_accuracy")


def test_a_metric_without_steps_has_no_interval() -> None:
    records = [r for r in answer(ten_steps(), lambda s, i: Click(name="x")) if r.logged["type"] == "click"]
    estimate = estimate_metric(records, "exact_accuracy_terminate")
    assert np.isnan(estimate.value) and estimate.low is None


def test_all_intervals_of_ten_thousand_steps_take_well_under_two_seconds() -> None:
    records = answer(random_sessions(2_300, 9), noisy(0.6, 9))
    assert len(records) > 10_000
    begin = time.process_time()
    estimate_metrics(records, preset=MetricChoices())
    assert time.process_time() - begin < 2
