"""The metrics: from the records of a run to figures with intervals.

    StepRecord (records.py) ─► StepTable (table.py) ─► steps, sessions, likelihood ─► figures.py ─► intervals.py
                                                   └─► fidelity.py: simulated shoppers as a population

presets.py fixes the choices that the papers leave open.
"""

from shop_env.metrics.fidelity import Fidelity, Visit, population_fidelity, teacher_forced_visits, visit_of
from shop_env.metrics.figures import step_metrics
from shop_env.metrics.intervals import bootstrap_interval, paired_difference
from shop_env.metrics.likelihood import Likelihood, checked_distribution, likelihood_of
from shop_env.metrics.presets import METRIC_PRESETS, MetricChoices, metric_preset
from shop_env.metrics.records import StepRecord, record_step

__all__ = [
    "METRIC_PRESETS",
    "Fidelity",
    "Likelihood",
    "MetricChoices",
    "StepRecord",
    "Visit",
    "bootstrap_interval",
    "checked_distribution",
    "likelihood_of",
    "metric_preset",
    "paired_difference",
    "population_fidelity",
    "record_step",
    "step_metrics",
    "teacher_forced_visits",
    "visit_of",
]
