"""Bootstrap intervals: over whole sessions or users, paired where agents are compared, quick."""

import random
import time

import numpy as np
import pytest

from replay_sessions.errors import BadConfig
from replay_sessions.schema import Action, Click, Session
from shop_env.metrics import MetricChoices, bootstrap_interval, paired_difference, step_metrics
from tests.shop_env.planted import answer, random_action, random_sessions, ten_steps


def noisy(share: float, seed: int):  # type: ignore[no-untyped-def]
    rng = random.Random(seed)

    def reply(session: Session, index: int) -> Action | str:
        return session.steps[index].action if rng.random() < share else rng.choice(["?", random_action(rng)])

    return reply


@pytest.mark.parametrize("cluster", ["session", "user"])
@pytest.mark.parametrize("metric", ["exact_accuracy", "type_f1_macro", "outcome_f1_weighted", "mean_reward"])
def test_interval_equals_a_plain_bootstrap_of_whole_clusters(cluster: str, metric: str) -> None:
    records = answer(random_sessions(30, 1), noisy(0.5, 1))
    by_cluster: dict[str, list] = {}
    for record in records:
        by_cluster.setdefault(record.user_id if cluster == "user" else record.session_id, []).append(record)
    groups = list(by_cluster.values())
    rng, samples = np.random.default_rng(3), 200
    values = []
    for draw in rng.integers(len(groups), size=(samples, len(groups))):
        drawn = [record for place in draw for record in groups[place]]
        values.append(step_metrics(drawn).get(metric, np.nan))
    expected = np.nanquantile(values, [0.025, 0.975])
    found = bootstrap_interval(records, metric, cluster=cluster, samples=samples, seed=3)  # type: ignore[arg-type]
    assert found == pytest.approx(tuple(expected))


def test_intervals_are_wider_over_users_than_over_sessions_when_users_differ() -> None:
    sessions = random_sessions(200, 2)
    records = answer(sessions, lambda s, i: s.steps[i].action if s.user_id in ("u0", "u1", "u2") else "?")
    low, high = bootstrap_interval(records, "exact_accuracy", cluster="session")
    wide_low, wide_high = bootstrap_interval(records, "exact_accuracy", cluster="user")
    assert wide_low < low < high < wide_high


def test_users_are_drawn_unless_told_otherwise() -> None:
    records = answer(random_sessions(60, 2), noisy(0.5, 2))
    assert bootstrap_interval(records, "type_f1") == bootstrap_interval(records, "type_f1", cluster="user")
    other = answer(random_sessions(60, 2), noisy(0.3, 5))
    by_user = paired_difference(records, other, "type_f1", cluster="user")
    assert paired_difference(records, other, "type_f1") == by_user


def test_same_seed_same_interval() -> None:
    records = answer(random_sessions(20, 3), noisy(0.5, 3))
    assert bootstrap_interval(records, "type_f1", seed=1) == bootstrap_interval(records, "type_f1", seed=1)
    assert bootstrap_interval(records, "type_f1", seed=1) != bootstrap_interval(records, "type_f1", seed=2)


def test_an_agent_does_not_differ_from_itself() -> None:
    records = answer(random_sessions(20, 4), noisy(0.5, 4))
    assert paired_difference(records, records, "type_f1_macro") == (0, 0, 0)


def test_pairing_sees_a_small_difference_that_two_intervals_do_not() -> None:
    sessions = random_sessions(300, 5)
    worse = answer(sessions, noisy(0.5, 5))
    gain = random.Random(6)
    better = [
        record if record.predicted == record.logged or gain.random() > 0.06 else right
        for record, right in zip(worse, answer(sessions, lambda s, i: s.steps[i].action), strict=True)
    ]
    difference, low, high = paired_difference(better, worse, "exact_accuracy", cluster="user")
    assert 0 < low < difference < high
    expected = step_metrics(better)["exact_accuracy"] - step_metrics(worse)["exact_accuracy"]
    assert difference == pytest.approx(expected)
    assert bootstrap_interval(worse, "exact_accuracy")[1] > bootstrap_interval(better, "exact_accuracy")[0]


def test_order_of_records_does_not_matter_to_a_pair() -> None:
    sessions = random_sessions(20, 7)
    a, b = answer(sessions, noisy(0.7, 7)), answer(sessions, noisy(0.3, 8))
    assert paired_difference(a, b, "type_accuracy") == paired_difference(a, b[::-1], "type_accuracy")


def test_steps_that_one_agent_failed_are_left_out_for_both() -> None:
    a = answer(ten_steps(), lambda s, i: None if s.session_id == "a" else s.steps[i].action)
    b = answer(ten_steps(), lambda s, i: s.steps[i].action if s.session_id == "a" else "?")
    assert paired_difference(a, b, "exact_accuracy") == (1, 1, 1)


def test_different_steps_cannot_be_paired() -> None:
    a = answer(ten_steps(), lambda s, i: Click(name="x"))
    with pytest.raises(
        BadConfig, match=r"not asked about the same steps: 1 steps have only one .* step 3 of session 'c'"
    ):
        paired_difference(a, a[:-1], "exact_accuracy")


def test_wrong_settings_are_named() -> None:
    records = answer(ten_steps(), lambda s, i: Click(name="x"))
    with pytest.raises(BadConfig, match=r"Unknown metric 'exact'"):
        bootstrap_interval(records, "exact")
    with pytest.raises(BadConfig, match="cluster is 'shop'; it must be 'session' or 'user'"):
        bootstrap_interval(records, "exact_accuracy", cluster="shop")  # type: ignore[arg-type]
    with pytest.raises(BadConfig, match="samples is 0"):
        bootstrap_interval(records, "exact_accuracy", samples=0)
    with pytest.raises(BadConfig, match="no scored steps"):
        bootstrap_interval([], "exact_accuracy")


def test_a_metric_without_steps_has_no_interval() -> None:
    records = [r for r in answer(ten_steps(), lambda s, i: Click(name="x")) if r.logged["type"] == "click"]
    assert np.isnan(bootstrap_interval(records, "exact_accuracy_terminate")).all()


def test_a_thousand_samples_of_ten_thousand_steps_take_well_under_two_seconds() -> None:
    records = answer(random_sessions(2_300, 9), noisy(0.6, 9))
    assert len(records) > 10_000
    begin = time.process_time()
    bootstrap_interval(records, "type_f1_macro", preset=MetricChoices(), samples=1000)
    assert time.process_time() - begin < 2
