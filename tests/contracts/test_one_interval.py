"""The same records have the same interval and the same verdict in every table, metrics and differences alike."""

import csv
import json
from pathlib import Path
from typing import Any

import pytest
from selectolax.lexbor import LexborHTMLParser

from benchmarks.leaderboard.__main__ import main as leaderboard
from benchmarks.leaderboard.compare import Compare, compare
from benchmarks.report.__main__ import main as report
from benchmarks.report.evidence import read_evidence
from benchmarks.report.step_tables import differences
from benchmarks.sweep.__main__ import main as sweep
from benchmarks.sweep.pooling import Measured
from replay_sessions.foundation.table import format_cell
from shop_env.evaluation.results import WITH_INTERVAL, results_table, summarise
from shop_env.evaluation.results_file import read_log, read_records
from shop_env.metrics import StepRecord, estimate_metric, paired_test
from tests.demo_stores import demo_store_at
from tests.json_files import read_json

AGENTS = ("copy_match", "majority")
METRICS = [name for name in WITH_INTERVAL if name != "exact_accuracy_errors_as_misses"]
ALWAYS = [name for name in METRICS if name != "type_f1_macro"]  # majority is never right of two types

Folders = dict[str, Path]


@pytest.fixture(scope="module")
def folders(tmp_path_factory) -> Folders:
    """A leaderboard of two agents on fifteen users, its report and tables, and a sweep of the same agents."""
    folder = tmp_path_factory.mktemp("intervals")
    demo_store_at(folder / "store", 60, seed=4)
    call = ["--agents", *AGENTS, "--store", str(folder / "store"), "--split", "all", "--out", str(folder / "board")]
    assert leaderboard(call) == 0
    assert report(f"{folder}/board --tables {folder}/tables".split()) == 0
    (folder / "sweep.toml").write_text(
        f"""
        title = "One seed"
        seeds = [0]
        store = {json.dumps(str(folder / "store"))}
        compare = [["copy_match", "majority"]]
        column = [{", ".join(f'{{metric = "{metric}", heading = "{metric}"}}' for metric in METRICS)}]
        [[run]]
        agents = ["copy_match", "majority"]
        flags = ["--split", "all"]
        """,
        encoding="utf-8",
    )
    assert sweep(f"{folder}/sweep.toml --out {folder}/sweep".split()) == 0
    return {name: folder / name for name in ("board", "tables", "sweep")}


def records_of(folders: Folders) -> dict[str, list[StepRecord]]:
    log = read_log(folders["board"])
    return {entry.label: read_records(folders["board"], log, entry) for entry in log.entries}


def sweep_view(folders: Folders) -> dict[str, Any]:
    (view,) = read_json(folders["sweep"] / "sweep.json")["views"]
    return dict(view)


@pytest.mark.parametrize("agent", AGENTS)
def test_a_metric_has_one_interval_and_one_notation_in_every_table(agent, folders):
    board, records = folders["board"], records_of(folders)[agent]
    rows = {label: summarise(each, label=label) for label, each in records_of(folders).items()}  # as in training
    row = rows[agent]
    of_log = next(entry.row for entry in read_log(board).entries if entry.label == agent)
    (of_sweep,) = [row["figures"] for row in sweep_view(folders)["rows"] if row["label"] == agent]
    with (folders["tables"] / "ranking.csv").open(newline="") as file:
        (line,) = [line for line in csv.DictReader(file) if line["agent"] == agent]
    report_page = LexborHTMLParser((board / "report.html").read_text(encoding="utf-8"))
    texts = {
        "leaderboard": (board / "leaderboard.md").read_text(encoding="utf-8"),
        "training": results_table(list(rows.values())).markdown(),
        "sweep": (folders["sweep"] / "sweep.md").read_text(encoding="utf-8"),
        "report": report_page.css_first("#table-ranking").text(),
    }
    for metric in ALWAYS:
        expected = estimate_metric(records, metric)
        ends = [expected.value, expected.low, expected.high]
        assert None not in ends
        assert row.figures[metric] == of_log.figures[metric] == expected
        pooled = Measured([{agent: records}], same_users=True, preset="shop_r1").figure(agent, metric)  # the papers'
        assert pooled is not None and [pooled.value, pooled.low, pooled.high] == ends
        assert [of_sweep[METRICS.index(metric)][name] for name in ("value", "low", "high")] == ends
        assert [float(line[name]) for name in (metric, f"{metric}_low", f"{metric}_high")] == ends
        text = format_cell(expected, "points" if metric == "mean_reward" else "percent")
        assert [name for name, written in texts.items() if text not in written] == [], metric


@pytest.mark.parametrize("metric", ["exact_accuracy", "type_f1_macro"])
def test_a_difference_has_one_interval_and_one_p_everywhere(metric, folders):
    records = records_of(folders)
    expected = paired_test(records["copy_match"], records["majority"], metric)
    assert expected is not None and expected.p_value is not None
    options = Compare(folder=folders["board"], first=AGENTS[0], second=AGENTS[1])
    (of_compare,) = [c.difference for c in compare(options) if c.difference.metric == metric]
    assert (of_compare.estimate, of_compare.p_value) == (expected.estimate, expected.p_value)
    (of_sweep,) = [one for one in sweep_view(folders)["compared"] if one["metric"] == metric]
    assert [of_sweep[name] for name in ("difference", "low", "high", "p_value")] == [
        *(expected.difference, expected.low, expected.high, expected.p_value)
    ]
    of_report = [c for c in differences(read_evidence(folders["board"])) if c.metric == metric]
    best = of_report[0].second
    sign = 1 if best == "majority" else -1
    assert sign * of_report[0].difference == pytest.approx(expected.difference)
    assert of_report[0].p_value == pytest.approx(expected.p_value)
