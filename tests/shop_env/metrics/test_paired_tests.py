"""Paired tests from records: those of the users' differences, for every metric, silent where nothing can be said."""

import random

import msgspec
import numpy as np
import pytest
from scipy import stats

from replay_sessions.schema import Click, Session, Terminate
from shop_env.metrics import MetricChoices, paired_test, step_metrics
from shop_env.metrics.all_metrics import all_metrics, find_metric
from shop_env.metrics.clustered_errors import ClusteredError, t_interval
from shop_env.metrics.exact_match import exact_steps
from shop_env.metrics.intervals import influences
from shop_env.metrics.step_record import TOO_LONG
from shop_env.metrics.step_table import StepTable
from tests.shop_env.planted import answer, copy_the_log, noisy, random_action, random_sessions, ten_steps


def users_of_one_size() -> list[Session]:
    """12 users, one session of four scored steps each."""
    rng = random.Random(1)
    session = ten_steps()[0]
    step = session.steps[0]
    return [
        msgspec.structs.replace(
            session,
            session_id=f"s{user}",
            user_id=f"u{user}",
            steps=(step, *(msgspec.structs.replace(step, action=random_action(rng)) for _ in range(4))),
        )
        for user in range(12)
    ]


def test_of_users_of_one_size_it_is_the_paired_t_test_of_their_accuracies() -> None:
    sessions = users_of_one_size()
    a, b = answer(sessions, noisy(0.8, 2)), answer(sessions, noisy(0.3, 3))
    by_user = [
        [np.mean([r.predicted == r.logged for r in side if r.user_id == f"u{user}"]) for user in range(12)]
        for side in (a, b)
    ]
    expected = stats.ttest_rel(*by_user)
    found = paired_test(a, b, "exact_accuracy")
    assert found is not None
    assert (found.clusters, found.steps, found.degrees_of_freedom) == (12, 48, pytest.approx(11))
    assert found.difference == pytest.approx(np.mean(by_user[0]) - np.mean(by_user[1]))
    assert found.p_value == pytest.approx(expected.pvalue)
    assert (found.low, found.high) == pytest.approx(tuple(expected.confidence_interval()))


@pytest.mark.parametrize("metric", sorted(all_metrics(MetricChoices())))
@pytest.mark.parametrize("mean", ["steps", "sessions"])
def test_every_metric_can_be_tested_and_the_other_way_round_it_is_the_same(metric: str, mean: str) -> None:
    sessions = random_sessions(80, 4, users=12)
    rng = random.Random(5)
    sides = [
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
    ]
    preset = MetricChoices(mean=mean)  # type: ignore[arg-type]
    found = paired_test(sides[0], sides[1], metric, preset=preset)
    if metric == "click_rule_agreement" or metric.endswith("_scroll"):  # these logs have no kinds of click, no scrolls
        assert found is None
        return
    assert found is not None
    assert found.low is not None and found.high is not None and found.p_value is not None
    assert found.low <= found.difference <= found.high
    assert (found.p_value < 0.05) == (not found.low <= 0 <= found.high)
    other_way = paired_test(sides[1], sides[0], metric, preset=preset)
    assert other_way is not None
    assert other_way.low is not None and other_way.high is not None
    assert other_way.p_value == pytest.approx(found.p_value)
    assert (-other_way.high, -other_way.low) == pytest.approx((found.low, found.high))


def test_influences_are_residuals_over_steps_and_sum_to_nothing() -> None:
    table = StepTable(answer(random_sessions(20, 5), noisy(0.6, 5)), MetricChoices())
    exact = exact_steps(table)
    of_accuracy = influences(find_metric("exact_accuracy", MetricChoices()), _rows(table, "exact_accuracy"))
    assert of_accuracy == pytest.approx((exact - exact.mean()) / len(table), abs=1e-9)
    of_f1 = influences(find_metric("type_f1_macro", MetricChoices()), _rows(table, "type_f1_macro"))
    assert of_f1.sum() == pytest.approx(0, abs=1e-9)


def _rows(table: StepTable, metric: str) -> np.ndarray:
    return find_metric(metric, MetricChoices()).rows(table)


def test_the_influence_of_a_user_on_macro_f1_foretells_what_leaving_the_user_out_does() -> None:
    sessions = random_sessions(300, 6)
    records = answer(sessions, noisy(0.5, 6))
    table = StepTable(records, MetricChoices())
    of_steps = influences(find_metric("type_f1_macro", MetricChoices()), _rows(table, "type_f1_macro"))
    whole = step_metrics(records)["type_f1_macro"]
    for session in sessions[:5]:
        own = [place for place, record in enumerate(records) if record.session_id == session.session_id]
        left = step_metrics([r for r in records if r.session_id != session.session_id])["type_f1_macro"]
        assert whole - left == pytest.approx(of_steps[own].sum(), abs=2e-5)


def test_an_agent_does_not_differ_from_itself() -> None:
    records = answer(random_sessions(30, 7, users=10), noisy(0.5, 7))
    found = paired_test(records, records, "type_f1_macro")
    assert found is not None
    assert (found.difference, found.standard_error, found.p_value) == (0, 0, 1)
    assert (found.low, found.smallest_difference) == (None, None)


def test_a_difference_that_all_users_share_is_as_likely_as_their_signs() -> None:
    sessions = users_of_one_size()
    a, b = answer(sessions, copy_the_log), answer(sessions, lambda s, i: "?")
    found = paired_test(a, b, "exact_accuracy")
    assert found is not None
    assert (found.difference, found.low, found.high, found.p_value) == (1, None, None, 2**-11)


def test_a_single_user_or_no_step_to_count_is_no_test() -> None:
    sessions = [session for session in ten_steps() if session.user_id == "ada"]
    a, b = answer(sessions, noisy(1, 1)), answer(sessions, noisy(0, 2))
    alone, by_session = (paired_test(a, b, "exact_accuracy", cluster=cluster) for cluster in ("user", "session"))
    assert alone is not None and by_session is not None
    assert (alone.clusters, alone.standard_error, alone.p_value) == (1, None, None)
    assert by_session.clusters == 2 and by_session.standard_error is not None
    clicks = [r for r in answer(ten_steps(), lambda s, i: Click(name="x")) if r.logged["type"] == "click"]
    assert paired_test(clicks, clicks, "exact_accuracy_terminate") is None


def test_a_difference_that_all_comes_from_one_of_two_users_is_no_discovery() -> None:
    a = answer(ten_steps(), copy_the_log)
    b = answer(ten_steps(), lambda s, i: s.steps[i].action if s.user_id == "bob" else Terminate())
    found = paired_test(a, b, "exact_accuracy")
    assert found is not None
    assert found.difference > 0 and found.standard_error is not None and found.degrees_of_freedom is not None
    error = ClusteredError(found.standard_error, found.degrees_of_freedom, found.clusters)
    assert t_interval(found.difference, error)[0] < 0
    assert (found.low, found.p_value) == (None, None)


def test_where_users_differ_only_a_large_difference_is_found() -> None:
    sessions = random_sessions(200, 8, users=10)
    a = answer(sessions, copy_the_log)
    b = answer(sessions, lambda s, i: s.steps[i].action if s.user_id in ("u0", "u1", "u2") else "?")
    found = paired_test(a, b, "exact_accuracy")
    assert found is not None and found.standard_error is not None and found.smallest_difference is not None
    assert found.smallest_difference > 2.4 * found.standard_error
