"""The metrics: from the records of a run to figures with intervals.

    StepRecord (records.py) ─► StepTable (table.py) ─► steps.py, sessions.py ─► figures.py ─► intervals.py

presets.py fixes the choices that the papers leave open.
"""

from shop_env.metrics.figures import step_metrics
from shop_env.metrics.intervals import bootstrap_interval, paired_difference
from shop_env.metrics.presets import METRIC_PRESETS, MetricChoices, metric_preset
from shop_env.metrics.records import StepRecord, record_step

__all__ = [
    "METRIC_PRESETS",
    "MetricChoices",
    "StepRecord",
    "bootstrap_interval",
    "metric_preset",
    "paired_difference",
    "record_step",
    "step_metrics",
]
