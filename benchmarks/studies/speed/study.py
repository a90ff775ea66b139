"""What the measurements of this room share: the command line, child processes under observation, the results file.

    options ─► measure(options, a temporary folder) ─► results + provenance ─► --out, and the terminal

Processor time and memory of other processes are read from /proc, so these programs run on Linux alone.
"""

import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import msgspec

from replay_sessions.foundation.command_line import command
from replay_sessions.foundation.durable_files import replace_json
from replay_sessions.foundation.provenance import provenance
from replay_sessions.foundation.records import Record

POLL_S = 0.05


class Study(Record):
    """Options of every measurement.

    Attributes:
        folder: Where temporary files go, on the disk that is to be measured; None: the system's temporary folder.
        out: The results, as JSON.
    """

    folder: Path | None = None
    out: Path


StudyT = TypeVar("StudyT", bound=Study)


class ProcessUsage(NamedTuple):
    """Processor time of a process so far, its resident memory now, and the process session that it belongs to."""

    session: int
    processor_s: float
    resident_bytes: int


class Run(NamedTuple):
    """Wall and processor time of a command with all its processes, and the peak of their resident memory together."""

    seconds: float
    processor_s: float
    peak_bytes: int

    @property
    def peak_mib(self) -> int:
        return round(self.peak_bytes / 2**20)


def study(options: type[StudyT], measure: Callable[[StudyT, Path], dict[str, Any]]) -> Callable[..., int]:
    """The `main` of a measurement: 0 done, 1 stores that should be equal differ, 2 the call or its input was wrong."""

    def run(call: StudyT) -> int:
        with tempfile.TemporaryDirectory(dir=call.folder) as folder:
            results = measure(call, Path(folder))
        settings = {key: value for key, value in msgspec.structs.asdict(call).items() if not isinstance(value, Path)}
        settings.pop("folder", None)
        show_results(call.out, results | {"provenance": provenance(settings, seed=0)})
        return int(not results.get("stores_are_equal", True))

    run.__module__ = measure.__module__
    return command(options, run)


def show_results(out: Path, results: Mapping[str, Any]) -> None:
    """Writes results as JSON to a file and to the terminal."""
    out.parent.mkdir(parents=True, exist_ok=True)
    replace_json(out, results)
    sys.stdout.write(out.read_text())


def run_watched(arguments: Sequence[str], kill_after_s: float | None = None) -> Run:
    """Runs `python -m replay_sessions` and records the time and memory of all its processes."""
    command = [sys.executable, "-m", "replay_sessions", *arguments]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    started = time.monotonic()
    peak = 0
    with subprocess.Popen(command, start_new_session=True) as process:
        while process.poll() is None:
            # Pages that processes share are counted in each of them, so the peak is an upper bound.
            peak = max(peak, sum(usage.resident_bytes for usage in _get_usages() if usage.session == process.pid))
            if kill_after_s is not None and time.monotonic() - started > kill_after_s:
                process.send_signal(signal.SIGKILL)  # the main process alone: its workers must notice
                process.wait()
            time.sleep(POLL_S)
    seconds = time.monotonic() - started
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return Run(seconds, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, peak)


def get_usage(process_id: int | str) -> ProcessUsage:
    """Reads /proc/PID/stat.

    Raises:
        OSError: The process has ended, or this is not Linux.
    """
    # The second field is the program's name in parentheses, which may contain spaces: what follows it is numbers.
    fields = Path(f"/proc/{process_id}/stat").read_text().rpartition(")")[2].split()
    ticks = int(fields[11]) + int(fields[12])
    return ProcessUsage(int(fields[3]), ticks / os.sysconf("SC_CLK_TCK"), int(fields[21]) * os.sysconf("SC_PAGE_SIZE"))


def _get_usages() -> Iterator[ProcessUsage]:
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                yield get_usage(entry.name)
            except OSError:  # it ended in between
                continue
