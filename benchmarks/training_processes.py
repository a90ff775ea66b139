"""A training as a process of its own (training_runs.py starts them).

A process alone has a peak of memory that is its own and threads that no other code has set. What stops the command
(Ctrl-C, SIGTERM) is forwarded to each training once, and waited for: it saves where it is, and the same call goes on.
"""

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from contextlib import ExitStack, nullcontext
from types import FrameType
from typing import Self

from replay_sessions.foundation.command_line import STOPPED, handling


class StopForwarder(ExitStack):
    """Forwards the signals that end a command to the processes that it has started, while it is entered.

    Attributes:
        received: A signal came.
        ended: Nothing further is to be started.
    """

    def __init__(self) -> None:
        super().__init__()
        self.received = self.ended = False
        self._processes: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> Self:
        self.enter_context(handling(self._forward))
        return self

    def _forward(self, number: int, frame: FrameType | None) -> None:
        self.received = self.ended = True
        for process in self._processes:
            process.send_signal(signal.SIGINT)

    def remove(self, process: subprocess.Popen[bytes]) -> None:
        """The process has ended."""
        self._processes.remove(process)

    def add(self, process: subprocess.Popen[bytes]) -> None:
        """From now on the process is sent what comes."""
        self._processes.append(process)
        if self.received:  # between its start and here
            process.send_signal(signal.SIGINT)


def run_measured(
    command: Sequence[str],
    *,
    quiet: bool = False,
    stops: StopForwarder | None = None,
) -> tuple[int, int]:
    """The exit code of a command and its own peak memory in bytes.

    That is no less than this process's own memory, from which the other begins: little, beside a training.

    Args:
        quiet: Its standard output is not shown; its errors are.
        stops: What forwards signals to it; None: one of its own.

    Raises:
        KeyboardInterrupt: This process was stopped, and the command has ended.
        SystemExit: Likewise, and the command has reported it.
    """
    with StopForwarder() if stops is None else nullcontext(stops) as stops:
        # A group of its own: else a terminal's Ctrl-C would reach it twice, and the second one stops without saving.
        process = subprocess.Popen(
            command,
            process_group=0,
            stdout=subprocess.DEVNULL if quiet else None,
        )
        stops.add(process)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)  # else Popen waits for it once more
        stops.remove(process)
    if stops.received and process.returncode == STOPPED:
        raise SystemExit(STOPPED)  # which the command has reported
    if stops.received:
        raise KeyboardInterrupt
    return process.returncode, usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024)
