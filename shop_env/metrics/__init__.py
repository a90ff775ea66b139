"""The metrics: from the records of a run to figures with intervals (docs/metrics.md lists all of them).

    step_record.py ─► step_table.py ─► exact_match, f1, click_types, likelihood, stopping ─► all_metrics ─► intervals

choices.py has what the papers leave open, metric.py what a metric is. Statistics: clustered_errors.py (intervals, the
test), between_users.py (how alike one person's steps are), over_seeds.py. Beyond single steps: populations.py
(distances of sessions and visits), people.py (does an agent differ between people as people do?), calibration.py.
"""

from shop_env.metrics.all_metrics import step_metrics
from shop_env.metrics.choices import METRIC_PRESETS, MetricChoices, metric_preset
from shop_env.metrics.intervals import PairedTest, estimate_metric, paired_test
from shop_env.metrics.likelihood import Likelihood, checked_distribution, likelihood_of
from shop_env.metrics.populations import ActionTrace, Fidelity, population_fidelity, trace_of
from shop_env.metrics.step_record import StepRecord, record_step

__all__ = [
    "METRIC_PRESETS",
    "ActionTrace",
    "Fidelity",
    "Likelihood",
    "MetricChoices",
    "PairedTest",
    "StepRecord",
    "checked_distribution",
    "estimate_metric",
    "likelihood_of",
    "metric_preset",
    "paired_test",
    "population_fidelity",
    "record_step",
    "step_metrics",
    "trace_of",
]
