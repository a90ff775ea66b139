"""Runs a command in a separate process, so that its number of threads does not depend on this process (see runs.py).

A signal that stops this process (Ctrl-C, SIGTERM) is forwarded to each run once. The run saves its state and ends, and
the next call resumes it.
"""

import signal
import subprocess
from collections.abc import Sequence
from contextlib import ExitStack
from types import FrameType
from typing import Self

from replay_sessions.foundation.command_line import STOPPED, handling


class StopForwarder(ExitStack):
    """A context manager that forwards the signals that end a command to the processes that it has started.

    Attributes:
        received: Whether a signal came.
        ended: Whether no further process may be started.
        processes: The processes that are running.
    """

    def __init__(self) -> None:
        super().__init__()
        self.received = self.ended = False
        self.processes: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> Self:
        self.enter_context(handling(self._forward))
        return self

    def _forward(self, number: int, frame: FrameType | None) -> None:
        self.received = self.ended = True
        for process in self.processes:
            process.send_signal(signal.SIGINT)


def run_process(command: Sequence[str], stops: StopForwarder) -> int:
    """Runs a command without its standard output and returns its exit code.

    Raises:
        KeyboardInterrupt: A signal came, and the command has ended without a report of it.
        SystemExit: A signal came, and the command has reported it and ended.
    """
    # In a separate group, because a terminal's Ctrl-C would otherwise reach it twice; the second stops without saving.
    process = subprocess.Popen(command, process_group=0, stdout=subprocess.DEVNULL)
    stops.processes.append(process)
    if stops.received:  # if the signal came before the process was in `stops.processes`
        process.send_signal(signal.SIGINT)
    code = process.wait()
    stops.processes.remove(process)
    if stops.received and code == STOPPED:
        raise SystemExit(STOPPED)  # without a message, because the command has printed it
    if stops.received:
        raise KeyboardInterrupt
    return code
