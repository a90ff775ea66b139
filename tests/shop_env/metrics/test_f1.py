"""Confusion matrices that have an interval of macro-F1, by hand."""

import numpy as np
import pytest

from shop_env.metrics.f1 import has_right_predictions


@pytest.mark.parametrize(
    ("rows", "has_interval"),
    [
        ([[20, 0, 0, 9], [0, 20, 5, 0], [0, 5, 20, 0]], True),
        ([[20, 0, 0, 0], [0, 20, 0, 0], [0, 0, 0, 0]], True),  # the third class does not occur
        ([[20, 0, 0, 0], [0, 20, 0, 0], [0, 0, 19, 0]], False),
        ([[20, 0, 0, 0], [0, 20, 0, 0], [9, 0, 0, 0]], False),  # logged and never predicted
        ([[20, 0, 1, 0], [0, 20, 0, 0], [0, 0, 0, 0]], False),  # predicted and never logged
    ],
)
def test_macro_f1_has_an_interval_if_each_class_that_occurs_has_twenty_right_predictions(rows, has_interval):
    assert has_right_predictions(np.array(rows, dtype=float).ravel()) == has_interval
