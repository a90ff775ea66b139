"""Variance between users by hand and against scipy's analysis of variance."""

import numpy as np
import pytest
from scipy import stats

from shop_env.metrics.between_users import variance_components


@pytest.mark.parametrize("sizes", [[7] * 15, [3, 1, 9, 4, 4]])
def test_components_follow_from_the_f_statistic_of_scipy(sizes):
    rng = np.random.default_rng(2)
    users = np.repeat(np.arange(len(sizes)), sizes)
    values = rng.normal(size=len(users)) + rng.normal(size=len(sizes))[users]
    parts = variance_components(values[:, None], values[:, None], users)
    ratio = stats.f_oneway(*(values[users == user] for user in range(len(sizes)))).statistic
    size = (sum(sizes) - sum(n * n for n in sizes) / sum(sizes)) / (len(sizes) - 1)
    assert parts is not None and parts.between / parts.within == pytest.approx((ratio - 1) / size)
    assert parts.correlation == pytest.approx((ratio - 1) / (ratio + size - 1))


def test_components_by_hand():
    # Users (0, 2) and (3, 5): means 1 and 4; MSB = 2 · 2 · 1.5² / 1 = 9, MSW = 4 / 2 = 2, n₀ = 2.
    values = np.array([[0.0], [2], [3], [5]])
    assert variance_components(values, values, np.array([0, 0, 1, 1])) == (3.5, 2)
    assert variance_components(values, values, np.arange(4)) is None
    assert variance_components(values, values, np.zeros(4, int)) is None
