"""Computes metrics with intervals from the records of a run (docs/metrics.md lists all of them).

    step_record.py ─► step_table.py ─► exact_match, f1, click_types, likelihood, stopping ─► all_metrics ─► intervals

metric.py defines a metric, and presets.py the settings that the papers leave open. Statistics: clustered_errors.py
(intervals, the test), between_users.py (the similarity of a user's steps), over_seeds.py. Beyond single steps:
people.py (does an agent act, and differ between users, as people do?), calibration.py.
"""

from shop_env.metrics.all_metrics import step_metrics
from shop_env.metrics.intervals import PairedTest, estimate_metric, paired_test
from shop_env.metrics.likelihood import Likelihood, checked_distribution, likelihood_of
from shop_env.metrics.presets import METRIC_PRESETS, MetricChoices, metric_preset
from shop_env.metrics.step_record import StepRecord, record_step

__all__ = [
    "METRIC_PRESETS",
    "Likelihood",
    "MetricChoices",
    "PairedTest",
    "StepRecord",
    "checked_distribution",
    "estimate_metric",
    "likelihood_of",
    "metric_preset",
    "paired_test",
    "record_step",
    "step_metrics",
]
