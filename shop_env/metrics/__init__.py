"""The metrics: from the records of a run to figures with intervals (docs/metrics.md lists all of them).

    step_table.py (StepRecord ─► StepTable) ─► all_metrics.py ─► intervals.py

step_table.py also has the choices that the papers leave open, action_likelihood.py what an agent's probabilities say of
the logged action and of whose persona it is; populations.py compares whole populations of sessions and visits.
intervals.py has the interval and the paired test, statistics.py their arithmetic.
people.py: does an agent differ between people and within one as people do? two_sample.py: can a classifier distinguish
the two? skill.py: what do its probabilities know?
"""

from shop_env.metrics.action_likelihood import Likelihood, checked_distribution, likelihood_of
from shop_env.metrics.all_metrics import step_metrics
from shop_env.metrics.intervals import PairedTest, estimate_metric, paired_difference, paired_test
from shop_env.metrics.populations import ActionTrace, Fidelity, population_fidelity, trace_of
from shop_env.metrics.step_table import METRIC_PRESETS, MetricChoices, StepRecord, metric_preset, record_step

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
    "paired_difference",
    "paired_test",
    "population_fidelity",
    "record_step",
    "step_metrics",
    "trace_of",
]
