"""How often each test of a difference finds one at 5%, over many simulated pairs of agents.

Where the agents are equal that is how often it errs, and 5% is right; where one is better, the more the better.
"""

import msgspec
import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from benchmarks.studies.statistics.bootstrap import difference_interval
from benchmarks.studies.statistics.sign_flips import sign_flip_p_value
from benchmarks.studies.statistics.worlds import WORLDS, simulated_pairs
from replay_sessions.foundation.progress import progress_bar
from shop_env.metrics.all_metrics import Metric, find_metric
from shop_env.metrics.intervals import difference_error
from shop_env.metrics.statistics import t_p_value
from shop_env.metrics.step_table import MetricChoices

Floats = NDArray[np.float64]

TESTS = ("steps as if independent", "percentile bootstrap", "CR2", "sign flips")
METRICS = ("type_accuracy", "type_f1_macro")
LEVEL = 0.05


class ErrorRate(msgspec.Struct, frozen=True, kw_only=True):
    """In how many of `pairs` each test found a difference, as a share; of TESTS, those that the metric allows."""

    world: str
    metric: str
    difference: float
    pairs: int
    found: dict[str, float]


def error_rates(pairs: int, differences: tuple[float, ...], seed: int, samples: int) -> list[ErrorRate]:
    """The rates of each world, difference and metric."""
    rates = []
    with progress_bar("pairs", len(WORLDS) * len(differences) * pairs) as advance:
        for name, world in WORLDS.items():
            for difference in differences:
                hits: dict[str, list[dict[str, bool]]] = {metric: [] for metric in METRICS}
                for number, sides in enumerate(simulated_pairs(world, difference, pairs, seed)):
                    for metric in METRICS:
                        hits[metric].append(finds(metric, *sides, seed=number, samples=samples))
                    advance(1)
                rates += [
                    ErrorRate(world=name, metric=metric, difference=difference, pairs=pairs, found=_shares(of_metric))
                    for metric, of_metric in hits.items()
                ]
    return rates


def finds(name: str, sums_a: Floats, sums_b: Floats, *, seed: int, samples: int) -> dict[str, bool]:
    """Whether each test finds a difference between two agents, from the confusions of their types by user."""
    choices = MetricChoices()
    if name == "type_accuracy":
        sums_a, sums_b = (_right_and_all(sums) for sums in (sums_a, sums_b))
    metric = find_metric(name, choices)
    low, high = difference_interval(metric, sums_a, sums_b, samples=samples, seed=seed)
    error = difference_error(metric, sums_a, sums_b)
    difference = float(metric.value(sums_a.sum(axis=0)) - metric.value(sums_b.sum(axis=0)))
    hits = {
        "percentile bootstrap": not low <= 0 <= high,
        "CR2": error is not None and t_p_value(difference, error) < LEVEL,
        "sign flips": sign_flip_p_value(metric.value, sums_a, sums_b, seed=seed) <= LEVEL,
    }
    if name == "type_accuracy":
        hits["steps as if independent"] = _naive_p_value(metric, sums_a, sums_b) < LEVEL
    return hits


def _right_and_all(confusions: Floats) -> Floats:
    matrices = confusions.reshape(len(confusions), 3, 4)
    right = np.diagonal(matrices, axis1=1, axis2=2).sum(axis=1)
    return np.stack([right, matrices.sum(axis=(1, 2))], axis=1)


def _naive_p_value(metric: Metric, sums_a: Floats, sums_b: Floats) -> float:
    """Of two shares over steps, as if no step had anything to do with another."""
    shares = [float(metric.value(sums.sum(axis=0))) for sums in (sums_a, sums_b)]
    steps = sums_a[:, 1].sum()
    error = np.sqrt(sum(share * (1 - share) for share in shares) / steps)
    return float(2 * ndtr(-abs(shares[0] - shares[1]) / error))


def _shares(hits: list[dict[str, bool]]) -> dict[str, float]:
    return {test: sum(hit[test] for hit in hits) / len(hits) for test in TESTS if test in hits[0]}
