"""All figures of a run by name: where the metrics of the other modules come together.

    step_metrics(records, preset="shop_r1")["exact_accuracy"]

A metric without a step to stand on (no logged click, no reward) is left out.

The figures over steps: exact action accuracy, type accuracy, type F1, each also per type, and their kin.

| name | formula | range | source |
|---|---|---|---|
| `exact_accuracy` | share of steps with every field of the action equal, of those whose fields were all logged | 0–1 | Shop-R1, section 4.1 |
| `exact_accuracy_similar_text` | the same, typed text of ROUGE-L ≥ τ counted as equal | 0–1 | Shop-R1, section 4.1: "similar meaning" |
| `exact_accuracy_<type>` | share among steps of that logged type | 0–1 | Shop-R1, table 3 |
| `type_accuracy`, `type_accuracy_<type>` | share with the logged type | 0–1 | Shop-R1, tables 2 and 3 |
| `type_f1_<type>` | 2·TP / (2·TP + FP + FN) | 0–1 | van Rijsbergen 1979 |
| `type_f1_macro` | mean of those over the types that are logged or predicted | 0–1 | Customer-R1, section 4.2 |
| `type_f1_weighted` | their mean weighed by how often a type is logged | 0–1 | OPeRA |
| `type_f1` | the preset's choice of the two | 0–1 | as there |
| `fine_type_accuracy` | share with the logged kind of click, or type off clicks | 0–1 | Customer-R1, section 4.2 |
| `click_rule_agreement` | share of logged clicks whose kind by the rule on their name is the log's own; says nothing of the agent | 0–1 | of this project |
| `click_type_f1_weighted` | weighted F1 of the kind of click, over logged clicks | 0–1 | OPeRA |
| `invalid_rate` | share of replies that cannot be read | 0–1 | of this project |
| `mean_reward` | mean reward, self-certainty aside | as the reward | Shop-R1, table 1 |
| `outcome_f1_weighted` | F1 of the two outcomes, weighed by how often each is logged; a reply that is neither misses | 0–1 | Customer-R1, section 4.2 |

`outcome_f1_weighted` is over whole sessions: does the shopper buy or leave? Customer-R1, section 4.2, "session outcome F1": sessions of OPeRA end in a click on something to do with purchasing or
in `terminate`; the prediction is the reply to the last logged step. Sessions that end otherwise (other logs have them)
have no outcome and are not counted.
"""  # noqa: E501 - a table cannot be wrapped

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from replay_sessions.foundation.errors import BadConfig, did_you_mean
from shop_env.metrics.action_likelihood import metrics_of_likelihood
from shop_env.metrics.records import StepRecord
from shop_env.metrics.shares_and_f1 import Metric, confusion, equal, f1_by_class, macro_f1, ratio, share, weighted_f1
from shop_env.metrics.step_table import ACTION_TYPES, FINE_TYPES, INVALID, MetricChoices, StepTable, metric_preset

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
        "click_rule_agreement": share(lambda table: table.rule_agrees),
        "click_type_f1_weighted": Metric(_click_confusion, lambda sums: weighted_f1(sums, len(FINE_TYPES))),
        "invalid_rate": share(lambda table: equal(table.predicted_type, INVALID)),
        "mean_reward": share(lambda table: table.reward, (-math.inf, math.inf)),
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


def step_metrics(records: Sequence[StepRecord], preset: str | MetricChoices = "shop_r1") -> dict[str, float]:
    """All figures of a run, with the counts it stands on.

    `steps`, `sessions` and `users` are what was scored; `errors` counts steps without a reply, and `unscored_targets`
    those of the scored steps whose logged action lacks a field: only their type can be right or wrong.
    """
    choices = metric_preset(preset)
    table = StepTable(records, choices)
    figures: dict[str, float] = {
        "steps": float(len(table)),
        "sessions": float(len({record.session_id for record in table.records})),
        "users": float(len({record.user_id for record in table.records})),
        "errors": float(table.errors),
        "unscored_targets": float(len(table) - table.scorable.sum()),
    }
    for name, metric in all_metrics(choices).items():
        sums = (metric.statistics(table) * table.weights[:, None]).sum(axis=0)
        value = float(metric.value(sums))
        if not np.isnan(value):
            figures[name] = value
    return figures


def all_metrics(choices: MetricChoices) -> dict[str, Metric]:
    """Every metric by name, counted as `choices` say."""
    return metrics_over_steps(choices) | metrics_over_sessions() | metrics_of_likelihood()


def find_metric(name: str, choices: MetricChoices) -> Metric:
    """The metric of that name."""
    metrics = all_metrics(choices)
    if name not in metrics:
        raise BadConfig(f"Unknown metric {name!r}. {did_you_mean(name, metrics)}")
    return metrics[name]
