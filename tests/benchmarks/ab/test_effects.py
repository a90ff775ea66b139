"""Effects of pairs of visits, by hand; what counts as a right answer."""

import math

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from benchmarks.ab.effects import Effect, effect_of, paired_effect, prediction
from benchmarks.ab.walks import Outcomes, VisitOutcome
from replay_sessions.foundation.errors import BadConfig


def outcomes(bought: list[int], *, failed: tuple[int, ...] = (), users_of: int = 2) -> Outcomes:
    return Outcomes(
        VisitOutcome(
            user_id=f"u{number // users_of:03}",
            bought=bool(value),
            steps=3 + value,
            dollars=10.0 * value,
            failed=number in failed,
        )
        for number, value in enumerate(bought)
    )


def effect(low: float, middle: float, high: float, visits: int = 400) -> Effect:
    return Effect(difference=middle, low=low, high=high, standard_error=(high - low) / 4, visits=visits, before=0.5)


def test_an_effect_is_the_mean_difference_with_the_error_over_users():
    """Equal users: CR2 is the standard error of the users' means, with t(users - 1)."""
    random = np.random.default_rng(0)
    before, after = random.random(40), random.random(40) + 0.2
    users = np.repeat(np.arange(10), 4)
    found = paired_effect(before, after, users)
    means = (after - before).reshape(10, 4).mean(axis=1)
    expected = stats.ttest_1samp(means, 0).confidence_interval(0.95)
    assert found.difference == pytest.approx(means.mean())
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high))
    assert found.standard_error == pytest.approx(stats.sem(means))


def test_visits_of_which_an_end_is_unknown_are_in_no_effect():
    found = effect_of(outcomes([0, 0, 1, 1, 0, 1]), outcomes([1, 0, 1, 1, 1, 0], failed=(5,)), "bought")
    assert found.visits == 5
    assert found.difference == pytest.approx(2 / 5)
    assert found.before == pytest.approx(2 / 5)


def test_other_visits_are_no_pairs():
    with pytest.raises(BadConfig, match="not of the same shoppers"):
        effect_of(outcomes([0, 1, 1, 0]), outcomes([0, 1, 1, 0], users_of=1), "bought")
    with pytest.raises(BadConfig, match="no visit is left"):
        effect_of(outcomes([0, 1]), outcomes([0, 1], failed=(0, 1)), "bought")


def test_no_chance_means_no_interval_and_one_shopper_tells_nothing_of_others():
    same = paired_effect(np.zeros(4), np.zeros(4), np.arange(4))
    assert (same.low, same.difference, same.high, same.sign) == (0, 0, 0, 0)
    alone = paired_effect(np.zeros(2), np.ones(2), np.zeros(2, dtype=np.int64))
    assert (alone.low, alone.high, alone.sign) == (-math.inf, math.inf, 0)


def test_direction_coverage_and_alarm_of_a_prediction():
    true = effect(-0.12, -0.10, -0.08)
    right = prediction(effect(-0.2, -0.08, 0.04), true)
    assert (right.right_direction, right.covered, right.alarm) == (True, True, False)
    assert right.error == pytest.approx(0.02)
    wrong = prediction(effect(0.01, 0.05, 0.09), true)
    assert (wrong.right_direction, wrong.covered, wrong.alarm) == (False, False, True)
    for true_effect in (true, effect(0.08, 0.10, 0.12)):
        assert prediction(effect(0.0, 0.0, 0.0), true_effect).right_direction is False
    # Both margins count: 0.03 and 0.02 reach 0.036 far, so an error of 0.035 is covered and one of 0.037 is not.
    assert [prediction(effect(at - 0.03, at, at + 0.03), true).covered for at in (-0.065, -0.063)] == [True, False]
    assert prediction(effect(0.01, 0.05, 0.09), effect(-0.01, 0.0, 0.01)).right_direction is None


@pytest.mark.long
def test_the_interval_covers_refits_without_new_visits():
    """Visits buy with one probability in A, another in B; each refit has others, which its visits' likelihood tells."""
    random, visits, refits = np.random.default_rng(0), 40_000, 400
    gains = []
    for rate in (0.4, 0.5):
        bought, refitted = random.random(visits) < rate, np.clip(random.normal(rate, 0.03, refits), 0.05, 0.95)
        ratios = np.where(bought[:, None], np.log(refitted / rate), np.log((1 - refitted) / (1 - rate)))
        gains.append((refitted, outcomes_of(bought, ratios)))
    (before_rates, before), (after_rates, after) = gains
    found = effect_of(before, after, "bought")
    assert found.fit_error == pytest.approx((after_rates - before_rates).std(ddof=1), rel=0.05)
    margin = math.hypot(1.96 * found.standard_error, stats.t(refits - 1).ppf(0.975) * found.fit_error)
    assert found.high - found.difference == pytest.approx(margin, rel=1e-3)


def test_refits_add_nothing_where_they_differ_by_the_sampling_of_visits_alone():
    """The log-ratios have nothing to do with what was bought."""
    random = np.random.default_rng(0)
    errors = []
    for _ in range(20):
        sides = [outcomes_of(random.random(400) < 0.5, random.normal(0, 0.5, (400, 10))) for _ in range(2)]
        errors.append(effect_of(*sides, "bought"))
    assert np.mean([own.fit_error for own in errors]) < 0.2 * np.mean([own.standard_error for own in errors])


def outcomes_of(bought: NDArray[np.bool_], log_ratios: NDArray[np.float64]) -> Outcomes:
    return Outcomes(
        VisitOutcome(user_id=f"u{n:05}", bought=bool(b), steps=1, dollars=0, log_ratios=tuple(own.tolist()))
        for n, (b, own) in enumerate(zip(bought, log_ratios, strict=True))
    )
