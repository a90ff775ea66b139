"""Metrics of stopping: compares an agent's `terminate` with the shopper's.

| name | formula | range | source |
|---|---|---|---|
| `stop_brier` | mean of (p(terminate) - [logged terminate])²; without probabilities p is 1 or 0 | 0–1 | Brier 1950 |
| `stop_too_early` | share of steps before the end at which the agent terminates | 0–1 | ours |
| `stop_too_late` | share of logged terminates that the agent misses | 0–1 | ours |
"""

import numpy as np

from shop_env.metrics.clustered_errors import Floats
from shop_env.metrics.metric import Metric, equal, of_type, ratio, share
from shop_env.metrics.step_table import ACTION_TYPES, StepTable

_TERMINATE = ACTION_TYPES.index("terminate")


def stopping_metrics() -> dict[str, Metric]:
    """Returns the metrics at the head of this module by name."""
    return {
        "stop_brier": share(_squared_error),
        "stop_too_early": ratio(
            lambda table: _predicted(table) * (1 - _logged(table)), lambda table: 1 - _logged(table)
        ),
        "stop_too_late": of_type(lambda table: 1 - _predicted(table), _TERMINATE),
    }


def _squared_error(table: StepTable) -> Floats:
    probability = np.where(np.isnan(table.terminate_probability), _predicted(table), table.terminate_probability)
    error: Floats = (probability - _logged(table)) ** 2
    return error


def _logged(table: StepTable) -> Floats:
    return equal(table.logged_type, _TERMINATE)


def _predicted(table: StepTable) -> Floats:
    return equal(table.predicted_type, _TERMINATE)
