"""Does what an agent holds likely happen that often? Over all that can be done on a page, not only the likeliest.

Each action of each page is a forecast p that comes true (y = 1) or not. Forecasts are binned by p; with n_b of them in
bin b of N, their mean p_b and the share y_b that came true, and y̅ the share of all,

    expected calibration error    Σ_b n_b/N · |y_b - p_b|                      Naeini et al. 2015
    Brier score                   mean of (p - y)²                             Brier 1950
                                  = reliability - resolution + uncertainty + within
    reliability                   Σ_b n_b/N · (y_b - p_b)²                     0 is best                 Murphy 1973
    resolution                    Σ_b n_b/N · (y_b - y̅)²                       how much the forecasts tell apart
    uncertainty                   y̅ (1 - y̅)                                    of the pages, not of the agent
    within                        what p and y do inside bins                  Stephenson et al. 2008

each multiplied by the mean number of actions on a page, so that they are per step: the Brier score of a choice has the
range 0–2. A page's many unlikely actions weigh little in it, each by its own small deviation.

    sharpness = mean entropy of the agent's distributions / mean of -log p(logged), both with a floor of 1e-6

is 1 for an agent whose surprise is what it expects, below 1 for one that is surer than it is right (≥ 0): an over-sharp
one, or one that is sure of the wrong person; `entropy_ratio` (shop_env/metrics/people) tells these two apart.
"""

from collections.abc import Sequence
from typing import NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from shop_env.metrics.action_likelihood import SMALLEST

Floats = NDArray[np.float64]

# Most actions of a page are unlikely: bins of one width would hold nearly all of them in the first.
EDGES = (0.0, 0.001, 0.003, 0.01, 0.03, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)


class ReliabilityBin(NamedTuple):
    """Forecasts between two probabilities: how many, their mean, and the share that came true."""

    low: float
    high: float
    forecasts: int
    probability: float
    came_true: float


class Calibration(msgspec.Struct, frozen=True, kw_only=True):
    """The figures at the head of this module and the reliability curve."""

    steps: int
    error: float
    brier: float
    reliability: float
    resolution: float
    uncertainty: float
    within: float
    bins: list[ReliabilityBin]


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
    sizes = np.bincount(codes, minlength=len(edges) - 1)
    filled = sizes > 0
    held, true = (
        np.bincount(codes, weights=side, minlength=len(sizes))[filled] / sizes[filled]
        for side in (forecasts, came_true)
    )
    weights, per_step = sizes[filled] / len(forecasts), len(forecasts) / len(probabilities)
    share = float(came_true.mean())
    brier = float(np.mean((forecasts - came_true) ** 2))
    reliability, resolution = (float(weights @ (true - other) ** 2) for other in (held, share))
    uncertainty = share * (1 - share)
    return Calibration(
        steps=len(probabilities),
        error=per_step * float(weights @ np.abs(true - held)),
        brier=per_step * brier,
        reliability=per_step * reliability,
        resolution=per_step * resolution,
        uncertainty=per_step * uncertainty,
        within=per_step * (brier - reliability + resolution - uncertainty),
        bins=[
            ReliabilityBin(edges[index], edges[index + 1], int(sizes[index]), float(p), float(y))
            for index, p, y in zip(np.flatnonzero(filled).tolist(), held, true, strict=True)
        ],
    )


def sharpness(probabilities: Sequence[Floats], of_logged: Sequence[float]) -> float:
    """The entropy that the agent expects beside the surprise that it meets; NaN without a step.

    Args:
        of_logged: At each step the probability of the logged action.

    >>> round(sharpness([np.array([0.5, 0.5]), np.array([0.5, 0.5])], [0.5, 0.25]), 3)  # ln 2 of (ln 2 + ln 4) / 2
    0.667
    """
    if not len(probabilities):
        return float("nan")
    expected = np.mean([-np.sum(own * np.log(np.maximum(own, SMALLEST))) for own in probabilities])
    met = np.mean(-np.log(np.maximum(of_logged, SMALLEST)))
    return float(expected / met) if met > 0 else float("nan")
