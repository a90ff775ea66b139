"""A run as a process of its own (runs.py starts them), with threads that no other code has set.

What stops the command (Ctrl-C, SIGTERM) is forwarded to each run once, and waited for: it saves where it is, and the
same call goes on.
"""

import signal
import subprocess
from collections.abc import Sequence
from contextlib import ExitStack
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
        KeyboardInterrupt: This process was stopped, and the command has ended.
        SystemExit: Likewise, and the command has reported it.
    """
    # A group of its own: else a terminal's Ctrl-C would reach it twice, and the second one stops without saving.
    process = subprocess.Popen(command, process_group=0, stdout=subprocess.DEVNULL)
    stops.processes.append(process)
    if stops.received:  # between its start and here
        process.send_signal(signal.SIGINT)
    code = process.wait()
    stops.processes.remove(process)
    if stops.received and code == STOPPED:
        raise SystemExit(STOPPED)  # which the command has reported
    if stops.received:
        raise KeyboardInterrupt
    return code
