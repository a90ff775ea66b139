"""One figure of the curves of runs, whatever phases and metrics they have."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from benchmarks.report.curves import draw_curves, read_runs
from replay_sessions.foundation.errors import BadConfig


def run_of(folder: Path, phases: Mapping[str, Sequence[Mapping[str, float]]]) -> Path:
    folder.mkdir(parents=True)
    lines = [
        json.dumps({"phase": phase, "step": step, **metrics})
        for phase, rows in phases.items()
        for step, metrics in enumerate(rows, start=1)
    ]
    (folder / "metrics.jsonl").write_text("\n".join(lines) + "\n")
    return folder


SFT = [{"loss": 3.0}, {"loss": 2.0, "validation_exact": 0.5}]
GRPO = [{"loss": 0.1, "exact": 0.5, "kl": 0.0, "tokens": 9.0}, {"loss": 0.2, "exact": 0.6, "validation_exact": 0.7}]


def test_a_figure_has_a_row_for_each_phase_and_a_column_for_each_metric(tmp_path):
    runs = [run_of(tmp_path / "a", {"warm up/1": SFT, "rl": GRPO}), run_of(tmp_path / "b", {"rl": GRPO[:1]})]
    figure = draw_curves(read_runs(runs))
    axes = figure.get_axes()
    assert [axis.get_ylabel() for axis in axes[:3]] == ["loss", "exact match", "KL to the reference, nats"]
    assert [axis.get_title() for axis in axes] == ["warm up/1", "", "", "rl", "", ""]
    assert [axis.get_visible() for axis in axes] == [True, True, False, True, True, True]
    marks = [line for axis in axes for line in axis.get_lines() if line.get_marker() == "D"]
    assert [mark.get_xydata().tolist() for mark in marks] == [[[2.0, 0.5]], [[2.0, 0.7]]]
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == ["a", "b"]


def test_a_folder_without_a_step_is_refused_with_the_remedy(tmp_path):
    (tmp_path / "metrics.jsonl").write_text("")
    for folder in (tmp_path, tmp_path / "none"):
        with pytest.raises(BadConfig, match=rf"'{folder}'.* `shop-r1 train`"):
            read_runs([folder])
