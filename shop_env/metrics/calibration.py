"""Calibration: compares an agent's probabilities with the share of them that come true.

Each action of each page is a forecast p that comes true (y = 1) or not. Forecasts are binned by p. With N forecasts,
n_b of them in bin b, their mean p_b and the share y_b that came true,

| metric | formula | range | source |
|---|---|---|---|
| `calibration_error` | Σ over bins of n_b/N · abs(share that came true - mean p), over all actions of a page, a step | ≥ 0 | Naeini et al. 2015 |
| `top1_calibration_error` | the same of each step's likeliest action; ties: mean | 0–1 | Guo et al. 2017 |
| `brier` | Σ over a page's actions of (p - [it was taken])², a step | 0–2 | Brier 1950 |

the first and the last multiplied by the mean number of actions on a page, so that they are per step. A page's many
unlikely actions have small deviations, so they weigh little in both. In most papers ECE is the second.
"""  # noqa: E501 - a table row is a line

from collections.abc import Sequence

import numpy as np

from shop_env.metrics.clustered_errors import Floats

# Most actions of a page are unlikely, and bins of equal width would put nearly all of them into the first: so EDGES has
# narrow bins near 0. The likeliest actions have bins of equal width (TENTHS).
TENTHS = tuple(edge / 10 for edge in range(11))
EDGES = (0.0, 0.001, 0.003, 0.01, 0.03, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)


def calibration_figures(
    probabilities: Sequence[Floats], taken: Sequence[int], edges: Sequence[float] = EDGES
) -> dict[str, float]:
    """Computes the figures at the head of this module by name, for at least one step.

    Args:
        probabilities: For each step the probabilities of its actions, shape (actions,).
        taken: For each step the index of the logged action among them.
        edges: The edges of the bins of all actions, ascending from 0 to 1.

    >>> calibration_figures([np.array([0.5, 0.5])] * 2, [0, 1])  # of two equal ones, each is taken half of the time
    {'calibration_error': 0.0, 'top1_calibration_error': 0.0, 'brier': 0.5}
    """
    rows, count = list(zip(probabilities, taken, strict=True)), len(taken)
    forecasts, likeliest = np.concatenate(probabilities), np.array([row.max() for row in probabilities])
    came_true = np.concatenate([np.arange(len(row)) == at for row, at in rows])
    hits = np.array([row[at] == row.max() > 0 and 1 / np.sum(row == row.max()) for row, at in rows])
    return {
        "calibration_error": _error(forecasts, came_true, edges) / count,
        "top1_calibration_error": _error(likeliest, hits, TENTHS) / count,
        "brier": float(np.sum((forecasts - came_true) ** 2)) / count,
    }


def _error(forecasts: Floats, came_true: Floats, edges: Sequence[float]) -> float:
    """Sums the sizes of n_b (y_b - p_b) over bins."""
    codes = np.clip(np.searchsorted(edges, forecasts, side="right") - 1, 0, len(edges) - 2)
    return float(np.abs(np.bincount(codes, weights=came_true - forecasts)).sum())
