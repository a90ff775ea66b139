"""The replies and probabilities of one agent, written line by line as they come: nothing paid for is run again.

    generate.py ─► ReplyCache.add ─► one line ─► (any reward, metrics, extraction) ─► StepRecord

    {"asked_with": {"target": "random", "store": "9f…", "seed": 0, …}}              the first line: the identity
    {"asked_by": {"commit": "1a…", "time": "…", …}}                                 one run of the command begins
    {"session_id": "s1", "step_index": 2, "seconds": 0.8, "reply": "{…}"}
    {"session_id": "s1", "step_index": 3, "seconds": 9.1, "error": "AgentFailed: …"}    the next run may try again
    {"session_id": "s1", "step_index": 2, "seconds": 2.4, "probabilities": [[{"type": "terminate"}, 0.2], …]}

Of two lines about the same thing the later counts, but no error replaces a reply. A line is written in one call as soon
as it is known; a last line that a kill cut off is dropped, and its step alone is run again.

Processes that share an agent's steps write a part each (FILE.part0, FILE.part1, …); `merge_parts` puts them together.
"""

import errno
import logging
import os
import time
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, Self

import msgspec

from replay_sessions.foundation.durable_files import replace_file, sync_folder, writing
from replay_sessions.foundation.errors import BadConfig, BadSession
from replay_sessions.schema import Action
from shop_env.evaluation.generate import Probabilities, ReplyOrError, format_error
from shop_env.evaluation.scored_steps import StepKey
from shop_env.metrics.likelihood import checked_distribution

logger = logging.getLogger(__name__)

Identity = dict[str, Any]  # everything that decides a reply: agent, code, store, context, seed


UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


class _Line(msgspec.Struct, kw_only=True, omit_defaults=True, forbid_unknown_fields=True, gc=False):
    # On disk the names of earlier versions stay: replies that were paid for remain readable.
    identity: Identity | None = msgspec.field(default=None, name="asked_with")
    run: dict[str, Any] | None = msgspec.field(default=None, name="asked_by")
    session_id: str | None = None
    step_index: int | None = None
    seconds: float = 0.0
    reply: str | None = None
    error: str | None = None
    probabilities: list[tuple[Action, float]] | None = None
    probabilities_error: str | None = None

    @property
    def failed(self) -> bool:
        return self.error is not None or self.probabilities_error is not None


class _Cached(NamedTuple):
    line: _Line
    run: int  # the number of the run of the command


_NOTHING = _Cached(_Line(), -1)


class ReplyCache:
    """The replies of one agent to one store, context and seed; closes its file as a context manager.

    Args:
        path: The file, which need not exist; None: memory alone.
        identity: What decides a reply, an attribute too (of a registered agent: agents.agent_code.reply_identity).
        synced: Wait for each line until it is on the disk: for replies that are acknowledged one by one.
        part: Write to this part of the file, which other processes read too.

    Attributes:
        failed: Steps that failed at least once.
        unreadable: How many lines of the file cannot be read; their steps have no reply.

    Raises:
        BadSession: The file cannot be read, or has another identity.
    """

    unreadable = 0

    def __init__(
        self, path: Path | None, identity: Identity | None = None, *, synced: bool = False, part: int | None = None
    ) -> None:
        self.path = path
        self._synced = synced
        self.identity = msgspec.to_builtins(identity or {})
        self._runs: list[dict[str, Any]] = []
        self._replies: dict[StepKey, _Cached] = {}
        self._probabilities: dict[StepKey, _Cached] = {}
        self.failed: set[StepKey] = set()
        self._complete_bytes = 0
        self._file: BinaryIO | None = None
        self._last = time.monotonic()
        if path is not None and path.is_file():
            self._read(path)
        if path is not None and part is not None:
            self.path, self._complete_bytes = path.with_name(f"{path.name}.part{part}"), 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            self._file.close()

    def reply(self, key: StepKey) -> str | None:
        """The reply to a step, if there is one."""
        return self._replies.get(key, _NOTHING).line.reply

    def error(self, key: StepKey) -> str | None:
        """Why a step that was run has no reply."""
        return self._replies.get(key, _NOTHING).line.error

    def probabilities(self, key: StepKey) -> dict[Action, float] | None:
        """The agent's probabilities at a step, if they were computed."""
        pairs = self._probabilities.get(key, _NOTHING).line.probabilities
        return None if pairs is None else dict(pairs)

    def probabilities_error(self, key: StepKey) -> str | None:
        """Why a step that was run has no probabilities."""
        return self._probabilities.get(key, _NOTHING).line.probabilities_error

    def runs(self, keys: Iterable[StepKey]) -> list[dict[str, Any]]:
        """Commit, packages, machine and time of the runs of the command that gave the replies to these steps."""
        return [self._runs[run] for run in sorted({cached.run for cached in self._cached(keys)} - {-1})]

    def seconds(self, keys: Iterable[StepKey]) -> float:
        """How long the agent took for these steps."""
        return sum(cached.line.seconds for cached in self._cached(keys))

    def _cached(self, keys: Iterable[StepKey]) -> Iterator[_Cached]:
        for key in keys:
            yield from (table[key] for table in (self._replies, self._probabilities) if key in table)

    def interrupted(self, batches: Iterable[Sequence[StepKey]], missing: Collection[StepKey]) -> set[StepKey]:
        """The steps of all batches that a stop cut in two.

        Run again as a whole, every batch is that of a run which was never stopped, and so are its replies, to the last
        rounding.
        """
        return {
            key
            for batch in batches
            if not (reached := self._replies.keys() & set(batch)).issuperset(batch)
            and reached
            and not set(batch).isdisjoint(missing)
            for key in batch
        }

    def begin_run(self, run: dict[str, Any]) -> None:
        """The lines that follow belong to a run of the command with this provenance."""
        if self.path is not None:
            self._open(self.path)
        self._append(_Line(run=run))
        self._last = time.monotonic()

    def add(self, key: StepKey, reply: ReplyOrError, *, seconds: float | None = None) -> None:
        """Adds a reply, or the exception in its place.

        Args:
            seconds: How long it took; None: since the line before.
        """
        line = self._new_line(key)
        if seconds is not None:
            line.seconds = round(seconds, 6)
        if isinstance(reply, Exception):
            line.error = format_error(reply)
        else:
            # Half a surrogate pair is no text that a file can hold; its escape reads as the same malformed reply.
            line.reply = reply.encode("utf-8", "backslashreplace").decode()
        self._append(line)

    def add_probabilities(self, key: StepKey, probabilities: Probabilities | Exception) -> None:
        """Adds an agent's probabilities, or the exception in their place."""
        line = self._new_line(key)
        if isinstance(probabilities, Exception):
            line.probabilities_error = format_error(probabilities)
        elif not all(isinstance(action, Action) for action in probabilities):
            line.probabilities_error = f"the probabilities are of {list(probabilities)[:3]}…: they must be of actions"
        elif problem := _distribution_problem(probabilities):  # a line with NaN could not be read again
            line.probabilities_error = problem
        else:
            line.probabilities = [(action, float(probability)) for action, probability in probabilities.items()]
        self._append(line)

    def _new_line(self, key: StepKey) -> _Line:
        before, self._last = self._last, time.monotonic()
        return _Line(session_id=key[0], step_index=key[1], seconds=round(self._last - before, 6))

    def _read(self, path: Path) -> None:
        content, lines, self.unreadable = _complete_lines(path)
        self._complete_bytes = len(content)
        if lines and lines[0].identity != self.identity:
            raise BadSession(f"the replies in '{path}' belong to {lines[0].identity}: move the file away")
        for line in lines[1:]:
            self._index(line)

    def _index(self, line: _Line) -> None:
        if line.run is not None:
            self._runs.append(line.run)
        elif line.session_id is not None and line.step_index is not None:
            has_probabilities = line.probabilities is not None or line.probabilities_error is not None
            table = self._probabilities if has_probabilities else self._replies
            key = (line.session_id, line.step_index)
            if line.failed:
                self.failed.add(key)
            if not line.failed or key not in table or table[key].line.failed:
                table[key] = _Cached(line, len(self._runs) - 1)

    def _open(self, path: Path) -> None:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = path.open("ab", buffering=0)
            self._file.truncate(self._complete_bytes)
            if self._synced:
                sync_folder(path.parent)
        except OSError as error:
            raise _not_writable(path, error) from error
        if self._complete_bytes == 0:
            self._append(_Line(identity=self.identity))

    def _append(self, line: _Line) -> None:
        if self.path is not None:
            assert self._file is not None, "begin_run comes first"
            text = msgspec.json.encode(line) + b"\n"
            try:
                written = self._file.write(text)  # one call, straight to the system: a kill leaves complete lines
                if written != len(text):
                    raise OSError(errno.ENOSPC, "no room for the next line")
                if self._synced:
                    os.fsync(self._file.fileno())
            except OSError as error:
                with suppress(OSError):  # else the next line would stand behind a part of this one
                    self._file.truncate(self._complete_bytes)
                raise _not_writable(self.path, error) from error
            self._complete_bytes += len(text)
        self._index(line)


def _distribution_problem(probabilities: Probabilities) -> str:
    try:
        checked_distribution(probabilities)
    except Exception as error:
        return format_error(error)
    return ""


def merge_replies(source: Path, path: Path, *, note: bool = False) -> bool:
    """Adds to the replies in `path` those that another file holds for the same identity; its own replies win.

    With `note`, the provenance of the other's runs says that they were merged.

    Returns:
        Whether there was anything new.

    Raises:
        BadSession: One of them cannot be read, or their identities differ.
    """
    theirs, decoded, _ = _complete_lines(source, strict=True)
    if note:
        for line in decoded:
            line.run = line.run and line.run | {"merged": True}
        theirs = msgspec.json.Encoder().encode_lines(decoded)
    ours, own_decoded, _ = _complete_lines(path) if path.exists() else (b"", [], 0)
    if not decoded or set(theirs.splitlines()[1:]) <= set(ours.splitlines()[1:]):
        return False
    if own_decoded and own_decoded[0].identity != decoded[0].identity:
        raise BadSession(f"the replies in '{source}' have another identity than those in '{path}': keep them apart")
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
    # Of two lines about the same thing the later counts.
    replace_file(path, theirs + b"".join(ours.splitlines(keepends=True)[1:]))
    return True


def merge_parts(path: Path) -> None:
    """Adds what the processes of a run wrote to the file that they share."""
    for part in sorted(path.parent.glob(f"{path.name}.part*")):
        merge_replies(part, path)
        part.unlink()


def _complete_lines(path: Path, *, strict: bool = False) -> tuple[bytes, list[_Line], int]:
    """Without a last line that a kill cut off, and, unless strict, without lines that cannot be read: so many."""
    content = path.read_bytes()
    complete = content[: content.rfind(b"\n") + 1]
    decoder = msgspec.json.Decoder(_Line)
    try:
        return complete, decoder.decode_lines(complete), 0
    except UNREADABLE as error:
        lines, bad = [], 0
        for line in complete.splitlines():
            try:
                lines.append(decoder.decode(line))
            except UNREADABLE:
                bad += 1
        if strict or not lines or lines[0].identity is None:
            raise BadSession(f"the replies in '{path}' cannot be read ({error}): move the file away") from error
        logger.warning("%d lines of '%s' cannot be read (%s): their steps count as not run", bad, path, error)
        return complete, lines, bad


def _not_writable(path: Path, error: OSError) -> BadConfig:
    return BadConfig(f"replies cannot be written to '{path}': {error.strerror}")
