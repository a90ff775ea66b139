"""Metrics of kinds of click (a purchase, a filter, a product, …) and of the outcomes of sessions.

| name | formula | range | source |
|---|---|---|---|
| `fine_type_accuracy` | share with the logged kind of click, or type off clicks | 0–1 | Customer-R1, section 4.2 |
| `click_rule_agreement` | share of logged clicks whose name gives the log's own kind | 0–1 | ours |
| `click_type_f1_weighted` | weighted F1 of the kind of click, over logged clicks | 0–1 | OPeRA |
| `outcome_f1_purchase` | F1 of the outcome purchase alone | 0–1 | Lu et al. 2025, section 4.2 |
| `outcome_f1_weighted` | F1 of both outcomes, weighed by logged sessions; a reply that is neither misses | 0–1 | Customer-R1, section 4.2 |

The kind of a logged click is the log's or, if the log has none, follows from its name (shop_env/reward/click_types.py).
The kind of a predicted click follows from its name, except that a click equal to the logged one has the same kind.

The outcome of a session is its last logged action, a click of kind `purchase` or `terminate`; the prediction is the
reply to that step. Sessions that end otherwise have no outcome and are not counted.
"""  # noqa: E501 - a table row is a line

from collections.abc import Sequence

import numpy as np

from shop_env.metrics.clustered_errors import Floats
from shop_env.metrics.f1 import confusion, f1_by_class, weighted_f1
from shop_env.metrics.metric import Metric, equal, share
from shop_env.metrics.step_record import StepRecord
from shop_env.metrics.step_table import ACTION_TYPES, FINE_TYPES, StepTable

KIND_METRICS = ("fine_type_accuracy", "click_type_f1_weighted", "outcome_f1_weighted")  # use kinds derived from names
OUTCOMES = ("purchase", "terminate")
_NEITHER = len(OUTCOMES)


def click_type_metrics() -> dict[str, Metric]:
    """Returns the metrics of kinds of click by name."""
    return {
        "fine_type_accuracy": share(_fine_hits),
        "click_rule_agreement": share(lambda table: table.rule_agrees),
        "click_type_f1_weighted": Metric(_click_confusion, weighted_f1),
    }


def outcome_metrics() -> dict[str, Metric]:
    """Returns the metrics of outcomes by name."""
    return {
        "outcome_f1_purchase": Metric(
            _outcome_confusion, lambda sums: f1_by_class(sums)[..., OUTCOMES.index("purchase")]
        ),
        "outcome_f1_weighted": Metric(_outcome_confusion, weighted_f1),
    }


def agreement_note(records: Sequence[StepRecord]) -> str | None:
    """Returns a note for a table: how often kinds derived from names agree with the log's; None if the log has none."""
    agrees = StepTable(records, "shop_r1").rule_agrees
    clicks = agrees[~np.isnan(agrees)]
    if not len(clicks):
        return None
    return (
        f"Kinds of click by the elements' names, as here of predicted clicks, are the log's own in "
        f"{100 * clicks.mean():.1f}% of its {len(clicks):,} clicks (click_rule_agreement)."
    )


def _fine_hits(table: StepTable) -> Floats:
    return np.where(table.fine_known, equal(table.logged_fine, table.predicted_fine), np.nan)


def _click_confusion(table: StepTable) -> Floats:
    clicks = equal(table.logged_type, ACTION_TYPES.index("click")) * table.fine_known
    return confusion(table.logged_fine, table.predicted_fine, len(FINE_TYPES), clicks)


def _outcome_confusion(table: StepTable) -> Floats:
    codes = np.array([OUTCOMES.index(name) if name in OUTCOMES else _NEITHER for name in (*FINE_TYPES, "invalid")])
    logged, predicted = codes[table.logged_fine], codes[table.predicted_fine]
    counted = table.last * (logged != _NEITHER) / table.weights  # a session counts once, however steps are weighed
    return confusion(np.minimum(logged, _NEITHER - 1), predicted, len(OUTCOMES), counted)
