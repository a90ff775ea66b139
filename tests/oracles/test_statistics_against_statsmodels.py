"""Statistics for few users against statsmodels, on planted data (skipped where it is not installed)."""

import numpy as np
import pytest

from shop_env.metrics.between_users import variance_components
from shop_env.metrics.clustered_errors import (
    ClusteredError,
    clustered_error,
    holm,
    smallest_difference,
    t_interval,
    t_p_value,
)

linear = pytest.importorskip("statsmodels.regression.linear_model")
mixed = pytest.importorskip("statsmodels.regression.mixed_linear_model")
estimating = pytest.importorskip("statsmodels.genmod.generalized_estimating_equations")
multiple = pytest.importorskip("statsmodels.stats.multitest")
power = pytest.importorskip("statsmodels.stats.power")


def planted(sizes: list[int]) -> tuple[np.ndarray, np.ndarray, ClusteredError]:
    """Values whose users differ, each value's user, and the error of their mean."""
    rng = np.random.default_rng(3)
    users = np.repeat(np.arange(len(sizes)), sizes)
    values = 0.4 + rng.normal(size=len(users)) + rng.normal(size=len(sizes))[users]
    influences = np.bincount(users, weights=values - values.mean()) / len(values)
    error = clustered_error(influences, np.bincount(users) / len(values))
    assert error is not None
    return values, users, error


def test_for_users_of_one_size_the_error_interval_and_p_are_those_of_clustered_least_squares() -> None:
    values, users, error = planted([6] * 15)
    fit = linear.OLS(values, np.ones_like(values)).fit(cov_type="cluster", cov_kwds={"groups": users}, use_t=True)
    assert error.standard_error == pytest.approx(fit.bse[0])
    assert t_interval(values.mean(), error) == pytest.approx(tuple(fit.conf_int()[0]))
    assert t_p_value(values.mean(), error) == pytest.approx(fit.pvalues[0])


@pytest.mark.parametrize("sizes", [[3, 1, 9, 4, 4, 7, 2, 5], [30, 5, 5, 5]])
def test_for_others_it_lies_between_the_naive_one_and_that_of_mancl_and_derouen(sizes: list[int]) -> None:
    values, users, error = planted(sizes)
    fit = estimating.GEE(values, np.ones_like(values), groups=users).fit(cov_type="bias_reduced")
    naive, reduced = fit.standard_errors("robust")[0], fit.standard_errors("bias_reduced")[0]
    assert naive < error.standard_error < reduced


def test_holm_is_that_of_multipletests() -> None:
    p_values = np.random.default_rng(4).random(9) ** 3
    assert holm(p_values.tolist()) == pytest.approx(multiple.multipletests(p_values, method="holm")[1])


@pytest.mark.parametrize("users", [3, 6, 15, 60])
def test_the_smallest_difference_is_that_of_its_power_analysis(users: int) -> None:
    expected = power.TTestPower().solve_power(nobs=users, alpha=0.05, power=0.8)
    found = smallest_difference(ClusteredError(1 / np.sqrt(users), users - 1, users))
    assert found == pytest.approx(expected, rel=1e-4)


def test_correlation_is_that_of_a_mixed_model() -> None:
    rng = np.random.default_rng(5)
    figures = rng.normal(size=(30, 4)) + 2 * rng.normal(size=(30, 1))
    seeds = np.repeat(np.arange(30), 4)
    fit = mixed.MixedLM(figures.ravel(), np.ones(figures.size), groups=seeds).fit(reml=True)
    expected = fit.cov_re[0, 0] / (fit.cov_re[0, 0] + fit.scale)
    rows = figures.reshape(-1, 1)
    found = variance_components(rows, rows, seeds)
    assert found is not None and found.correlation == pytest.approx(expected, rel=1e-3)
