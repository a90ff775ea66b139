"""Tests that the metric is the mean over the steps that it counts."""

from pathlib import Path

from shop_env.metrics import StepRecord, step_metrics

METRIC = f"{Path(__file__).with_name('own_metric.py')}:metric"


def test_it_is_the_mean_over_the_steps_that_count() -> None:
    steps = [
        StepRecord(
            session_id="a",
            user_id="a",
            step_index=index,
            step_count=3,
            logged={"type": "terminate"},
            predicted_rationale=rationale,
        )
        for index, rationale in enumerate(["too dear", "I have seen enough of it", None])
    ]
    assert step_metrics(steps, f"shop_r1,{METRIC}")[METRIC] == 4.0
