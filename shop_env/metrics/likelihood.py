"""Beyond the papers: how likely the logged action was to the agent, when it stops, and how its reasons read.

For agents that give probabilities (StepRecord.logged_probability, .logged_rank, .terminate_probability); steps without
them are not counted, except that stopping falls back on what was predicted.

| name | formula | range | source |
|---|---|---|---|
| `nll` | mean of -ln max(p, 1e-6), p the probability of the logged action among the page's candidates (0 if not there) | 0–13.8 | Good 1952 |
| `top1_accuracy`, `top3_…`, `top5_…` | share of steps with the logged action among the k likeliest candidates | 0–1 | of this project |
| `stop_brier` | mean of (p(terminate) - [the shopper left])²; without probabilities p is 1 or 0 | 0–1 | Brier 1950 |
| `stop_too_early` | share, among steps at which the shopper went on, of those where the agent leaves | 0–1 | of this project |
| `stop_too_late` | share, among steps at which the shopper left, of those where the agent does not | 0–1 | of this project |
| `rationale_similarity` | mean ROUGE-L of the rationale with the logged one, where there is one; unreadable: 0 | 0–1 | Lin 2004 |
"""  # noqa: E501 - a table row is a line

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from shop_env.metrics.formulas import Metric, equal, ratio, share
from shop_env.metrics.table import ACTION_TYPES, StepTable
from shop_env.reward.similarity import rouge_l

__all__ = ["likelihood_of", "metrics_of_likelihood"]

Floats = NDArray[np.float64]

_TERMINATE = ACTION_TYPES.index("terminate")
_SMALLEST = 1e-6
_TOP = (1, 3, 5)


def likelihood_of(logged: int, probabilities: Sequence[float]) -> tuple[float, int]:
    """The probability of candidate number `logged` and its rank, 1 for the likeliest; of equals the worst rank.

    A logged action that is not among the candidates (number -1) has probability 0 and the rank behind all.

    >>> likelihood_of(1, [0.5, 0.3, 0.2])
    (0.3, 2)
    """
    if logged < 0:
        return 0.0, len(probabilities) + 1
    return probabilities[logged], sum(other >= probabilities[logged] for other in probabilities)


def metrics_of_likelihood() -> dict[str, Metric]:
    """Every metric of this module by name."""
    tops = {f"top{k}_accuracy": share(lambda table, k=k: _within(table.logged_rank, k)) for k in _TOP}  # type: ignore[misc]
    return tops | {
        "nll": share(lambda table: -np.log(np.maximum(table.logged_probability, _SMALLEST))),
        "stop_brier": share(lambda table: (_stop_probability(table) - _left(table)) ** 2),
        "stop_too_early": ratio(lambda table: _leaves(table) * (1 - _left(table)), lambda table: 1 - _left(table)),
        "stop_too_late": ratio(lambda table: (1 - _leaves(table)) * _left(table), _left),
        "rationale_similarity": share(_rationale_similarity),
    }


def _within(rank: Floats, k: int) -> Floats:
    return np.where(np.isnan(rank), np.nan, rank <= k)


def _left(table: StepTable) -> Floats:
    return equal(table.logged_type, _TERMINATE)


def _leaves(table: StepTable) -> Floats:
    return equal(table.predicted_type, _TERMINATE)


def _stop_probability(table: StepTable) -> Floats:
    return np.where(np.isnan(table.terminate_probability), _leaves(table), table.terminate_probability)


def _rationale_similarity(table: StepTable) -> Floats:
    return np.array(
        [
            rouge_l(record.predicted_rationale or "", record.logged_rationale) if record.logged_rationale else np.nan
            for record in table.records
        ],
        dtype=np.float64,
    )
