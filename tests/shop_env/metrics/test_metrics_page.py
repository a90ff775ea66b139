"""docs/metrics.md says what the code does: its tables are the modules' own, complete, and the ranges hold."""

import re
from pathlib import Path
from types import ModuleType

import msgspec
import pytest

from replay_sessions.schema import Action, Click, Session, Step, Terminate, TypeAndSubmit
from shop_env.metrics import (
    METRIC_PRESETS,
    MetricChoices,
    calibration,
    click_types,
    clustered_errors,
    exact_match,
    f1,
    likelihood,
    long_pages,
    people,
    step_metrics,
    stopping,
)
from shop_env.metrics import all_metrics as all_metrics_module
from shop_env.metrics.all_metrics import all_metrics
from shop_env.metrics.people import PeopleFigures
from shop_env.metrics.step_table import ACTION_TYPES
from tests.shop_env.metrics.test_intervals import planted_sides
from tests.shop_env.planted import answer

OF_STEPS = (exact_match, f1, click_types, likelihood, stopping, long_pages, all_metrics_module)
OTHERS = (people, calibration, clustered_errors)
PAGE = (Path(__file__).parents[3] / "docs" / "metrics.md").read_text(encoding="utf-8")


def tables(module: ModuleType) -> list[str]:
    """The tables at the head of a module."""
    return re.findall(r"^\|(?:.+\n)+", module.__doc__ or "", re.MULTILINE)


def rows(module: ModuleType) -> list[list[str]]:
    """The cells of these tables: names, formula, range, source."""
    lines = [line for table in tables(module) for line in table.splitlines()[2:]]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]


def names(cell: str) -> list[str]:
    """The metrics that a row is of."""
    found = re.findall(r"`(\w+(?:<type>)?)`", cell)
    return [name.replace("<type>", kind) for name in found for kind in (ACTION_TYPES if "<" in name else ("",))]


@pytest.mark.parametrize("module", [*OF_STEPS, *OTHERS])
def test_each_table_of_the_page_is_the_module_s_own(module):
    assert tables(module) and all(f"\n\n{table}\n" in PAGE for table in tables(module))
    assert f"`{module.__name__.replace('.', '/')}.py`" in PAGE


def test_every_metric_has_one_row_and_every_row_a_metric():
    listed = [name for module in OF_STEPS for row in rows(module) for name in names(row[0])]
    assert sorted(listed) == sorted(all_metrics(MetricChoices()))
    of_people = [name for row in rows(people) for name in names(row[0])]
    assert sorted(of_people) == sorted(PeopleFigures.__struct_fields__)


def test_every_row_has_a_formula_a_range_and_a_source():
    assert all(len(row) == 4 and all(row) for module in OF_STEPS for row in rows(module))


def test_every_count_is_on_the_page():
    counts = step_metrics([]).keys()
    assert all(f"`{name}`" in PAGE for name in counts)


def test_the_page_s_presets_are_the_code_s():
    for name, choices in METRIC_PRESETS.items():
        values = (choices.mean, choices.f1, choices.invalid, choices.text)
        assert f"| `{name}` | {' | '.join(map(str, values))} |" in PAGE
    assert PAGE.count("| miss | exact |") == len(METRIC_PRESETS)


@pytest.mark.parametrize("side", [0, 1])
def test_metrics_stay_in_their_ranges(side):
    figures = step_metrics(planted_sides()[side])
    for row in (row for module in OF_STEPS for row in rows(module)):
        if bounds := re.fullmatch(r"([\d.]+)–([\d.]+)", row[2]):
            for name in names(row[0]):
                assert float(bounds[1]) <= figures.get(name, 0.0) <= float(bounds[2]) + 0.05


def test_the_four_steps_worked_out_have_the_values_of_the_page():
    click_a, click_b, terminate = Click(name="a"), Click(name="b"), Terminate()
    logged: list[Action] = [click_a, click_b, TypeAndSubmit(name="q", text="shoe"), terminate]
    replies: list[Action] = [click_a, click_a, click_b, terminate]
    steps = tuple(Step(page="", action=action) for action in [click_a, *logged])  # the first is not scored
    session = Session(session_id="s", user_id="u", source="test", steps=steps)
    records = [
        msgspec.structs.replace(record, logged_probability=p, logged_rank=rank, terminate_probability=end)
        for record, p, rank, end in zip(
            answer([session], lambda _, index: replies[index - 1]),
            (0.5, 0.25, 0.1, 0.8),
            (1, 2, 4, 1),
            (0.1, 0.2, 0.3, 0.8),
            strict=True,
        )
    ]
    section = PAGE.split("## Four steps worked out")[1].split("\n## ")[0]
    shown = {name: float(sum_.split("=")[-1]) for name, sum_ in re.findall(r"`(\w+)` = ([^;`]+?)(?:;|\.\n)", section)}
    figures = step_metrics(records)
    assert len(shown) == 12
    assert {name: figures[name] for name in shown} == pytest.approx(shown, abs=0.0005)
