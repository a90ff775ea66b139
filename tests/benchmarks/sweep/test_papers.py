"""The papers' tables as data: the figures are those that were printed, and what they name exists."""

from collections import Counter
from pathlib import Path
from typing import get_args

import msgspec
import pytest

from agents.llm_grpo.presets import load_preset, rows_names
from agents.registry import parse_spec
from benchmarks.docs_site.tables import RESULTS
from benchmarks.sweep.__main__ import main
from benchmarks.sweep.file import PAPERS, Sweep, load_sweep
from benchmarks.sweep.orders import Order, Verdict
from benchmarks.sweep.pooling import Measured
from benchmarks.sweep.runs import SweepOptions, without_untaught_rows
from benchmarks.sweep.type_shares import TYPE_SHARES
from replay_sessions.foundation.config_errors import toml_names
from replay_sessions.foundation.errors import BadConfig
from replay_sessions.schema import Click, Session, Step
from shop_env.metrics import record_step
from shop_env.metrics.all_metrics import find_metric
from shop_env.metrics.presets import metric_preset
from shop_env.reward import RewardConfig
from tests.json_files import read_json

STUDIES = Path(str(PAPERS)).with_name("studies")
DOCS = RESULTS.parents[1] / "docs"
# Typed a second time, line by line as the papers print them, percent.
PRINTED = {
    ("shop_r1_table2", "3B"): """
        zero-shot          0.32 15.33 16.15
        RL (binary)        1.01 6.17 9.92
        SFT                16.76 22.25 24.52
        SFT + RL (binary)  16.55 23.74 28.07
        Shop-R1            27.72 36.40 31.28""",
    ("shop_r1_table2", "1.5B"): """
        zero-shot          0.53 3.94 6.16
        SFT                10.86 23.58 29.02
        Shop-R1            24.11 34.54 29.19""",
    ("shop_r1_table2", "0.5B"): """
        zero-shot          6.76 12.88 15.55
        SFT                9.90 17.72 21.61
        Shop-R1            27.72 31.83 21.20""",
    ("shop_r1_table3", "3B"): """
        zero-shot          0.58 0.15 0.00 38.7 1.62 0.00
        SFT                4.93 3.84 49.80 8.55 15.36 49.80
        SFT + RL (binary)  8.12 3.25 45.51 17.25 13.88 45.51
        Shop-R1            7.39 7.53 81.84 10.29 28.66 81.84""",
    ("shop_r1_table3", "1.5B"): """
        zero-shot          1.01 0.15 0.39 10.00 0.44 0.39
        SFT                4.49 7.83 23.44 15.07 32.35 23.44
        Shop-R1            3.62 8.12 72.85 6.52 34.12 72.85""",
    ("shop_r1_table3", "0.5B"): """
        zero-shot          0.43 0.15 24.02 12.90 4.43 24.02
        SFT                3.19 7.68 21.88 5.94 26.59 21.88
        Shop-R1            0.72 3.99 97.07 1.01 17.87 97.07""",
    ("shop_r1_table4", "3B"): """
        w/o SFT                4.63 36.56 21.92
        w/o format reward      2.87 3.19 5.04
        w/o rationale reward   26.93 37.25 33.74
        w/o reward scale       27.83 27.20 11.70
        binary action reward   27.41 27.46 12.11
        Shop-R1                27.72 36.40 31.28""",
    ("shop_r1_table5", "3B"): """
        whole session  27.72 36.40 31.28
        latest step    14.74 30.46 33.48""",
    ("shop_r1_figure2", "3B"): """
        T 0.6  27.72 36.40 31.28
        T 0.7  28.63 36.30 30.25
        T 0.8  28.42 35.82 29.25
        T 0.9  28.15 35.92 29.51
        T 1.0  28.42 35.71 29.05
        T 1.1  28.58 35.82 28.83
        T 1.2  28.05 35.34 28.36""",
    ("shop_r1_opera", "OPeRA"): """
        zero-shot  6.41 34.45 38.79
        SFT        20.23 60.86 53.95
        Shop-R1    38.44 57.27 57.69""",
    ("customer_r1_table4", "7B"): """
        zero-shot  7.32 33.43 25.72 41.11
        RL         24.72 31.17 39.58 40.51
        SFT        35.14 72.66 56.43 66.29
        SFT + RL   39.58 78.50 61.20 79.45""",
    ("customer_r1_table5", "7B"): """
        zero-shot                 7.32 33.43 25.72 41.11
        zero-shot, w/o persona    10.20 33.10 26.05 35.88
        zero-shot, w/o rationale  4.10 25.33 16.91 38.78
        RL                        24.72 31.17 39.58 40.51
        RL, w/o persona           26.27 31.20 41.13 32.46
        RL, w/o rationale         12.64 31.20 20.84 44.25
        SFT                       35.14 75.28 56.43 75.85
        SFT, w/o persona          35.37 64.22 57.43 60.95
        SFT, w/o rationale        32.04 67.93 52.22 71.38
        SFT + RL                  39.58 78.50 61.20 79.45
        SFT + RL, w/o persona     37.80 66.67 59.42 59.73
        SFT + RL, w/o rationale   34.15 73.15 53.99 67.37""",
    ("customer_r1_table6", "7B and 3B"): """
        RL                   24.72 31.17 39.58 40.51
        RL, shorter context  18.85 31.14 28.60 41.41
        RL, smaller model    18.07 31.30 38.91 3.97""",
    ("customer_r1_table8", "7B"): """
        own persona        39.58 78.50 61.20 79.45
        another's persona  28.94 38.88 40.35 48.41""",
}
# Customer-R1, table 7: how often each type is logged, predicted and right, of 902 actions.
COUNTED = {"click": (786, 831, 739), "terminate": (40, 0, 0), "input": (76, 4, 1), "other": (0, 67, None)}


def columns_of(printed: str) -> dict[str, list[float]]:
    """Rows by label: figures stand two or more blanks behind it."""
    rows = (line.strip().rsplit("  ", 1) for line in printed.strip().splitlines())
    return {label.strip(): [float(figure) for figure in figures.split()] for label, figures in rows}


@pytest.fixture(params=toml_names(PAPERS))
def table(request) -> Sweep:
    return load_sweep(request.param)


@pytest.mark.parametrize(("name", "model"), PRINTED)
def test_the_published_figures_are_those_that_the_papers_print(name, model):
    rows = load_sweep(name).row
    kept = {row.label: row.published[model] for row in rows if model in row.published}
    printed = columns_of(PRINTED[name, model])
    assert kept.keys() == printed.keys()
    for label, figures in printed.items():
        assert kept[label] == pytest.approx(figures, nan_ok=True, abs=0), label


def test_every_model_of_every_table_was_typed_twice():
    models = {(name, model) for name in toml_names(PAPERS) for model in load_sweep(name).models}
    assert models == {*PRINTED, ("customer_r1_table7", "7B")}


def test_the_counts_of_customer_r1_s_table_7_are_its_percentages():
    rows = {
        row.label: [row.share("7B", index) for index in range(4)]
        for row in load_sweep("customer_r1_table7").row
        if row.published
    }
    assert rows.keys() == COUNTED.keys()
    assert sum(logged for logged, _, _ in COUNTED.values()) == sum(predicted for _, predicted, _ in COUNTED.values())
    for kind, (logged, predicted, right) in COUNTED.items():
        expected = [logged / 902, predicted / 902, (predicted - logged) / 902]
        assert rows[kind][:3] == pytest.approx(expected, abs=0.0001), kind
        assert rows[kind][3] == (None if right is None else pytest.approx(right / logged, abs=0.0005)), kind


def test_published_percentages_are_read_as_shares():
    row = next(row for row in load_sweep("shop_r1_figure2").row if row.label == "T 0.7")
    assert [row.share("3B", index) for index in range(3)] == pytest.approx([0.2863, 0.3630, 0.3025])


def test_every_row_is_a_phase_that_exists(table):
    for run in table.run:
        phases = {row.phase for row in table.rows_of(run)}
        assert phases <= load_preset("tiny_cpu", run.rows_file, phases).phases.keys()


def test_every_metric_exists(table):
    choices = metric_preset(table.metrics)
    for row in table.row:
        for name in row.metrics(table.column):
            assert TYPE_SHARES.get(name) or find_metric(name, choices)


def test_rows_at_a_temperature_have_phases_that_are_tested_there(table):
    phases = load_preset("tiny_cpu", table.run[0].rows_file).phases
    for row in table.row:
        if row.temperature is not None:
            assert row.temperature in phases[row.phase].temperatures


def test_phases_of_one_name_are_one_in_all_tables_of_a_paper():
    """Else the second table's call would be refused."""
    found: dict[tuple[str, str], object] = {}
    for name in toml_names(PAPERS):
        for run in load_sweep(name).run:
            for phase, config in load_preset("tiny_cpu", run.rows_file).phases.items():
                trained_so = (config.method, config.start, config.reward, config.context, config.seed)
                assert found.setdefault((run.name, phase), trained_so) == trained_so, (name, phase)


def test_the_docs_count_the_pairs_of_taught_rows_in_the_records():
    verdicts: dict[object, Verdict | None] = {}  # by phases and temperatures, because tables share pairs
    for name in toml_names(PAPERS):
        if name == "shop_r1_opera":  # has no record, because OPeRA cannot be fetched here
            continue
        sweep, record = load_sweep(name), read_json(RESULTS / f"paper/{name}.json")
        config = load_preset("tiny_cpu", sweep.run[0].rows_file)
        rows = {row.label: (row.run, row.phase, row.temperature) for row in sweep.row}
        for order in msgspec.convert(record["views"][0]["orders"], list[Order]):
            pair = [rows[label] for label in (order.first, order.second) if label]
            if order.metric == "exact_accuracy" and not any(config.is_untaught(phase) for _, phase, _ in pair):
                verdicts[str(pair)] = order.verdict(record["models"][0])
    counts = Counter(verdicts.values())
    same, opposite, unclear = (counts[verdict] for verdict in get_args(Verdict))
    text = " ".join((DOCS / "paper_tables.md").read_text(encoding="utf-8").split())
    assert f"Of {len(verdicts)} pairs of rows" in text
    assert (
        f"the papers' order in {same} and the opposite in {opposite}. No difference is significant in {unclear}" in text
    )
    summary = " ".join((DOCS / "results.md").read_text(encoding="utf-8").split())
    assert (
        f"{same} of {len(verdicts)} pairs of rows have the papers' order of exact match and {opposite} the" in summary
    )


def test_a_table_that_does_not_exist_is_told_with_the_near_one():
    with pytest.raises(BadConfig, match="Did you mean 'customer_r1_table"):
        load_sweep("customer_r1_table9")


def test_agreement_with_logged_kinds_of_click_is_noted():
    names = {"search_button": "search", "reviews.next": "review", "nav_bar.cart": "filter"}
    steps = [Step(page="", action=Click(name=name, click_type=kind)) for name, kind in names.items()]
    own, without = (
        Session(session_id="s", user_id="u", steps=tuple(each), source="test")
        for each in (steps, [Step(page="", action=Click(name=name)) for name in names])
    )
    notes = []
    for session in (own, without):
        records = [record_step(session, index, "", RewardConfig()) for index in range(3)]
        notes.append(Measured([{"RL": records}], same_users=True, preset="customer_r1").tested().click_kinds)
    assert notes[0] is not None and "66.7% of its 3 clicks" in notes[0]
    assert notes[1] is None


def test_rows_of_random_weights_that_no_sft_taught_are_left_out(tmp_path):
    table, options = load_sweep("shop_r1_table2"), SweepOptions(sweep="", out=tmp_path)
    remaining = without_untaught_rows(table, options)
    assert [row.label for row in table.row if row not in remaining.row] == ["zero-shot", "RL (binary)"]
    assert "zero-shot, RL (binary): random weights" in remaining.notes[-1]
    pretrained = msgspec.structs.replace(options, flags=("--model.path", "models/any"))
    assert without_untaught_rows(table, pretrained) == table
    only = msgspec.structs.replace(table, row=table.row[:2], compare=())
    with pytest.raises(BadConfig, match="every row would be 0"):
        without_untaught_rows(only, options)
    with pytest.raises(BadConfig, match=r"row 'zero-shot': .* 'shop_r1' has no phase 'zero_shot'"):
        without_untaught_rows(table, msgspec.structs.replace(options, flags=("--only", "sft", "shop_r1")))


def test_phases_of_the_tables_are_untaught_without_sft_alone():
    tables = [load_preset("tiny_cpu", name) for name in rows_names()]
    untaught = {name for config in tables for name in config.phases if config.is_untaught(name)}
    assert untaught == {
        *("zero_shot", "zero_shot_no_persona", "zero_shot_no_rationale", "rl_binary", "no_sft"),
        *("rl", "rl_no_persona", "rl_no_rationale"),
    }


@pytest.mark.parametrize(("file", "phase"), [("untaught", "no_sft"), ("past_rationales", "shop_r1")])
def test_a_study_of_rows_can_be_planned(file, phase, tmp_path, capsys):
    assert main([str(STUDIES / f"{file}.toml"), "--out", str(tmp_path), "--dry-run"]) == 0
    assert f"  {phase:<26} missing" in capsys.readouterr().out


@pytest.mark.parametrize("file", ["real_shoppers", "language_model"])
def test_a_study_compares_rows_that_its_run_makes(file):
    sweep = load_sweep(str(STUDIES / f"{file}.toml"))
    (run,) = sweep.run
    config = load_preset(run.preset, run.rows_file and str(STUDIES / Path(run.rows_file).name))
    decodings = config.evaluation.get_decodings()
    labels = {decoding.label(phase.label) for phase in config.phases.values() for decoding in decodings}
    labels |= {parse_spec(agent).label for agent in config.evaluation.agents}
    assert {label for pair in sweep.compare for label in pair} <= labels
    assert config.evaluation.seed is not None  # all seeds are tested on the same sessions
