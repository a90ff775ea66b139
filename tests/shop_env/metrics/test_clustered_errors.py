"""Errors over users: by hand, against plain matrices, and against statsmodels."""

import numpy as np
import pytest

from replay_sessions.foundation.table import Estimate
from shop_env.metrics.clustered_errors import (
    ClusteredError,
    clustered_error,
    estimate,
    holm,
    mean_error,
    p_value,
    smallest_difference,
    t_interval,
    t_p_value,
)

Floats = np.ndarray


def planted(sizes: list[int]) -> tuple[Floats, Floats]:
    """Values whose users differ, and each value's user."""
    rng = np.random.default_rng(1)
    users = np.repeat(np.arange(len(sizes)), sizes)
    return rng.normal(size=len(users)) + rng.normal(size=len(sizes))[users], users


@pytest.mark.parametrize("sizes", [[7] * 15, [3, 1, 9, 4, 4], [40, 2, 2, 2], [5, 5, 5, 5, 60, 1]])
def test_error_and_degrees_of_freedom_equal_bell_and_mccaffrey_s_matrices(sizes):
    """Residuals of each user multiplied by (I - H_gg)^(-1/2); degrees of freedom (Σλ)² / Σλ² of G'G."""
    values, users = planted(sizes)
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
    error = mean_error(values, users)
    assert error.standard_error**2 == pytest.approx(variance)
    assert error.degrees_of_freedom == pytest.approx(roots.sum() ** 2 / (roots**2).sum())


def test_error_by_hand_for_users_of_two_sizes():
    # Users (0, 0, 0) and (4): mean 1, residual sums -3 and 3, shares 3/4 and 1/4.
    error = mean_error(np.array([0.0, 0, 0, 4]), np.array([0, 0, 0, 1]))
    assert error.standard_error**2 == pytest.approx((9 / 16) / (1 / 4) + (9 / 16) / (3 / 4))
    assert error.degrees_of_freedom == pytest.approx(1)


def test_for_users_of_one_size_error_interval_and_p_equal_clustered_least_squares():
    linear = pytest.importorskip("statsmodels.regression.linear_model")
    values, users = planted([6] * 15)
    fit = linear.OLS(values, np.ones_like(values)).fit(cov_type="cluster", cov_kwds={"groups": users}, use_t=True)
    error = mean_error(values, users)
    assert error.standard_error == pytest.approx(fit.bse[0])
    assert t_interval(values.mean(), error) == pytest.approx(tuple(fit.conf_int()[0]))
    assert t_p_value(values.mean(), error) == pytest.approx(fit.pvalues[0])


@pytest.mark.parametrize("users", [3, 6, 15, 60])
def test_smallest_difference_equals_the_power_analysis_of_statsmodels(users):
    power = pytest.importorskip("statsmodels.stats.power")
    expected = power.TTestPower().solve_power(nobs=users, alpha=0.05, power=0.8)
    error = ClusteredError(1 / np.sqrt(users), users - 1, users)
    assert smallest_difference(error) == pytest.approx(expected, rel=1e-4)


def test_a_single_user_has_no_error():
    assert mean_error(np.ones(3), np.zeros(3, dtype=np.int64)).standard_error == np.inf
    assert clustered_error(np.array([0.0]), np.array([1.0])) is None
    assert clustered_error(np.array([0.0, 0.0]), np.array([1.0, 0.0])) is None


def test_users_with_the_same_difference_have_the_p_of_a_sign_test_and_no_interval():
    assert t_p_value(0.5, mean_error(np.full(6, 0.5), np.arange(6))) == 2 / 2**6
    eight = mean_error(np.full(8, 0.5), np.arange(8))
    assert (estimate(0.5, eight), p_value(0.5, eight)) == (Estimate(0.5), 2 / 2**8)
    assert t_p_value(0.0, mean_error(np.zeros(6), np.arange(6))) == 1


def test_holm_by_hand():
    # 0.01 · 4, 0.02 · 3, then max(0.06, 0.03 · 2), then max(0.06, 0.04)
    assert holm([0.03, 0.01, 0.04, 0.02]) == pytest.approx([0.06, 0.04, 0.06, 0.06])
    assert holm([0.7, 0.8]) == [1, 1]
    assert holm([]) == []
