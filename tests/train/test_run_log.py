"""metrics.jsonl has each step once, whatever stops a run; a collapse is told, and TensorBoard follows."""

import os
import sys
from pathlib import Path

import pytest

from replay_sessions.foundation.errors import BadConfig, MissingExtra
from tests.processes import run_python
from tests.train.run_killed import STEPS, small_phase
from train.checkpoints import load_state
from train.collapse import COLLAPSE_STEPS
from train.metrics_file import MetricsFile, Row, read_metrics
from train.phase import run_phase
from train.run_log import RunLog, load_trackers

pytestmark = pytest.mark.long

ROWS = [Row("sft", step, {"loss": 1 / step}) for step in (1, 2, 3)]
BEFORE = [Row("small", step, {"loss": 1.0}) for step in range(1, 8)] + ROWS


def written(folder: Path, rows: list[Row]) -> Path:
    file = MetricsFile(folder / "metrics.jsonl")
    for row in rows:
        file.append(row)
    file.close()
    return folder / "metrics.jsonl"


@pytest.fixture(scope="module")
def killed(tmp_path_factory) -> dict[str, Path]:
    """Runs that were killed, by the place; the second one had these steps before."""
    folders = {place: tmp_path_factory.mktemp(place) for place in ("after-save", "in-forget")}
    written(folders["in-forget"], BEFORE)
    words = [word for place, folder in folders.items() for word in (place, str(folder))]
    done = run_python("-m", "tests.train.run_killed", *words)
    assert done.returncode == 0, done.stderr
    return folders


def steps_of(path: Path) -> list[int]:
    return [row.step for row in read_metrics(path)[0]]


@pytest.mark.parametrize(
    "left", [b'{"phase": "sft", "st', b"\0" * 40, b'{"phase": "sft", "step": 4, "loss": \xc3', b"17\n", b"{}\n"]
)
def test_a_line_cut_by_a_kill_is_dropped_and_the_next_row_stands_alone(left, tmp_path):
    path = written(tmp_path, ROWS)
    with path.open("ab") as stream:
        stream.write(left)
    with RunLog(tmp_path) as log:
        assert [row["step"] for row in log.rows("sft")] == [1, 2, 3]
        log.start_phase("sft", 10, 2)
        log.step("sft", 3, {"loss": 0.25})
    rows, unreadable = read_metrics(path)
    assert rows == [*ROWS[:2], Row("sft", 3, {"loss": 0.25})]
    assert unreadable == 0


def test_lines_that_were_dropped_are_told_of(tmp_path, capsys):
    with written(tmp_path, ROWS).open("ab") as stream:
        stream.write(b'{"phase"')
    with RunLog(tmp_path):
        pass
    assert "1 line that a stop had left unreadable" in capsys.readouterr().err


def test_steps_after_the_saved_one_are_forgotten_and_other_phases_kept(tmp_path):
    other = [Row("grpo", step, {}) for step in (1, 2)]
    path = written(tmp_path, [*ROWS, *other])
    with RunLog(tmp_path) as log:
        log.start_phase("sft", 10, 1)
    assert read_metrics(path)[0] == [ROWS[0], *other]


def test_a_state_says_of_no_step_that_it_is_done_which_the_log_does_not_have_and_each_step_is_there_once(
    killed,
):
    folder = killed["after-save"]
    saved = load_state(folder)
    assert steps_of(folder / "metrics.jsonl") == list(range(1, saved[1]["done"] + 1))
    with RunLog(folder) as log:
        run_phase(small_phase(), folder, log, save_every_s=1e9)
    assert steps_of(folder / "metrics.jsonl") == list(range(1, STEPS + 1))


def test_a_kill_while_steps_are_forgotten_loses_no_row(killed, tmp_path):
    before = written(tmp_path, BEFORE)
    assert (killed["in-forget"] / "metrics.jsonl").read_bytes() == before.read_bytes()


def test_the_log_is_on_the_disk_before_the_state_takes_its_place(tmp_path, monkeypatch):
    done: list[str] = []
    sync, replace = os.fsync, os.replace
    monkeypatch.setattr(os, "fsync", lambda file: (done.append(os.readlink(f"/proc/self/fd/{file}")), sync(file))[1])
    monkeypatch.setattr(os, "replace", lambda a, b: (done.append(str(b)), replace(a, b))[1])
    with RunLog(tmp_path) as log:
        run_phase(small_phase(), tmp_path, log, save_every_s=0.0)
    first_state = next(place for place, name in enumerate(done) if name.endswith("state.json"))
    assert any(name.endswith("metrics.jsonl") for name in done[:first_state])


def test_a_collapse_is_told_of_once(tmp_path, capsys):
    collapsed = {"sampled_click": 0.99, "logged_click": 0.6}
    with RunLog(tmp_path) as log:
        log.start_phase("grpo", 100, 0)
        for step in range(1, 3 * COLLAPSE_STEPS):
            log.step("grpo", step, collapsed)
    said = [line for line in capsys.readouterr().err.splitlines() if line.startswith("warning")]
    assert len(said) == 1
    assert said[0].startswith(f"warning: grpo, step {COLLAPSE_STEPS}: the policy has collapsed onto 'click'")


def test_tensorboard_has_each_phase_as_a_run_of_its_own(tmp_path):
    with RunLog(tmp_path, load_trackers(["tensorboard"])) as log:
        for phase in ("sft", "grpo"):
            log.start_phase(phase, 1, 0)
            log.step(phase, 1, {"loss": 0.5})
    assert sorted(path.name for path in (tmp_path / "tensorboard").iterdir()) == ["grpo", "sft"]


def test_an_unknown_tracker_suggests_the_nearest():
    with pytest.raises(BadConfig, match="Did you mean 'wandb'"):
        load_trackers(["wandbe"])


@pytest.mark.parametrize("name", ["wandb", "trackio"])
def test_a_tracker_without_its_package_names_the_extra(name, monkeypatch):
    monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(MissingExtra, match=rf"pip install 'shop-r1\[{name}\]'"):
        load_trackers([name])
