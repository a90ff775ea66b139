"""Trainings of several seeds, each a process of its own: what benchmarks.seeds and benchmarks.paper share.

A process alone has a peak of memory that is its own and threads that nobody else has set. What stops the command
(Ctrl-C, SIGTERM) is handed on to the training once, and waited for: it saves where it is, and the same call goes on.
"""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import IO

from replay_sessions.demo_shop import SOURCE, generate_sessions
from replay_sessions.demo_shop.cached_store import DEMO_SESSIONS
from replay_sessions.errors import BadConfig
from replay_sessions.progress_bar import progress_bar
from replay_sessions.stop_signals import handling
from replay_sessions.store import StoreWriter

__all__ = ["demo_store_of_seed", "run_measured", "whole_numbers"]

STOPPED = 130  # the exit code of a command that was stopped and said so


def whole_numbers(given: Sequence[str]) -> list[int]:
    """Seeds, separated by spaces or commas."""
    try:
        numbers = [int(seed) for word in given for seed in word.split(",") if seed]
    except ValueError as error:
        raise BadConfig(f"--seeds {' '.join(given)}: whole numbers were expected, such as 101,102") from error
    if not numbers:
        raise BadConfig("--seeds names no seed; for example --seeds 101,102,103")
    return list(dict.fromkeys(numbers))


def demo_store_of_seed(path: Path, seed: int) -> Path:
    """A demo shop of this seed's own at `path`, made now where it is not there yet."""
    if not path.exists():
        options = {"sessions": str(DEMO_SESSIONS), "seed": str(seed), "page_size": "small"}
        with (
            StoreWriter(path, source=SOURCE, options=options) as writer,
            progress_bar(f"demo shop {seed}", DEMO_SESSIONS) as advance,
        ):
            for session in generate_sessions(DEMO_SESSIONS, seed):
                writer.write(session)
                advance(1)
    return path


def run_measured(command: Sequence[str], *, held: IO[bytes] | None = None, quiet: bool = False) -> tuple[int, int]:
    """The exit code of a command and its own peak memory in bytes.

    That is no less than this process's own memory, from which the other begins: little, beside a training.

    Args:
        held: A locked file: it stays locked for as long as the command lives, whatever becomes of this process.

        quiet: Its standard output is not shown; what goes wrong it says on the other one.

    Raises:
        KeyboardInterrupt: This process was told to end, and the command has ended.
        SystemExit: Likewise, and the command has said so.
    """
    with _handing_on_stops() as stops:
        # A group of its own: else a terminal's Ctrl-C would reach it twice, and the second one stops without saving.
        process = subprocess.Popen(
            command,
            process_group=0,
            pass_fds=() if held is None else (held.fileno(),),
            stdout=subprocess.DEVNULL if quiet else None,
        )
        stops.reach(process)
        _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)  # else Popen waits for it once more
    if stops.came and process.returncode == STOPPED:
        raise SystemExit(STOPPED)  # which it has told
    if stops.came:
        raise KeyboardInterrupt
    return process.returncode, usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024)


class _Stops:
    """Signals that end a command, for the one that is running and not for this process."""

    def __init__(self) -> None:
        self.came = False
        self._process: subprocess.Popen[bytes] | None = None

    def note(self, number: int, frame: FrameType | None) -> None:
        self.came = True
        if self._process is not None:
            self._process.send_signal(signal.SIGINT)

    def reach(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process
        if self.came:  # between its start and here
            process.send_signal(signal.SIGINT)


@contextmanager
def _handing_on_stops() -> Iterator[_Stops]:
    stops = _Stops()
    with handling(stops.note):
        yield stops
