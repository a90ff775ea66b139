"""Intervals of metrics and paired tests from records: by hand, by leaving out users, by scipy, in both directions."""

import random
from functools import cache

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
from shop_env.metrics.clustered_errors import ClusteredError, smallest_difference
from shop_env.metrics.intervals import estimate_metrics
from shop_env.metrics.step_record import TOO_LONG
from tests.shop_env.planted import answer, copy_the_log, noisy, random_action, random_sessions, ten_steps

Sides = tuple[list[StepRecord], list[StepRecord]]


def by_user(records: list[StepRecord]) -> dict[str, list[StepRecord]]:
    users: dict[str, list[StepRecord]] = {}
    for record in records:
        users.setdefault(record.user_id, []).append(record)
    return users


@pytest.mark.parametrize("metric", ["exact_accuracy", "mean_reward"])
def test_the_interval_of_a_mean_is_that_of_clustered_residuals(metric):
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
        ("type_f1_weighted_shop_r1_mix", "lu_2025"),
        ("exact_accuracy", "shop_r1,mix=1:20:40"),
    ],
)
def test_intervals_of_f1_and_of_a_mix_of_types_follow_from_leaving_out_users(metric, preset):
    often, seldom = noisy(0.9, 3), noisy(0.2, 3)
    sessions = random_sessions(100, 3, users=20)
    records = answer(sessions, lambda s, i: (seldom if isinstance(s.steps[i].action, Click) else often)(s, i))
    estimate = estimate_metric(records, metric, preset=preset)
    left_out = [step_metrics([r for r in records if r.user_id != user], preset)[metric] for user in by_user(records)]
    changes = np.array(left_out) - np.mean(left_out)
    freedom = np.sum(changes**2) ** 2 / np.sum(changes**4)
    jackknife = np.sqrt(19 / 20 * np.sum(changes**2))
    slope = estimate.value * (1 - estimate.value)
    reach = slope * (logit(estimate.high) - logit(estimate.low)) / 2
    assert reach == pytest.approx(stats.t.ppf(0.975, freedom) * jackknife, rel=0.05)


def test_estimate_metrics_equals_estimate_metric_of_each_name():
    records = answer(random_sessions(60, 4, users=9), noisy(0.5, 4))
    estimates = estimate_metrics(records)
    assert estimates.keys() == step_metrics(records).keys() & all_metrics(MetricChoices()).keys()
    assert all(estimates[name] == estimate_metric(records, name) for name in estimates)
    assert estimate_metrics([]) == {}


def test_an_interval_stays_within_the_range_of_its_metric():
    rare = random.Random(1)
    records = answer(random_sessions(60, 1, users=12), lambda s, i: s.steps[i].action if rare.random() < 0.02 else "?")
    estimate = estimate_metric(records, "exact_accuracy")
    assert estimate.low is not None and 0 < estimate.low < estimate.value
    errors = estimate_metric(records, "invalid_rate")
    assert errors.high is not None and errors.value < errors.high < 1


@pytest.mark.parametrize("users", [2, 7])
def test_fewer_than_eight_users_have_no_interval_and_no_test(users):
    sessions = random_sessions(60, 6, users=users)
    a, b = answer(sessions, noisy(0.7, 6)), answer(sessions, noisy(0.3, 7))
    assert estimate_metric(a, "exact_accuracy").low is None
    test = paired_test(a, b, "exact_accuracy")
    assert test is not None and test.clusters == users
    assert (test.low, test.high, test.p_value, test.smallest_difference) == (None, None, None, None)
    eight = random_sessions(60, 6, users=8)
    assert estimate_metric(answer(eight, noisy(0.7, 6)), "exact_accuracy").low is not None


def test_an_agent_does_not_differ_from_itself():
    records = answer(random_sessions(30, 7, users=10), noisy(0.5, 7))
    test = paired_test(records, records, "type_f1_macro")
    assert (test.estimate, test.standard_error, test.p_value, test.smallest_difference) == (Estimate(0.0), 0, 1, None)


def test_a_paired_test_does_not_depend_on_the_order_of_records():
    sessions = random_sessions(20, 7, users=9)
    a, b = answer(sessions, noisy(0.7, 7)), answer(sessions, noisy(0.3, 8))
    assert paired_test(a, b, "type_accuracy").estimate == paired_test(a, b[::-1], "type_accuracy").estimate


def test_steps_that_one_agent_failed_are_left_out_for_both():
    a = answer(ten_steps(), lambda s, i: None if s.session_id == "a" else s.steps[i].action)
    b = answer(ten_steps(), lambda s, i: s.steps[i].action if s.session_id == "a" else "?")
    assert paired_test(a, b, "exact_accuracy").estimate == Estimate(1.0)


def test_different_steps_cannot_be_paired():
    a = answer(ten_steps(), lambda s, i: Click(name="x"))
    with pytest.raises(
        BadConfig, match=r"not evaluated on the same steps: 1 steps have only one .* step 3 of session 'c'"
    ):
        paired_test(a, a[:-1], "exact_accuracy")


def test_an_unknown_metric_or_cluster_is_refused_by_name():
    records = answer(ten_steps(), lambda s, i: Click(name="x"))
    with pytest.raises(BadConfig, match=r"Unknown metric 'exact'"):
        estimate_metric(records, "exact")
    with pytest.raises(BadConfig, match="cluster is 'shop'; it must be 'session' or 'user'"):
        estimate_metric(records, "exact_accuracy", cluster="shop")
    with pytest.raises(BadConfig, match="no scored steps"):
        estimate_metric([], "exact_accuracy")


def test_users_are_the_clusters_unless_the_caller_names_sessions():
    sessions = random_sessions(200, 2, users=10)
    records = answer(sessions, lambda s, i: s.steps[i].action if s.user_id in ("u0", "u1", "u2") else "?")
    over_users, over_sessions = (estimate_metric(records, "exact_accuracy", cluster=c) for c in ("user", "session"))
    assert over_users.low < over_sessions.low < over_sessions.high < over_users.high
    assert estimate_metric(records, "exact_accuracy") == over_users
    other = answer(sessions, noisy(0.3, 5))
    tests = {cluster: paired_test(records, other, "type_f1", cluster=cluster) for cluster in ("user", "session")}
    assert paired_test(records, other, "type_f1") == tests["user"] != tests["session"]


def test_users_with_the_same_values_have_no_interval():
    records = answer(random_sessions(60, 1, users=12), copy_the_log)
    assert estimate_metric(records, "exact_accuracy") == Estimate(1.0)
    large, none = ([msgspec.structs.replace(r, reward=reward) for r in records] for reward in (1000.3, 0.0))
    assert estimate_metric(large, "mean_reward") == Estimate(pytest.approx(1000.3))
    test = paired_test(large, none, "mean_reward")
    assert test is not None and (test.low, test.p_value) == (None, 2.0**-11)


def test_a_single_user_has_no_error_and_no_counted_step_is_no_test():
    sessions = [session for session in ten_steps() if session.user_id == "ada"]
    a, b = answer(sessions, noisy(1, 1)), answer(sessions, noisy(0, 2))
    alone, by_session = (paired_test(a, b, "exact_accuracy", cluster=cluster) for cluster in ("user", "session"))
    assert (alone.clusters, alone.standard_error, alone.p_value) == (1, None, None)
    assert by_session.clusters == 2 and by_session.standard_error is not None
    clicks = [r for r in answer(ten_steps(), lambda s, i: Click(name="x")) if r.logged["type"] == "click"]
    assert paired_test(clicks, clicks, "exact_accuracy_terminate") is None
    assert np.isnan(estimate_metric(clicks, "exact_accuracy_terminate").value)


def test_for_users_of_one_size_it_is_scipy_s_paired_t_test_of_their_accuracies():
    rng, session = random.Random(1), ten_steps()[0]
    step = session.steps[0]
    sessions = [
        msgspec.structs.replace(
            session,
            session_id=f"s{user}",
            user_id=f"u{user}",
            steps=(step, *(msgspec.structs.replace(step, action=random_action(rng)) for _ in range(4))),
        )
        for user in range(12)
    ]
    a, b = answer(sessions, noisy(0.8, 2)), answer(sessions, noisy(0.3, 3))
    of_users = [[np.mean([r.predicted == r.logged for r in own]) for own in by_user(side).values()] for side in (a, b)]
    expected, test = stats.ttest_rel(*of_users), paired_test(a, b, "exact_accuracy")
    assert test is not None and test.standard_error is not None
    assert (test.clusters, test.steps, test.degrees_of_freedom) == (12, 48, pytest.approx(11))
    assert test.difference == pytest.approx(np.mean(of_users[0]) - np.mean(of_users[1]))
    assert test.p_value == pytest.approx(expected.pvalue)
    assert (test.low, test.high) == pytest.approx(tuple(expected.confidence_interval()))
    assert test.smallest_difference == pytest.approx(smallest_difference(ClusteredError(test.standard_error, 11, 12)))


@cache
def planted_sides() -> Sides:
    """Two agents whose records hold a value of every metric but two."""
    rng, sessions = random.Random(5), random_sessions(80, 4, users=12)
    first, second = (
        [
            msgspec.structs.replace(
                r,
                logged_probability=rng.uniform(0.1, 0.3) * number,
                logged_rank=rng.randrange(1, 2 + 3 * number),
                logged_rationale=rng.choice(["I", "because of the price"]),
                predicted_rationale=rng.choice(["", " ", "I"]) if r.predicted else None,
                page_cut=rng.random() < 0.3 * number,
                target_shown=rng.random() < 0.3 * number,
                pages_left_out=rng.randrange(3),
                problem=TOO_LONG if rng.random() < 0.1 * number else r.problem,
            )
            for r in answer(sessions, noisy(share, number))
        ]
        for number, share in enumerate((0.7, 0.4), start=1)
    )
    return first, second


@pytest.mark.parametrize("metric", sorted(all_metrics(MetricChoices())))
@pytest.mark.parametrize("mean", ["steps", "sessions"])
def test_the_paired_test_of_every_metric_is_the_same_in_both_directions(metric, mean):
    a, b = planted_sides()
    preset = MetricChoices(mean=mean)
    test, other = paired_test(a, b, metric, preset=preset), paired_test(b, a, metric, preset=preset)
    if metric == "click_rule_agreement" or metric.endswith("_scroll"):  # these logs have no kinds of click, no scrolls
        assert test is None
        return
    assert test.low <= test.difference <= test.high
    assert (test.p_value < 0.05) == (not test.low <= 0 <= test.high)
    assert other is not None and other.low is not None and other.high is not None
    assert other.p_value == pytest.approx(test.p_value)
    assert (-other.high, -other.low) == pytest.approx((test.low, test.high))
