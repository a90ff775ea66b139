"""Calibration by hand, against scikit-learn, and of agents that are surer than right."""

import numpy as np
import pytest
from sklearn.calibration import calibration_curve

from shop_env.metrics.calibration import calibration_figures


def forecasts(seed: int, steps: int = 4000, power: float = 1.0) -> tuple[list[np.ndarray], list[int]]:
    """Distributions over five actions from which the action is drawn, as an agent that sharpens them sees them."""
    rng = np.random.default_rng(seed)
    true = rng.dirichlet(np.ones(5), size=steps)
    taken = [int(rng.choice(5, p=own)) for own in true]
    return [own**power / (own**power).sum() for own in true], taken


@pytest.mark.parametrize("power", [0.5, 1.0, 3.0])
def test_the_brier_score_is_by_hand_and_the_error_follows_from_scikit_learns_curve(power):
    given, taken = forecasts(1, 500, power)
    edges = np.linspace(0, 1, 11).tolist()
    found = calibration_figures(given, taken, edges)
    flat, true = np.concatenate(given), np.concatenate([np.arange(5) == at for at in taken])
    assert found["brier"] == pytest.approx(5 * np.mean((flat - true) ** 2))
    came_true, probability = calibration_curve(true, flat, n_bins=10)
    sizes = [size for size in np.histogram(flat, bins=10, range=(0, 1))[0] if size]
    assert found["calibration_error"] == pytest.approx(5 * np.average(np.abs(came_true - probability), weights=sizes))


def test_calibration_by_hand():
    # Two steps of two actions, 0.75 and 0.25; once the likelier one is taken and once the other.
    found = calibration_figures([np.array([0.75, 0.25])] * 2, [0, 1], [0, 0.5, 1])
    assert found == {"calibration_error": 0.5, "top1_calibration_error": 0.25, "brier": 0.625}
    too_long, tied = np.array([0.0]), np.array([0.5, 0.5])  # the first is a step that was too long to read
    assert calibration_figures([too_long, tied], [0, 1])["top1_calibration_error"] == 0
