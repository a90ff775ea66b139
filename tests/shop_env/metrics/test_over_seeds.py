"""Pooling over seeds: by hand, and how often the pooled interval holds the truth."""

import math

import numpy as np
import pytest
from scipy import stats

from replay_sessions.foundation.errors import BadConfig
from shop_env.metrics.clustered_errors import ClusteredError
from shop_env.metrics.over_seeds import pooled_over_seeds


def test_pooling_by_hand():
    errors = [ClusteredError(2.0, 14, 15)] * 2  # W = 4; B = 50, and √(50/2) = 5
    own = pooled_over_seeds([0.0, 10.0], errors, same_users=False)
    assert (own.value, own.low, own.high) == pytest.approx((5, *stats.ttest_1samp([0, 10], 0).confidence_interval()))
    assert own.p_value == pytest.approx(stats.ttest_1samp([0, 10], 0).pvalue)
    same = pooled_over_seeds([0.0, 10.0], errors, same_users=True)
    reach = math.hypot(12.7062 * 5, 2.14479 * 2)  # t(1) and t(14)
    assert (same.value, same.low, same.high) == pytest.approx((5, 5 - reach, 5 + reach), rel=1e-4)
    assert same.equal_within == pytest.approx(5 + math.hypot(6.31375 * 5, 1.76131 * 2), rel=1e-4)  # of the 90% interval
    edge = pooled_over_seeds([reach - 5, reach + 5], errors, same_users=True)  # its interval begins at 0
    assert (edge.low, edge.p_value) == (pytest.approx(0, abs=1e-3), pytest.approx(0.05, rel=1e-3))
    alike = pooled_over_seeds([0.1] * 3, [ClusteredError(0.1, 14, 15)] * 3, same_users=False)  # as counts may be
    assert alike.low is not None and alike.p_value == pytest.approx(2 * stats.t.sf(1, 14))
    few = pooled_over_seeds([0.0, 10.0], [ClusteredError(2.0, 6, 7)] * 2, same_users=True)
    assert (few.value, few.low, few.high, few.p_value, few.equal_within) == (5, None, None, None, None)
    with pytest.raises(BadConfig, match="pooling needs two"):
        pooled_over_seeds([1.0], errors[:1], same_users=True)


@pytest.mark.parametrize("same_users", [True, False])
def test_pooled_intervals_hold_the_true_difference_in_nineteen_of_twenty_simulations(same_users):
    """Users and seeds both differ from one another; three seeds, 15 users each."""
    rng, seeds, users, missed = np.random.default_rng(8), 3, 15, 0
    for _ in range(300):
        of_users = rng.normal(size=(1 if same_users else seeds, users))
        seen = of_users + rng.normal(size=(seeds, 1)) + 0.5 * rng.normal(size=(seeds, users))
        errors = [ClusteredError(error, users - 1, users) for error in seen.std(axis=1, ddof=1) / math.sqrt(users)]
        pooled = pooled_over_seeds(seen.mean(axis=1).tolist(), errors, same_users=same_users)
        missed += not pooled.low <= 0 <= pooled.high
    assert missed / 300 < 0.05 + 3 * 0.0126  # three standard errors of a share of 300
