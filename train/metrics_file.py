"""metrics.jsonl: the figures of a run, one JSON object a line: {"phase", "step", and the figures of that step}.

    {"phase": "sft", "step": 1, "loss": 6.4, "lr": 0.0001, …}

A step is there once. What a kill or a power cut leaves at the end, half a line or NUL bytes, is dropped when the run
goes on; the file is only ever appended to or replaced whole.
"""

import json
import os
from pathlib import Path
from typing import Any

import msgspec

from replay_sessions.store.durable_files import replace_file

__all__ = ["METRICS_FILE", "MetricsFile", "Row", "read_metrics"]

METRICS_FILE = "metrics.jsonl"


class Row(msgspec.Struct, frozen=True):
    """What was logged of one step of a phase, counted from 1."""

    phase: str
    step: int
    figures: dict[str, float]


def read_metrics(path: Path) -> tuple[list[Row], int]:
    """The rows of a file, and how many lines were left out because they cannot be read."""
    lines = path.read_bytes().splitlines()
    rows = [row for row in map(_row, lines) if row is not None]
    return rows, len(lines) - len(rows)


class MetricsFile:
    """The open file of a run.

    Attributes:
        dropped: So many lines could not be read when it was opened; they are gone.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        rows, self.dropped = read_metrics(path) if path.exists() else ([], 0)
        if self.dropped:
            replace_file(path, "".join(map(_line, rows)))
        self._stream = path.open("a", encoding="utf-8")

    def append(self, row: Row) -> None:
        """Adds a row, which lasts from the next `sync` on."""
        self._stream.write(_line(row))

    def sync(self) -> None:
        """Waits until every row is on the disk."""
        self._stream.flush()
        os.fsync(self._stream.fileno())

    def rows(self, phase: str) -> list[Row]:
        """All rows of a phase, those of before a stop too."""
        self._stream.flush()
        return [row for row in read_metrics(self._path)[0] if row.phase == phase]

    def forget(self, phase: str, after: int) -> None:
        """Takes away the rows of a phase after step `after`."""
        self._stream.flush()
        rows, _ = read_metrics(self._path)
        kept = [row for row in rows if row.phase != phase or row.step <= after]
        if len(kept) == len(rows):
            return
        replace_file(self._path, "".join(map(_line, kept)))
        self._stream.close()
        self._stream = self._path.open("a", encoding="utf-8")

    def close(self) -> None:
        """Writes what is left and closes the file."""
        self.sync()
        self._stream.close()


def _row(line: bytes) -> Row | None:
    try:
        table: dict[str, Any] = json.loads(line.decode())
        return Row(table.pop("phase"), table.pop("step"), table)
    except (ValueError, KeyError, AttributeError, TypeError):  # no JSON, or JSON that is no row
        return None


def _line(row: Row) -> str:
    return json.dumps({"phase": row.phase, "step": row.step, **row.figures}) + "\n"
