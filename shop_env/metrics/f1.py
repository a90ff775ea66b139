"""Action types: accuracy and F1, from a confusion matrix of logged and predicted types.

| name | formula | range | source |
|---|---|---|---|
| `type_accuracy`, `type_accuracy_<type>` | share with the logged type | 0–1 | Shop-R1, tables 2 and 3 |
| `type_f1_<type>` | 2·TP / (2·TP + FP + FN) | 0–1 | van Rijsbergen 1979 |
| `type_f1_macro` | mean of those over types logged or predicted | 0–1 | Customer-R1, section 4.2 |
| `type_f1_weighted` | their mean weighed by logged steps | 0–1 | OPeRA |
| `type_f1` | the preset's choice of the two | 0–1 | as there |
| `invalid_rate` | share of replies that cannot be read | 0–1 | ours |

Macro-F1 has no interval if a type has few right predictions: then each of them changes it by points, and the sample
does not show how much it varies.
"""

import math
from functools import partial

import numpy as np

from shop_env.metrics.clustered_errors import Codes, Floats
from shop_env.metrics.metric import Metric, divide, equal, of_type, share
from shop_env.metrics.presets import MetricChoices
from shop_env.metrics.step_table import ACTION_TYPES, INVALID, StepTable

MIN_RIGHT = 20  # right predictions of each class that an interval needs


def type_metrics(choices: MetricChoices) -> dict[str, Metric]:
    """Returns the metrics at the head of this module by name."""
    metrics = {
        "type_accuracy": share(_type_hits),
        "type_f1_macro": Metric(
            _type_confusion,
            partial(macro_f1, outside_is_a_class=choices.invalid == "class"),
            has_interval=has_right_predictions,
        ),
        "type_f1_weighted": Metric(_type_confusion, weighted_f1),
        "invalid_rate": share(lambda table: equal(table.predicted_type, INVALID)),
    }
    metrics["type_f1"] = metrics[f"type_f1_{choices.f1}"]
    for code, kind in enumerate(ACTION_TYPES):
        metrics[f"type_accuracy_{kind}"] = of_type(_type_hits, code)
        metrics[f"type_f1_{kind}"] = Metric(_type_confusion, partial(_f1_of_class, code=code))
    return metrics


def _f1_of_class(sums: Floats, code: int) -> Floats:
    return f1_by_class(sums)[..., code]


def _type_hits(table: StepTable) -> Floats:
    return equal(table.logged_type, table.predicted_type)


def _type_confusion(table: StepTable) -> Floats:
    return confusion(table.logged_type, table.predicted_type, len(ACTION_TYPES), np.ones(len(table)))


def confusion(logged: Codes, predicted: Codes, classes: int, counted: Floats) -> Floats:
    """Builds each step's confusion matrix, flattened to shape (steps, classes · (classes + 1)).

    Args:
        logged: The logged class of each step, shape (steps,).
        predicted: The predicted class of each step, shape (steps,); `classes` for a prediction outside the classes.
        counted: The weight of each step, shape (steps,); 0 leaves it out.
    """
    rows = np.zeros((len(logged), classes * (classes + 1)))
    rows[np.arange(len(logged)), logged * (classes + 1) + predicted] = counted
    return rows


def f1_by_class(sums: Floats) -> Floats:
    """Computes 2·TP / (2·TP + FP + FN) from summed `confusion` rows; NaN for a class neither logged nor predicted."""
    matrix = _matrix(sums)
    hits = np.diagonal(matrix, axis1=-2, axis2=-1)
    return divide(2 * hits, matrix.sum(axis=-1) + matrix[..., :-1].sum(axis=-2))


def weighted_f1(sums: Floats) -> Floats:
    """Computes the mean of F1 over classes, weighted by how often a class is logged."""
    support = _matrix(sums).sum(axis=-1)
    return divide(np.nansum(f1_by_class(sums) * support, axis=-1), support.sum(axis=-1))


def macro_f1(sums: Floats, *, outside_is_a_class: bool) -> Floats:
    """Computes the mean of F1 over the classes that are logged or predicted.

    Args:
        outside_is_a_class: Whether predictions outside the classes, if any, form another class, with F1 0.
    """
    scores = f1_by_class(sums)
    present = (~np.isnan(scores)).sum(axis=-1).astype(np.float64)
    if outside_is_a_class:
        present = present + (_matrix(sums)[..., -1].sum(axis=-1) > 0)
    return divide(np.nansum(scores, axis=-1), present)


def has_right_predictions(sums: Floats) -> bool:
    """Returns whether each class that is logged or predicted has enough right predictions for an interval."""
    matrix = _matrix(sums)
    present = matrix.sum(axis=1) + matrix[:, :-1].sum(axis=0) > 0
    return bool(np.all(np.diagonal(matrix)[present] >= MIN_RIGHT))


def _matrix(sums: Floats) -> Floats:
    """Reshapes sums to confusion matrices: rows are logged classes, columns predicted ones, the last column outside."""
    classes = math.isqrt(sums.shape[-1])
    matrix: Floats = sums.reshape(*sums.shape[:-1], classes, classes + 1)
    return matrix
