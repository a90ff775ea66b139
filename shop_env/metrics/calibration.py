"""Calibration: the share of forecasts that come true, over all that can be done on a page, or of the likeliest.

Each action of each page is a forecast p that comes true (y = 1) or not. Forecasts are binned by p; with n_b of them in
bin b of N, their mean p_b and the share y_b that came true,

| figure | formula | range | source |
|---|---|---|---|
| `calibration_error` | Σ over bins of n_b/N · abs(share that came true - mean p), over all actions of a page, a step | ≥ 0 | Naeini et al. 2015 |
| `top1_calibration_error` | the same of each step's likeliest action | 0–1 | Guo et al. 2017 |
| `brier` | Σ over a page's actions of (p - [it was taken])², a step | 0–2 | Brier 1950 |

the first and the last multiplied by the mean number of actions on a page, so that they are per step. A page's many
unlikely actions weigh little in them, each by its own small deviation. By ECE papers mostly mean the second.
"""  # noqa: E501 - a table row is a line

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from shop_env.metrics.clustered_errors import Floats

# Most actions of a page are unlikely: bins of one width would hold nearly all of them in the first.
# Of the likeliest actions bins of one width do.
TENTHS = tuple(edge / 10 for edge in range(11))
EDGES = (0.0, 0.001, 0.003, 0.01, 0.03, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)


class Calibration(NamedTuple):
    """The expected calibration error and the Brier score of some choices."""

    error: float
    brier: float


def calibration_of(
    probabilities: Sequence[Floats], taken: Sequence[int | None], edges: Sequence[float] = EDGES
) -> Calibration | None:
    """The calibration of whole choices; None without a step.

    Args:
        probabilities: For each step of all actions that it offers or the agent names.
        taken: For each step which of them was logged; None where it is none of them.
    """
    if not len(probabilities):
        return None
    forecasts = np.concatenate(probabilities)
    came_true = np.concatenate([np.arange(len(own)) == at for own, at in zip(probabilities, taken, strict=True)])
    codes = np.clip(np.searchsorted(edges, forecasts, side="right") - 1, 0, len(edges) - 2)
    gaps = np.bincount(codes, weights=came_true - forecasts)  # n_b (y_b - p_b) of each bin
    return Calibration(
        error=float(np.abs(gaps).sum()) / len(probabilities),
        brier=float(np.sum((forecasts - came_true) ** 2)) / len(probabilities),
    )


def top1_calibration(probabilities: Sequence[Floats], right: Sequence[bool]) -> Calibration | None:
    """The calibration of the likeliest action of each step; `right`: whether that was the logged one."""
    likeliest = [own.max(keepdims=True) for own in probabilities]
    return calibration_of(likeliest, [0 if hit else None for hit in right], TENTHS)
