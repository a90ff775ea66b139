"""The standard error of a figure over steps that come in clusters (users), bias-reduced for few of them: CR2.

With u_g what cluster g adds to the figure's deviation (its influence; for a mean its residuals' sum / all steps) and
h_g its share of the steps,

    SE² = Σ_g u_g² / (1 - h_g)                               CR2 of an intercept: Bell and McCaffrey 2002

which for clusters of one size is the variance of a mean of G means, Σ(d_g - d)² / (G(G - 1)). The t interval has their
degrees of freedom, Satterthwaite's under independent steps:

    df = 1 / (Σ_g h_g² + (Σ_g q_g)² - Σ_g q_g²),  q_g = h_g² / (1 - h_g)

that is G - 1 for clusters of one size, and less where one cluster has most of the steps. SE ≥ 0, 1 ≤ df ≤ G - 1.
"""

import math

import msgspec
import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtr, stdtrit

__all__ = ["ClusteredError", "clustered_error", "t_interval", "t_p_value"]

Floats = NDArray[np.float64]


class ClusteredError(msgspec.Struct, frozen=True):
    """A standard error and the degrees of freedom that it is known with."""

    standard_error: float
    degrees_of_freedom: float


def clustered_error(influences: Floats, shares: Floats) -> ClusteredError | None:
    """The CR2 standard error; None where one cluster has all steps, which says nothing of others.

    Args:
        influences: What each cluster adds to the figure's deviation from its expectation, (clusters,).
        shares: Each cluster's share of the steps, (clusters,), summing to 1.

    >>> means = np.array([1.0, 2.0, 6.0])  # as many steps in each
    >>> clustered_error((means - means.mean()) / 3, np.full(3, 1 / 3)).standard_error ** 2  # 14 / (3 * 2)
    2.333333333333333
    """
    if not len(shares) or shares.max() >= 1 or np.isnan(influences).any():
        return None
    standard_error = math.sqrt(np.sum(influences**2 / (1 - shares)))
    ratios = shares**2 / (1 - shares)
    spread = np.sum(shares**2) + np.sum(ratios) ** 2 - np.sum(ratios**2)
    return ClusteredError(standard_error, float(1 / spread))


def t_interval(figure: float, error: ClusteredError, confidence: float = 0.95) -> tuple[float, float]:
    """figure ± t(df) · SE."""
    reach = float(stdtrit(error.degrees_of_freedom, (1 + confidence) / 2)) * error.standard_error
    return figure - reach, figure + reach


def t_p_value(figure: float, error: ClusteredError) -> float:
    """How often a figure whose expectation is 0 lies as far from it, two-sided."""
    if error.standard_error == 0:
        return float(figure == 0)
    return float(2 * stdtr(error.degrees_of_freedom, -abs(figure) / error.standard_error))
