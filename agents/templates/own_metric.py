"""A metric for shop-r1: a value for each step; tables show its mean over steps, with an interval.

shop-r1 rank --agents random,oracle --metrics shop_r1,own_metric.py:metric --out boards/own_metric
"""

from shop_env.metrics import StepRecord


def metric(step: StepRecord) -> float | None:
    """Counts the words of the rationale; None leaves a step out, here because its reply could not be parsed."""
    return None if step.predicted_rationale is None else float(len(step.predicted_rationale.split()))
