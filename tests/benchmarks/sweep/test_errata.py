"""The arithmetic of docs/errata.md, from the published values in benchmarks/sweep/papers."""

import numpy as np
import pytest

from benchmarks.sweep.file import load_sweep
from shop_env.metrics.f1 import macro_f1, weighted_f1

STEPS = np.array([690, 677, 512])  # of Shop-R1's test set: click, type_and_submit, terminate


def published(table: str) -> dict[tuple[str, str], list[float]]:
    """The figures of each row and model, percent."""
    return {(row.label, model): figures for row in load_sweep(table).row for model, figures in row.published.items()}


def totals(figures: list[float]) -> list[float]:
    """Exact and type accuracy over all steps, from those of each type."""
    exact, of_type = np.array(figures[:3]), np.array(figures[3:])
    return [float(STEPS @ exact / STEPS.sum()), float(STEPS @ of_type / STEPS.sum())]


def test_table_3_adds_up_to_table_2_but_for_two_rows():
    table2, table3 = published("shop_r1_table2"), published("shop_r1_table3")
    off = {
        key: totals(figures)
        for key, figures in table3.items()
        if key in table2 and totals(figures) != pytest.approx(table2[key][:2], abs=0.02)
    }
    assert set(off) == {("Shop-R1", "0.5B"), ("zero-shot", "3B")}
    assert off["Shop-R1", "0.5B"] == pytest.approx([28.15, 33.26], abs=0.01)
    assert off["zero-shot", "3B"] == pytest.approx([0.27, 14.80], abs=0.01)


def test_always_terminating_explains_two_rows_of_table_4():
    confusion = np.zeros((3, 4))  # logged types by predicted ones, an unreadable reply last
    confusion[:, 2] = STEPS
    share = 100 * STEPS[2] / STEPS.sum()
    assert share == pytest.approx(27.25, abs=0.01)
    assert 100 * float(weighted_f1(confusion.ravel())) == pytest.approx(11.67, abs=0.01)
    assert 100 * float(macro_f1(confusion.ravel(), outside_is_a_class=False)) == pytest.approx(14.28, abs=0.01)
    table4 = published("shop_r1_table4")
    for row in ("w/o reward scale", "binary action reward"):
        _, of_type, f1 = table4[row, "3B"]
        assert of_type == pytest.approx(share, abs=0.25)
        assert f1 == pytest.approx(11.67, abs=0.5)
    assert table4["w/o reward scale", "3B"][0] > table4["w/o reward scale", "3B"][1]


def test_the_least_f1_that_table_3_allows():
    """Over a grid of what misses of each type were predicted as; unreadable replies only raise F1."""
    steps, shares = STEPS[:, None], np.indices((21, 21, 21)).reshape(3, -1) / 20
    table3 = published("shop_r1_table3")
    for model, average, least in (("3B", 1 / 3, 32.54), ("0.5B", steps / STEPS.sum(), 22.47)):
        right = np.array(table3["Shop-R1", model][3:])[:, None] / 100 * steps
        other = (steps - right) * shares
        f1 = 200 * right / (steps + right + np.roll(other, 1, 0) + np.roll(steps - right - other, 2, 0))
        assert (average * f1).sum(0).min() == pytest.approx(least, abs=0.02)
