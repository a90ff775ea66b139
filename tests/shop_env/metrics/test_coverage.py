"""95% intervals hold the true value as often as they say where long sessions are more predictable.

A user is one session, of 2 to about 50 steps (lognormal, median 6); the odds that a step is predicted grow with the
length. `python -m tests.shop_env.metrics.test_coverage` prints the table that docs/metrics.md sums up.
"""

from collections.abc import Callable

import numpy as np
import pytest
from scipy.special import expit

from shop_env.metrics import MetricChoices
from shop_env.metrics.all_metrics import find_metric
from shop_env.metrics.clustered_errors import Codes, Floats, clustered_error, estimate, value_error, within_bounds
from shop_env.metrics.intervals import influences
from shop_env.metrics.metric import Metric

Draw = Callable[[np.random.Generator, int], Floats]  # sums of each user's steps, (users, k)
USERS = (15, 30, 100, 300)


def draw_users(rng: np.random.Generator, users: int, base: float, slope: float) -> tuple[Codes, Floats]:
    steps = np.maximum(2, np.rint(np.exp(rng.normal(1.8, 0.9, users)))).astype(np.int64)
    return steps, expit(base + slope * (np.log(steps) - 1.8) + 0.5 * rng.normal(size=users))


def hits(base: float, slope: float = 0.8) -> Draw:
    def draw(rng: np.random.Generator, users: int) -> Floats:
        steps, odds = draw_users(rng, users, base, slope)
        return np.stack([rng.binomial(steps, odds), steps], axis=1).astype(np.float64)

    return draw


def ends(rng: np.random.Generator, users: int) -> Floats:
    _, odds = draw_users(rng, users, -1.7, 0.8)
    return np.stack([rng.binomial(1, odds), np.ones(users)], axis=1)


def nats(rng: np.random.Generator, users: int) -> Floats:
    steps, odds = draw_users(rng, users, -1, 0.8)
    return np.stack([rng.gamma(steps, -np.log(odds)), steps], axis=1)


def confusions(rng: np.random.Generator, users: int) -> Floats:
    steps, odds = draw_users(rng, users, -0.5, 0.6)
    texts = rng.binomial(steps - 1, 0.125)
    clicks = steps - 1 - texts
    too_early, typed, ended = rng.binomial(clicks, 0.03), rng.binomial(texts, odds), rng.binomial(1, odds**2)
    sums = np.zeros((users, 12))  # logged click, text, end by predicted click, text, end, unreadable
    right_and_wrong = [clicks - too_early, too_early, texts - typed, typed, 1 - ended, ended]
    sums[:, [0, 2, 4, 5, 8, 10]] = np.stack(right_and_wrong, axis=1)
    return sums


FIGURES: dict[str, tuple[str, Draw]] = {
    "equal sessions": ("exact_accuracy", hits(-1, slope=0)),
    "exact match": ("exact_accuracy", hits(-1)),
    "NLL": ("nll", nats),
    "a rare event (3% of the steps)": ("invalid_rate", hits(-4.5)),
    "right ends (one a session)": ("exact_accuracy_terminate", ends),
    "macro-F1": ("type_f1_macro", confusions),
}


def coverage(name: str, users: int, repetitions: int) -> tuple[float, float, float]:
    """Returns how often the interval holds the truth, how often a difference's would, and how often it is there."""
    metric, draw, rng = find_metric(FIGURES[name][0], MetricChoices()), FIGURES[name][1], np.random.default_rng(users)
    truth = metric.total(draw(np.random.default_rng(0), 500_000))
    found = [_holds(metric, draw(rng, users), truth) for _ in range(repetitions)]
    shown = np.array([one for one in found if one is not None])
    return (*shown.mean(axis=0), len(shown) / repetitions) if len(shown) else (np.nan, np.nan, 0.0)


def _holds(metric: Metric, sums: Floats, truth: float) -> tuple[bool, bool] | None:
    value, counted = metric.total(sums), metric.counted(sums)
    arguments = influences(metric, sums), counted / counted.sum()
    single = within_bounds(estimate(value, value_error(*arguments)), metric.bounds)
    plain = estimate(value, clustered_error(*arguments))
    if not metric.has_interval(sums.sum(axis=0)) or single.low is None or single.high is None:
        return None
    return single.low <= truth <= single.high, plain.low <= truth <= plain.high


@pytest.mark.long
@pytest.mark.parametrize("users", USERS)
@pytest.mark.parametrize("name", FIGURES)
def test_intervals_of_single_values_hold_the_truth(name, users):
    held, _, shown = coverage(name, users, 1000)
    assert shown < 0.3 or held > 0.93 - 2 * 0.008  # two standard errors of a share of 1,000


if __name__ == "__main__":
    for name in FIGURES:
        cells = [coverage(name, users, 20_000) for users in USERS]
        print(f"| {name} | " + " | ".join(f"{100 * a:.1f} ({100 * b:.1f})" for a, b, _ in cells) + " |")
