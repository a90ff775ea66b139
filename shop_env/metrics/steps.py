"""The figures over steps: exact action accuracy, type accuracy, type F1, each also per type, and their kin.

| name | formula | range | source |
|---|---|---|---|
| `exact_accuracy` | share of steps with every field of the action equal, of those whose fields were all logged | 0–1 | Shop-R1, section 4.1 |
| `exact_accuracy_similar_text` | the same, typed text of ROUGE-L ≥ τ counted as equal | 0–1 | its "similar meaning" |
| `exact_accuracy_<type>` | share among steps of that logged type | 0–1 | Shop-R1, table 3 |
| `type_accuracy`, `type_accuracy_<type>` | share with the logged type | 0–1 | Shop-R1, tables 2 and 3 |
| `type_f1_<type>` | 2·TP / (2·TP + FP + FN) | 0–1 | van Rijsbergen 1979 |
| `type_f1_macro` | mean of those over the types that are logged or predicted | 0–1 | Customer-R1, section 4.2 |
| `type_f1_weighted` | their mean weighed by how often a type is logged | 0–1 | OPeRA |
| `type_f1` | the preset's choice of the two (presets.py) | 0–1 | as there |
| `fine_type_accuracy` | share with the logged kind of click, or type off clicks | 0–1 | Customer-R1, section 4.2 |
| `click_type_f1_weighted` | weighted F1 of the kind of click, over logged clicks | 0–1 | OPeRA |
| `invalid_rate` | share of replies that cannot be read | 0–1 | of this project |
| `mean_reward` | mean reward, self-certainty aside | as the reward | Shop-R1, table 1 |
"""  # noqa: E501 - a table row is a line

import numpy as np
from numpy.typing import NDArray

from shop_env.metrics.formulas import Metric, confusion, equal, f1_by_class, macro_f1, ratio, share, weighted_f1
from shop_env.metrics.presets import MetricChoices
from shop_env.metrics.table import ACTION_TYPES, FINE_TYPES, INVALID, StepTable

__all__ = ["metrics_over_steps"]

Floats = NDArray[np.float64]
_TYPES = len(ACTION_TYPES)


def metrics_over_steps(choices: MetricChoices) -> dict[str, Metric]:
    """Every metric over steps by name, counted as `choices` say."""
    own_class = choices.invalid == "own_class"
    metrics = {
        "exact_accuracy": share(lambda table: table.exact),
        "exact_accuracy_similar_text": share(lambda table: table.exact_similar),
        "type_accuracy": share(_type_hits),
        "type_f1_macro": Metric(_type_confusion, lambda sums: macro_f1(sums, _TYPES, outside_is_a_class=own_class)),
        "type_f1_weighted": Metric(_type_confusion, lambda sums: weighted_f1(sums, _TYPES)),
        "fine_type_accuracy": share(
            lambda table: np.where(table.fine_known, equal(table.logged_fine, table.predicted_fine), np.nan)
        ),
        "click_type_f1_weighted": Metric(_click_confusion, lambda sums: weighted_f1(sums, len(FINE_TYPES))),
        "invalid_rate": share(lambda table: equal(table.predicted_type, INVALID)),
        "mean_reward": share(lambda table: table.reward),
    }
    metrics["type_f1"] = metrics[f"type_f1_{choices.f1}"]
    for code, kind in enumerate(ACTION_TYPES):
        metrics |= _per_type(code, kind)
    return metrics


def _per_type(code: int, kind: str) -> dict[str, Metric]:
    def logged(table: StepTable) -> Floats:
        return equal(table.logged_type, code)

    return {
        f"exact_accuracy_{kind}": ratio(lambda table: table.exact * logged(table), logged),
        f"type_accuracy_{kind}": ratio(lambda table: _type_hits(table) * logged(table), logged),
        f"type_f1_{kind}": Metric(_type_confusion, lambda sums: f1_by_class(sums, _TYPES)[..., code]),
    }


def _type_hits(table: StepTable) -> Floats:
    return equal(table.logged_type, table.predicted_type)


def _type_confusion(table: StepTable) -> Floats:
    return confusion(table.logged_type, table.predicted_type, _TYPES, np.ones(len(table)))


def _click_confusion(table: StepTable) -> Floats:
    clicks = equal(table.logged_type, ACTION_TYPES.index("click")) * table.fine_known
    return confusion(table.logged_fine, table.predicted_fine, len(FINE_TYPES), clicks)
