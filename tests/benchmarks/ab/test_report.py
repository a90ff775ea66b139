"""The sentences of the A/B lab, on effects written by hand."""

import pytest

from benchmarks.ab.effects import Effect, prediction
from benchmarks.ab.lab import LabResults, LabRow
from benchmarks.ab.report import correlation, sentences


def get_effect(difference: float) -> Effect:
    ends = {"low": difference - 0.01, "high": difference + 0.01}
    return Effect(difference=difference, **ends, standard_error=0.005, visits=400, before=0.5)


def test_one_change_that_carries_the_correlation_is_named():
    """Three of four predictions have the wrong order; the large fourth makes the correlation look high."""
    true = {"a": 0.01, "b": 0.02, "c": 0.03, "checkout": 0.30}
    predicted = {"a": 0.03, "b": 0.02, "c": 0.01, "checkout": 0.30}
    row = LabRow(
        label="surrogate",
        predictions={n: {"bought": prediction(get_effect(predicted[n]), get_effect(true[n]))} for n in true},
    )
    results = LabResults(true={name: {"bought": get_effect(effect)} for name, effect in true.items()}, rows=[row])
    [sentence] = sentences(results)
    assert "correlation with the true effects 0.99 (-1.00 without checkout)" in sentence


@pytest.mark.parametrize("pairs", [{"a": (0.1, 0.2), "b": (0.2, 0.3)}, {name: (0.0, ord(name)) for name in "abc"}])
def test_correlation_of_too_few_or_equal_values_is_undefined(pairs):
    assert correlation(pairs) is None
