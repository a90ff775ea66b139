"""The metrics: from the records of a run to figures with intervals (docs/metrics.md lists all of them).

    records.py ─► step_table.py ─► over_steps.py, over_sessions.py, action_likelihood.py ─► all_metrics.py
                                                                             intervals.py, paired_tests.py ◄─┘

shares_and_f1.py has the formulas, presets.py the choices that the papers leave open; populations.py compares whole
populations of sessions and visits. cluster_sums.py adds up each user's steps for intervals and tests; statistics/ is
their arithmetic. people/ asks whether an agent differs between people and within one as people do, skill/ what its
probabilities know.
"""

from shop_env.metrics.action_likelihood import Likelihood, checked_distribution, likelihood_of
from shop_env.metrics.all_metrics import step_metrics
from shop_env.metrics.intervals import bootstrap_interval, paired_difference
from shop_env.metrics.paired_tests import PairedTest, paired_test
from shop_env.metrics.populations import ActionTrace, Fidelity, population_fidelity, trace_of
from shop_env.metrics.presets import METRIC_PRESETS, MetricChoices, metric_preset
from shop_env.metrics.records import StepRecord, record_step

__all__ = [
    "METRIC_PRESETS",
    "ActionTrace",
    "Fidelity",
    "Likelihood",
    "MetricChoices",
    "PairedTest",
    "StepRecord",
    "bootstrap_interval",
    "checked_distribution",
    "likelihood_of",
    "metric_preset",
    "paired_difference",
    "paired_test",
    "population_fidelity",
    "record_step",
    "step_metrics",
    "trace_of",
]
