"""A metric for shop-r1: a value of each step, whose mean over steps stands in tables with its interval.

shop-r1 rank --agents random,oracle --metrics shop_r1,own_metric.py:metric --out boards/own_metric
"""

from shop_env.metrics import StepRecord


def metric(step: StepRecord) -> float | None:
    """Counts the words of the rationale; None leaves a step out, here those whose reply could not be read."""
    return None if step.predicted_rationale is None else float(len(step.predicted_rationale.split()))
