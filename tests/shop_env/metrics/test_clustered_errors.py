"""Statistics for few users: by hand, against scipy, and against plain slow versions with full matrices."""

import math

import numpy as np
import pytest
from scipy import stats

from replay_sessions.foundation.errors import BadConfig
from replay_sessions.foundation.table import Estimate
from shop_env.metrics.between_users import variance_components
from shop_env.metrics.clustered_errors import (
    ClusteredError,
    clustered_error,
    estimate,
    holm,
    p_value,
    smallest_difference,
    t_interval,
    t_p_value,
)
from shop_env.metrics.over_seeds import pooled_over_seeds

Floats = np.ndarray


def planted(seed: int, sizes: list[int], spread: float = 1.0) -> tuple[Floats, Floats]:
    """Values with a user effect of this spread, and each value's user."""
    rng = np.random.default_rng(seed)
    users = np.repeat(np.arange(len(sizes)), sizes)
    return rng.normal(size=len(users)) + spread * rng.normal(size=len(sizes))[users], users


def correlation(values: Floats, users: Floats) -> float | None:
    found = variance_components(values[:, None], values[:, None], users)
    return None if found is None else found.correlation


def error_of_mean(values: Floats, users: Floats) -> ClusteredError:
    influences = np.bincount(users, weights=values - values.mean()) / len(values)
    found = clustered_error(influences, np.bincount(users) / len(values))
    assert found is not None
    return found


def first(sums: Floats) -> Floats:
    return sums[..., 0]


@pytest.mark.parametrize("seed", range(3))
def test_with_users_of_one_size_the_error_and_interval_are_those_of_a_t_test_of_their_means(seed: int) -> None:
    values, users = planted(seed, [7] * 15)
    means = values.reshape(15, 7).mean(axis=1)
    error = error_of_mean(values, users)
    expected = stats.ttest_1samp(means, 0)
    assert error.standard_error == pytest.approx(stats.sem(means))
    assert error.degrees_of_freedom == pytest.approx(14)
    assert t_p_value(values.mean(), error) == pytest.approx(expected.pvalue)
    assert t_interval(values.mean(), error) == pytest.approx(tuple(expected.confidence_interval()))


@pytest.mark.parametrize("sizes", [[3, 1, 9, 4, 4], [40, 2, 2, 2], [5, 5, 5, 5, 60, 1]])
def test_the_error_and_its_degrees_of_freedom_are_those_of_bell_and_mccaffrey_s_matrices(sizes: list[int]) -> None:
    """Residuals of each user multiplied by (I - H_gg)^(-1/2); degrees of freedom (Σλ)² / Σλ² of G'G."""
    values, users = planted(1, sizes)
    steps = len(values)
    hat = np.full((steps, steps), 1 / steps)
    residuals, variance, columns = values - values.mean(), 0.0, []
    for user in range(len(sizes)):
        own = users == user
        roots, vectors = np.linalg.eigh(np.eye(own.sum()) - hat[np.ix_(own, own)])
        adjustment = vectors @ np.diag(roots**-0.5) @ vectors.T
        variance += (adjustment @ residuals[own]).sum() ** 2 / steps**2
        columns.append((np.eye(steps) - hat)[:, own] @ adjustment @ np.full(own.sum(), 1 / steps))
    roots = np.linalg.eigvalsh(np.array(columns) @ np.array(columns).T)
    error = error_of_mean(values, users)
    assert error.standard_error**2 == pytest.approx(variance)
    assert error.degrees_of_freedom == pytest.approx(roots.sum() ** 2 / (roots**2).sum())
    assert 1 <= error.degrees_of_freedom <= len(sizes) - 1


def test_the_error_counted_by_hand_for_users_of_two_sizes() -> None:
    # Users (0, 0, 0) and (4): mean 1, residual sums -3 and 3, shares 3/4 and 1/4.
    error = error_of_mean(np.array([0.0, 0, 0, 4]), np.array([0, 0, 0, 1]))
    assert error.standard_error**2 == pytest.approx((9 / 16) / (1 / 4) + (9 / 16) / (3 / 4))
    assert error.degrees_of_freedom == pytest.approx(1)


def test_one_user_alone_says_nothing_of_others() -> None:
    assert clustered_error(np.array([0.0]), np.array([1.0])) is None
    assert clustered_error(np.array([0.0, 0.0]), np.array([1.0, 0.0])) is None


def test_users_who_all_differ_alike_are_as_likely_as_their_signs_and_have_no_interval() -> None:
    assert t_p_value(0.5, error_of_mean(np.full(6, 0.5), np.arange(6))) == 2 / 2**6
    eight = error_of_mean(np.full(8, 0.5), np.arange(8))
    assert (estimate(0.5, eight), p_value(0.5, eight)) == (Estimate(0.5), 2 / 2**8)
    assert t_p_value(0.0, error_of_mean(np.zeros(6), np.arange(6))) == 1


def test_holm_by_hand() -> None:
    # 0.01 · 4, 0.02 · 3, then max(0.06, 0.03 · 2), then max(0.06, 0.04)
    assert holm([0.03, 0.01, 0.04, 0.02]) == pytest.approx([0.06, 0.04, 0.06, 0.06])
    assert holm([0.7, 0.8]) == [1, 1]
    assert holm([]) == []


@pytest.mark.parametrize("sizes", [[7] * 15, [3, 1, 9, 4, 4]])
def test_intra_class_correlation_follows_from_scipy_s_analysis_of_variance(sizes: list[int]) -> None:
    values, users = planted(2, sizes)
    ratio = stats.f_oneway(*(values[users == user] for user in range(len(sizes)))).statistic
    size = (sum(sizes) - sum(n * n for n in sizes) / sum(sizes)) / (len(sizes) - 1)
    assert correlation(values, users) == pytest.approx((ratio - 1) / (ratio + size - 1))


def test_intra_class_correlation_counted_by_hand() -> None:
    # Users (0, 2) and (3, 5): means 1 and 4; MSB = 2 · 2 · 1.5² / 1 = 9, MSW = 4 / 2 = 2, n₀ = 2.
    values, users = np.array([0.0, 2, 3, 5]), np.array([0, 0, 1, 1])
    assert correlation(values, users) == pytest.approx((9 - 2) / (9 + 2))
    assert correlation(values, np.arange(4)) is None
    assert correlation(values, np.zeros(4, int)) is None


def test_a_difference_of_the_smallest_size_is_found_in_four_of_five_simulations() -> None:
    rng = np.random.default_rng(6)
    true = smallest_difference(ClusteredError(1 / math.sqrt(15), 14, 15))
    found = stats.ttest_1samp(rng.normal(true, size=(4000, 15)), 0, axis=1).pvalue < 0.05
    assert found.mean() == pytest.approx(0.8, abs=0.02)


def test_pooling_over_seeds_by_hand() -> None:
    errors = [ClusteredError(2.0, 14, 15)] * 2  # W = 4; B = 50, and √(50/2) = 5
    own = pooled_over_seeds([0.0, 10.0], errors, same_users=False)
    assert (own.value, own.low, own.high) == pytest.approx((5, *stats.ttest_1samp([0, 10], 0).confidence_interval()))
    same = pooled_over_seeds([0.0, 10.0], errors, same_users=True)
    reach = math.hypot(12.7062 * 5, 2.14479 * 2)  # t(1) and t(14)
    assert (same.value, same.low, same.high) == pytest.approx((5, 5 - reach, 5 + reach), rel=1e-4)
    assert same.equal_within == pytest.approx(5 + math.hypot(6.31375 * 5, 1.76131 * 2), rel=1e-4)  # of the 90% interval
    assert own.p_value == pytest.approx(stats.ttest_1samp([0, 10], 0).pvalue)
    assert same.p_value is not None and own.p_value is not None and same.p_value > own.p_value
    at_zero = pooled_over_seeds([reach, reach + 10], errors, same_users=False)
    assert at_zero.p_value == pytest.approx(stats.ttest_1samp([reach, reach + 10], 0).pvalue)
    edge = pooled_over_seeds([reach - 5, reach + 5], errors, same_users=True)  # its interval begins at 0
    assert (edge.low, edge.p_value) == (pytest.approx(0, abs=1e-3), pytest.approx(0.05, rel=1e-3))
    alike = pooled_over_seeds([0.1] * 3, [ClusteredError(0.1, 14, 15)] * 3, same_users=False)  # as counts may be
    assert alike.low is not None and alike.p_value == pytest.approx(2 * stats.t.sf(1, 14))
    few = pooled_over_seeds([0.0, 10.0], [ClusteredError(2.0, 6, 7)] * 2, same_users=True)
    assert (few.value, few.low, few.high, few.p_value, few.equal_within) == (5, None, None, None, None)
    with pytest.raises(BadConfig, match="pooling needs two"):
        pooled_over_seeds([1.0], errors[:1], same_users=True)


@pytest.mark.parametrize("same_users", [True, False])
@pytest.mark.parametrize("of_seed", [0.0, 0.3, 1.0])
def test_pooled_intervals_hold_the_true_difference_in_nineteen_of_twenty_simulations(
    same_users: bool, of_seed: float
) -> None:
    """Users and seeds both differ from one another; three seeds, 15 users each."""
    rng, seeds, users, missed = np.random.default_rng(8), 3, 15, 0
    for _ in range(1000):
        of_users = rng.normal(size=(1 if same_users else seeds, users))
        seen = of_users + of_seed * rng.normal(size=(seeds, 1)) + 0.5 * rng.normal(size=(seeds, users))
        errors = [ClusteredError(float(stats.sem(row)), users - 1, users) for row in seen]
        pooled = pooled_over_seeds(seen.mean(axis=1).tolist(), errors, same_users=same_users)
        assert pooled.low is not None and pooled.high is not None
        missed += not pooled.low <= 0 <= pooled.high
    assert missed / 1000 < 0.05 + 3 * 0.0069  # three standard errors of a share of 1,000
