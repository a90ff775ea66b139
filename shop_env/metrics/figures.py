"""All figures of a run by name: where the metrics of the other modules come together.

    step_metrics(records, preset="shop_r1")["exact_accuracy"]

A metric without a step to stand on (no logged click, no reward) is left out.
"""

from collections.abc import Sequence

import numpy as np

from replay_sessions.errors import BadConfig, did_you_mean
from shop_env.metrics.formulas import Metric
from shop_env.metrics.likelihood import metrics_of_likelihood
from shop_env.metrics.presets import MetricChoices, metric_preset
from shop_env.metrics.records import StepRecord
from shop_env.metrics.sessions import metrics_over_sessions
from shop_env.metrics.steps import metrics_over_steps
from shop_env.metrics.table import StepTable

__all__ = ["all_metrics", "find_metric", "step_metrics"]


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
