"""Variance between users and within a user (Donner 1986): steps of one user resemble each other.

    between = (MSB - MSW) / n₀        within = MSW        n₀ = (N - Σn_g²/N) / (G - 1)

MSB and MSW are the mean squares between and within the G clusters of n_g steps, N in total (one-way analysis of
variance). Rows may have several columns (1 for the kind of action, 0 for all others); their variances are summed. The
intra-class correlation is between / (between + within).

With products of the deviations of two sides instead of squares, `between` is the covariance of the two sides over
users, corrected for the covariance within a user.
"""

from typing import NamedTuple

import numpy as np

from shop_env.metrics.clustered_errors import Codes, Floats


class UserVariance(NamedTuple):
    """Estimates of the variance between users and within a user, summed over columns; `between` may be negative."""

    between: float
    within: float

    @property
    def correlation(self) -> float:
        """The intra-class correlation: the share of the variance between users; NaN if their sum is not positive."""
        total = self.between + self.within
        return self.between / total if total > 0 else float("nan")


def variance_components(left: Floats, right: Floats, users: Codes) -> UserVariance | None:
    """Splits the covariance of two sides into the parts between users and within a user.

    Args:
        left, right: The two sides of the same rows, shape (rows, columns); equal sides give variances.
        users: The user of each row, shape (rows,).

    Returns:
        The parts; None with fewer than two users, or with one row for each user.

    >>> rows = np.array([[0.0], [2.0], [3.0], [5.0]])
    >>> variance_components(rows, rows, np.array([0, 0, 1, 1]))  # MSB 9, MSW 2
    UserVariance(between=3.5, within=2.0)
    """
    _, numbers, sizes = np.unique(users, return_inverse=True, return_counts=True)
    total, groups = len(users), len(sizes)
    if groups < 2 or total == groups:
        return None
    means = [cluster_sums(side, numbers) / sizes[:, None] for side in (left, right)]
    off = [side.mean(axis=0) for side in (left, right)]
    between = float(np.sum(sizes[:, None] * (means[0] - off[0]) * (means[1] - off[1]))) / (groups - 1)
    within = float(np.sum((left - means[0][numbers]) * (right - means[1][numbers]))) / (total - groups)
    size = float(total - np.sum(sizes**2) / total) / (groups - 1)
    return UserVariance((between - within) / size, within)


def cluster_sums(rows: Floats, codes: Codes, count: int = 0) -> Floats:
    """Sums the rows of each cluster.

    Args:
        rows: Shape (rows, columns).
        codes: The number of each row's cluster, counted from 0.
        count: The smallest number of clusters in the result; clusters without rows have 0.

    Returns:
        The sums, shape (clusters, columns).
    """
    return np.stack([np.bincount(codes, weights=column, minlength=count) for column in rows.T], axis=1)
