"""The training state on the disk: one file or several, whole after a kill at any moment, and not written too often."""

import os
import resource
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from replay_sessions.foundation.errors import CheckpointMismatch, WriteFailed
from train.checkpoints import load_state, save_state
from train.loop import LONGEST_PERIOD_S, SAVING_SHARE, SaveSchedule

SMALL = 3000  # bytes in a file: two of the tensors below


def tensors(fill: float) -> dict[str, Tensor]:
    return {f"model/{number}": torch.full((16, 16), fill + number) for number in range(7)}


def save(folder: Path, fill: float, **options: int) -> None:
    save_state(folder, tensors(fill).items(), {"done": fill}, **options)


def assert_holds(folder: Path, fill: float) -> None:
    saved = load_state(folder)
    assert saved is not None
    found, place = saved
    assert place == {"done": fill}
    assert set(found) == set(tensors(fill))
    assert all(torch.equal(found[name], tensor) for name, tensor in tensors(fill).items())


def files(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def test_a_state_over_the_limit_is_in_several_files_and_a_small_one_in_one(tmp_path):
    save(tmp_path, 1.0, file_bytes=SMALL)
    assert len(files(tmp_path)) == 5
    assert all(path.stat().st_size < SMALL + 1000 for path in tmp_path.iterdir())
    assert_holds(tmp_path, 1.0)
    save(tmp_path, 2.0)
    assert len(files(tmp_path)) == 2
    assert_holds(tmp_path, 2.0)


def test_states_in_several_files_replace_one_another(tmp_path):
    for fill in (1.0, 2.0, 3.0):
        save(tmp_path, fill, file_bytes=SMALL)
        assert_holds(tmp_path, fill)
        assert len(files(tmp_path)) == 5


def save_until_killed(folder: Path, calls: int) -> None:
    """A save that is killed (SIGKILL) before its next call that reaches the disk, after so many of them."""
    left = calls

    def counted(do: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any) -> Any:
            nonlocal left
            left -= 1
            if left < 0:
                os.kill(os.getpid(), signal.SIGKILL)
            return do(*arguments)

        return call

    os.fsync, os.replace, os.unlink = counted(os.fsync), counted(os.replace), counted(os.unlink)
    save(folder, 2.0, file_bytes=SMALL)


def test_a_kill_at_any_moment_of_a_save_leaves_the_old_state_whole_or_the_new(tmp_path):
    kept = []
    for calls in range(20):
        folder = tmp_path / str(calls)
        save(folder, 1.0, file_bytes=SMALL)
        pid = os.fork()
        if pid == 0:
            save_until_killed(folder, calls)
            os._exit(0)
        _, status = os.waitpid(pid, 0)
        saved = load_state(folder)
        kept.append(saved[1]["done"])
        assert_holds(folder, kept[-1])
        save(folder, 3.0, file_bytes=SMALL)  # and what the kill left in the way is none
        assert_holds(folder, 3.0)
        assert len(files(folder)) == 5
        if os.WIFEXITED(status):
            break
    assert os.WIFEXITED(status)
    assert kept == sorted(kept)
    assert {1.0, 2.0} == set(kept)


def test_a_refused_write_of_tensors_is_one_line(tmp_path):
    former = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (SMALL, former[1]))
    try:
        with pytest.raises(WriteFailed, match="File too large"):
            save_state(tmp_path, [("x", torch.zeros(SMALL))], {})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, former)


def test_a_state_that_lacks_a_file_is_told_as_damaged(tmp_path):
    save(tmp_path, 1.0, file_bytes=SMALL)
    min(tmp_path.glob("state-*")).unlink()
    with pytest.raises(CheckpointMismatch, match=r"state\.json' is damaged .*start the run again"):
        load_state(tmp_path)


class Seconds:
    """A clock that a test moves."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.mark.parametrize(
    ("takes_s", "next_after_s"), [(0.1, 60.0), (1.2, 60.0), (6.0, 6.0 / SAVING_SHARE), (3600.0, LONGEST_PERIOD_S)]
)
def test_saves_are_as_far_apart_as_makes_them_a_fiftieth_of_the_time_within_bounds(takes_s, next_after_s):
    seconds = Seconds()
    clock = SaveSchedule(60.0, now=seconds)
    with clock.saving():
        seconds.now += takes_s
    seconds.now += next_after_s - 0.01
    assert not clock.is_due()
    seconds.now += 0.02
    assert clock.is_due()


def test_with_0_every_step_is_saved_whatever_it_takes():
    seconds = Seconds()
    clock = SaveSchedule(0.0, now=seconds)
    with clock.saving():
        seconds.now += 100.0
    assert clock.is_due()
