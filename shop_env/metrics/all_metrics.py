"""Collects the metrics of all modules by name, and computes them for a run.

    step_metrics(records, preset="shop_r1")["exact_accuracy"]

A metric without a step to count (no logged click, no reward) is left out.

The metrics are those of exact_match.py, f1.py (action types), click_types.py (and outcomes of sessions), likelihood.py,
stopping.py and long_pages.py, and

| name | formula | range | source |
|---|---|---|---|
| `exact_accuracy_shop_r1_mix`, `type_accuracy_shop_r1_mix`, `type_f1_weighted_shop_r1_mix` | the same, clicks, typed texts and ends weighed 690:677:512, derived from the paper's table 3 | 0–1 | Shop-R1, table 3 |
| `mean_reward` | mean reward, self-certainty aside | as the reward | Shop-R1, table 1 |
| `rationale_similarity` | mean ROUGE-L of the rationale with the logged one; unreadable: 0 | 0–1 | Lin 2004 |
| `empty_rationale_rate` | share of readable replies whose rationale is empty or blank | 0–1 | ours |
"""  # noqa: E501 - a table row is a line

import math
from collections.abc import Sequence
from functools import partial

from replay_sessions.foundation.errors import BadConfig, did_you_mean
from replay_sessions.foundation.plugins import load_measure
from shop_env.metrics.click_types import click_type_metrics, outcome_metrics
from shop_env.metrics.clustered_errors import Floats
from shop_env.metrics.exact_match import exact_match_metrics
from shop_env.metrics.f1 import type_metrics
from shop_env.metrics.likelihood import likelihood_metrics
from shop_env.metrics.long_pages import long_page_metrics
from shop_env.metrics.metric import UNBOUNDED, Metric, in_mix, share
from shop_env.metrics.presets import SHOP_R1_MIX, MetricChoices
from shop_env.metrics.step_record import StepRecord
from shop_env.metrics.step_table import StepTable
from shop_env.metrics.stopping import stopping_metrics
from shop_env.reward.similarity import rouge_l

IN_SHOP_R1_MIX = ("exact_accuracy", "type_accuracy", "type_f1_weighted")


def step_metrics(records: Sequence[StepRecord], preset: str | MetricChoices = "shop_r1") -> dict[str, float]:
    """Computes all metrics of a run, and its counts.

    `steps`, `sessions` and `users` count scored steps, their sessions and their users. `errors` counts steps without a
    reply. `unscored_targets` counts scored steps whose logged action lacks a field: only their type can be right or
    wrong.

    Args:
        preset: The choices of the metrics (presets.py).
    """
    table = StepTable(records, preset)
    values = {name: metric.total(metric.rows(table)) for name, metric in all_metrics(table.choices).items()}
    counts = {
        "steps": len(table),
        "sessions": table.clusters("session")[1],
        "users": table.clusters("user")[1],
        "errors": table.errors,
        "unscored_targets": len(table) - table.scorable.sum(),
    }
    return {name: float(value) for name, value in (counts | values).items() if not math.isnan(value)}


def find_metric(name: str, choices: MetricChoices) -> Metric:
    """Returns the metric of that name.

    Raises:
        BadConfig: No metric has that name.
    """
    metrics = all_metrics(choices)
    if name not in metrics:
        raise BadConfig(f"Unknown metric {name!r}. {did_you_mean(name, metrics)}")
    return metrics[name]


def all_metrics(choices: MetricChoices) -> dict[str, Metric]:
    """Returns every metric by name, computed according to `choices`."""
    action_metrics = exact_match_metrics() | type_metrics(choices)
    of_steps = {
        **action_metrics,
        **click_type_metrics(),
        **likelihood_metrics(),
        **stopping_metrics(),
        **long_page_metrics(),
        "mean_reward": share(lambda table: table.reward, UNBOUNDED),
        "rationale_similarity": share(_rationale_similarity),
        "empty_rationale_rate": share(_empty_rationales),
        **{
            name: share(partial(StepTable.column, value=load_measure("metrics", name)), UNBOUNDED)
            for name in choices.own
        },
    }
    return {
        **{name: in_mix(metric, choices.mix) if choices.mix else metric for name, metric in of_steps.items()},
        **{f"{name}_shop_r1_mix": in_mix(action_metrics[name], SHOP_R1_MIX) for name in IN_SHOP_R1_MIX},
        **outcome_metrics(),
    }


def _rationale_similarity(table: StepTable) -> Floats:
    return table.column(
        lambda record: (
            rouge_l(record.predicted_rationale or "", record.logged_rationale) if record.logged_rationale else None
        )
    )


def _empty_rationales(table: StepTable) -> Floats:
    return table.column(lambda r: None if r.predicted_rationale is None else not r.predicted_rationale.strip())
