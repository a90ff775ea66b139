"""Calibration: compares an agent's probabilities with the share of them that come true.

Each action of each page is a forecast p that comes true (y = 1) or not. Forecasts are binned by p. With N forecasts,
n_b of them in bin b, their mean p_b and the share y_b that came true,

| figure | formula | range | source |
|---|---|---|---|
| `calibration_error` | Σ over bins of n_b/N · abs(share that came true - mean p), over all actions of a page, a step | ≥ 0 | Naeini et al. 2015 |
| `top1_calibration_error` | the same of each step's likeliest action | 0–1 | Guo et al. 2017 |
| `brier` | Σ over a page's actions of (p - [it was taken])², a step | 0–2 | Brier 1950 |

the first and the last multiplied by the mean number of actions on a page, so that they are per step. A page's many
unlikely actions have small deviations, so they weigh little in both. In most papers ECE is the second.
"""  # noqa: E501 - a table row is a line

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from shop_env.metrics.clustered_errors import Floats

# Most actions of a page are unlikely, and bins of equal width would put nearly all of them into the first: so EDGES has
# narrow bins near 0. The likeliest actions have bins of equal width (TENTHS).
TENTHS = tuple(edge / 10 for edge in range(11))
EDGES = (0.0, 0.001, 0.003, 0.01, 0.03, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)


class Calibration(NamedTuple):
    """An expected calibration error and a Brier score, each per step."""

    error: float
    brier: float


def calibration_of(
    probabilities: Sequence[Floats], taken: Sequence[int | None], edges: Sequence[float] = EDGES
) -> Calibration | None:
    """Computes the calibration of the forecasts of all actions.

    Args:
        probabilities: For each step the probabilities of its actions, shape (actions,).
        taken: For each step the index of the logged action among them; None if it is not among them.
        edges: The edges of the bins, ascending from 0 to 1.

    Returns:
        The calibration; None without a step.
    """
    if not len(probabilities):
        return None
    forecasts = np.concatenate(probabilities)
    came_true = np.concatenate([np.arange(len(row)) == at for row, at in zip(probabilities, taken, strict=True)])
    codes = np.clip(np.searchsorted(edges, forecasts, side="right") - 1, 0, len(edges) - 2)
    gaps = np.bincount(codes, weights=came_true - forecasts)  # n_b (y_b - p_b) of each bin
    return Calibration(
        error=float(np.abs(gaps).sum()) / len(probabilities),
        brier=float(np.sum((forecasts - came_true) ** 2)) / len(probabilities),
    )


def top1_calibration(probabilities: Sequence[Floats], right: Sequence[bool]) -> Calibration | None:
    """Computes the calibration of the likeliest action of each step.

    Args:
        probabilities: For each step the probabilities of its actions, shape (actions,).
        right: For each step whether the likeliest action is the logged one.

    Returns:
        The calibration; None without a step.
    """
    likeliest = [row.max(keepdims=True) for row in probabilities]
    return calibration_of(likeliest, [0 if hit else None for hit in right], TENTHS)
