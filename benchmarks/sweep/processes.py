"""Runs a command in a separate process, so that its number of threads does not depend on this process (see runs.py).

Runs at the same time have GPUs of their own (`gpu_environments`).

A signal that stops this process (Ctrl-C, SIGTERM) is forwarded to each run once. The run saves its state and ends, and
the next call resumes it.
"""

import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import FrameType
from typing import Self

from replay_sessions.foundation.command_line import STOPPED, handling
from replay_sessions.foundation.errors import BadConfig

_GPUS = Path("/proc/driver/nvidia/gpus")


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


def launch_words(launch: str | None, gpus: int | None) -> list[str]:
    """Returns the words that start a Python module, before `-m`; torchrun is that of this Python.

    Args:
        launch: A launcher of several processes with its flags; None means torchrun for several GPUs, else Python.
        gpus: The number of GPUs of a run; None means all, in one process.

    >>> launch_words("torchrun --nproc-per-node 8", None)[1:]
    ['-m', 'torch.distributed.run', '--nproc-per-node', '8']
    """
    if launch is None and (gpus or 1) == 1:
        return [sys.executable]
    # Standalone: each launcher takes a free port.
    name, *flags = shlex.split(launch or f"torchrun --standalone --nproc-per-node {gpus}")
    return [*([sys.executable, "-m", "torch.distributed.run"] if name == "torchrun" else [name]), *flags]


def gpu_environments(gpus: Sequence[str], processes: int, per_run: int | None) -> list[dict[str, str]]:
    """Returns for each of `processes` runs at the same time the variables that name its GPUs; empty without GPUs.

    Args:
        gpus: The names of the GPUs.
        processes: The number of runs at the same time.
        per_run: The number of GPUs of a run; None divides them evenly, so that runs share GPUs if they are more.

    Raises:
        BadConfig: There are fewer GPUs.

    >>> gpu_environments(["0", "1", "2", "3"], 2, None)
    [{'CUDA_VISIBLE_DEVICES': '0,1'}, {'CUDA_VISIBLE_DEVICES': '2,3'}]
    """
    if per_run is not None and processes * per_run > len(gpus):
        raise BadConfig(
            f"--processes {processes} with --gpus-per-run {per_run} take {processes * per_run} GPUs; there are "
            f"{len(gpus)}. Give less of one."
        )
    if not gpus or (per_run is None and processes == 1):
        return [{} for _ in range(processes)]
    size = per_run or max(1, len(gpus) // processes)
    firsts = [number * size % len(gpus) for number in range(processes)]
    return [{"CUDA_VISIBLE_DEVICES": ",".join(gpus[first : first + size])} for first in firsts]


def list_gpus() -> list[str]:
    """Returns the names of this machine's NVIDIA GPUs that a process may use, as in CUDA_VISIBLE_DEVICES."""
    named = os.environ.get("CUDA_VISIBLE_DEVICES")
    if named is not None:
        return [name for name in named.split(",") if name]
    return [str(number) for number, _ in enumerate(_GPUS.iterdir())] if _GPUS.exists() else []


def run_process(command: Sequence[str], stops: StopForwarder, variables: Mapping[str, str] | None = None) -> int:
    """Runs a command without its standard output and returns its exit code.

    Args:
        variables: Environment variables besides those of this process.

    Raises:
        KeyboardInterrupt: A signal came, and the command has ended without a report of it.
        SystemExit: A signal came, and the command has reported it and ended.
    """
    # In a separate group, because a terminal's Ctrl-C would otherwise reach it twice; the second stops without saving.
    process = subprocess.Popen(
        command, process_group=0, stdout=subprocess.DEVNULL, env={**os.environ, **(variables or {})}
    )
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
