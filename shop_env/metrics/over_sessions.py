"""The figure over whole sessions: does the shopper buy or leave?

Customer-R1, section 4.2, "session outcome F1": sessions of OPeRA end in a click on something to do with purchasing or
in `terminate`; the prediction is the reply to the last logged step. Sessions that end otherwise (other logs have them)
have no outcome and are not counted.

| name | formula | range | source |
|---|---|---|---|
| `outcome_f1_weighted` | F1 of the two outcomes, weighed by how often each is logged; a reply that is neither misses | 0–1 | Customer-R1, section 4.2 |
"""  # noqa: E501 - a table row is a line

import numpy as np
from numpy.typing import NDArray

from shop_env.metrics.shares_and_f1 import Metric, confusion, weighted_f1
from shop_env.metrics.step_table import FINE_TYPES, StepTable

__all__ = ["OUTCOMES", "metrics_over_sessions"]

OUTCOMES = ("purchase", "terminate")
_NEITHER = len(OUTCOMES)


def metrics_over_sessions() -> dict[str, Metric]:
    """Every metric over sessions by name."""
    return {"outcome_f1_weighted": Metric(_outcome_confusion, lambda sums: weighted_f1(sums, len(OUTCOMES)))}


def _outcome(fine_type: NDArray[np.int64]) -> NDArray[np.int64]:
    codes = np.full(len(FINE_TYPES) + 1, _NEITHER)
    for outcome, name in enumerate(OUTCOMES):
        codes[FINE_TYPES.index(name)] = outcome
    return codes[fine_type]


def _outcome_confusion(table: StepTable) -> NDArray[np.float64]:
    logged, predicted = _outcome(table.logged_fine), _outcome(table.predicted_fine)
    counted = table.last * (logged != _NEITHER) / table.weights  # a session counts once, however steps are weighed
    return confusion(np.minimum(logged, _NEITHER - 1), predicted, len(OUTCOMES), counted)
