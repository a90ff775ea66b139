"""Weights & Biases and trackio as they are, on this machine alone; skipped where their packages are not installed."""

from pathlib import Path
from typing import Any

import pytest

from train.run_log import RunLog, load_trackers

pytestmark = pytest.mark.filterwarnings("default")  # what these packages warn of is theirs


def logged(folder: Path, name: str, *, first: int, last: int) -> None:
    """Two phases, the second one as it goes on after `first - 1` steps."""
    with RunLog(folder, load_trackers([name])) as log:
        if first == 1:
            log.start_phase("sft", 2, 0)
            log.step("sft", 1, {"loss": 4.0})
        log.start_phase("grpo", 4, first - 1)
        for step in range(first, last + 1):
            log.step("grpo", step, {"loss": 1 / step, "exact": 0.25 * step})
        log.flush()


def test_trackio_holds_each_phase_and_goes_on_after_a_stop(tmp_path, monkeypatch):
    monkeypatch.setenv("TRACKIO_DIR", str(tmp_path / "kept"))
    trackio: Any = pytest.importorskip("trackio", reason="needs the extra trackio")
    folder = tmp_path / "run"
    logged(folder, "trackio", first=1, last=2)
    logged(folder, "trackio", first=3, last=4)
    runs = {run.name: run for run in trackio.Api().runs("shop-r1")}
    assert sorted(runs) == ["run/grpo", "run/sft"]
    rows = trackio.SQLiteStorage.get_logs("shop-r1", "run/grpo")
    assert [(row["step"], row["exact"]) for row in rows] == [(step, 0.25 * step) for step in (1, 2, 3, 4)]


def test_weights_and_biases_has_each_phase_offline(tmp_path, monkeypatch):
    pytest.importorskip("wandb", reason="needs the extra wandb")
    monkeypatch.setenv("WANDB_MODE", "offline")
    folder = tmp_path / "run"
    logged(folder, "wandb", first=1, last=2)
    kept = list((folder / "wandb").glob("offline-run-*"))
    assert len(kept) == 2
    assert all(list(run.glob("*.wandb")) for run in kept)
