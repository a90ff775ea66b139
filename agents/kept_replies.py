"""What one agent answered, kept line by line as it comes: a file that only grows, so nothing paid for is asked again.

    agents.asking ─► KeptReplies.keep ─► one line ─► (any reward, metrics, extraction, subset of sessions) ─► StepRecord

    {"asked_with": {"target": "random", "store": "9f…", "seed": 0, …}}              the first line
    {"asked_by": {"commit": "1a…", "time": "…", …}}                                 one run of the command begins
    {"session_id": "s1", "step_index": 2, "seconds": 0.8, "reply": "{…}"}
    {"session_id": "s1", "step_index": 3, "seconds": 9.1, "error": "AgentFailed: …"}    asked again by the next run
    {"session_id": "s1", "step_index": 2, "seconds": 2.4, "probabilities": [[{"type": "terminate"}, 0.2], …]}

Of two lines about the same thing the later counts, but no error takes the place of a reply. A line is
written in one call as soon as it is known; a last line that a kill cut off is dropped, and its step alone asked again.
(A machine that loses power may lose the last seconds, unless each line is `synced` to the disk.)
"""

import errno
import os
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, Self

import msgspec

from agents.asking import Answer, error_in_words
from agents.scored_steps import StepKey
from replay_sessions.errors import BadConfig, BadSession
from replay_sessions.schema import Action
from replay_sessions.store.durable_files import replace_file, sync_folder, writing

__all__ = ["KeptReplies", "Probabilities", "take_replies"]

Probabilities = dict[Action, float]


class _Line(msgspec.Struct, kw_only=True, omit_defaults=True, forbid_unknown_fields=True, gc=False):
    asked_with: dict[str, Any] | None = None
    asked_by: dict[str, Any] | None = None
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


class _Kept(NamedTuple):
    line: _Line
    run: int  # the number of the run of the command that asked


class KeptReplies:
    """The kept answers of one agent, asked with one store, context and seed; closes its file as a context manager.

    Args:
        path: The file; it need not be there.
        asked_with: What decides a reply (of a leaderboard: config.asked_with).
        synced: Wait for each line until it is on the disk: for replies that are acknowledged one by one.

    Raises:
        BadSession: The file cannot be read, or was asked with something else.
    """

    def __init__(self, path: Path, asked_with: dict[str, Any], *, synced: bool = False) -> None:
        self.path = path
        self._synced = synced
        self._asked_with = msgspec.to_builtins(asked_with)
        self._runs: list[dict[str, Any]] = []
        self._answers: dict[StepKey, _Kept] = {}
        self._probabilities: dict[StepKey, _Kept] = {}
        self._whole_bytes = 0
        self._file: BinaryIO | None = None
        self._last = time.monotonic()
        if path.exists():
            self._read()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            self._file.close()

    def reply(self, key: StepKey) -> str | None:
        """The reply to a step, if there is one."""
        kept = self._answers.get(key)
        return kept.line.reply if kept else None

    def error(self, key: StepKey) -> str | None:
        """Why a step that was asked about has no reply."""
        kept = self._answers.get(key)
        return kept.line.error if kept else None

    def probabilities(self, key: StepKey) -> Probabilities | None:
        """The agent's probabilities at a step, if it was asked for them and gave them."""
        kept = self._probabilities.get(key)
        return dict(kept.line.probabilities) if kept and kept.line.probabilities is not None else None

    def probabilities_error(self, key: StepKey) -> str | None:
        """Why a step that was asked about has no probabilities."""
        kept = self._probabilities.get(key)
        return kept.line.probabilities_error if kept else None

    def asked_by(self, keys: Iterable[StepKey]) -> list[dict[str, Any]]:
        """The runs of the command in which the answers to these steps were given."""
        return [self._runs[run] for run in sorted({kept.run for kept in self._kept(keys)})]

    def seconds(self, keys: Iterable[StepKey]) -> float:
        """How long the agent took for these steps."""
        return sum(kept.line.seconds for kept in self._kept(keys))

    def _kept(self, keys: Iterable[StepKey]) -> Iterator[_Kept]:
        for key in keys:
            yield from (kept for answers in (self._answers, self._probabilities) if (kept := answers.get(key)))

    def begin_run(self, asked_by: dict[str, Any]) -> None:
        """What follows is asked by a run of the command with this provenance."""
        self._open()
        self._append(_Line(asked_by=asked_by))
        self._last = time.monotonic()

    def keep(self, key: StepKey, answer: Answer, *, seconds: float | None = None) -> None:
        """Keeps a reply, or what was raised in its place.

        Args:
            seconds: How long it took; None: since the line before.
        """
        line = self._line_for(key)
        if seconds is not None:
            line.seconds = round(seconds, 6)
        if isinstance(answer, Exception):
            line.error = error_in_words(answer)
        else:
            # Half a surrogate pair is no text that a file can hold; its escape reads as the same malformed reply.
            line.reply = answer.encode("utf-8", "backslashreplace").decode()
        self._append(line)

    def keep_probabilities(self, key: StepKey, found: Mapping[Action, float] | Exception) -> None:
        """Keeps an agent's probabilities, or what was raised in their place."""
        line = self._line_for(key)
        if isinstance(found, Exception):
            line.probabilities_error = error_in_words(found)
        elif not all(isinstance(action, Action) for action in found):
            line.probabilities_error = f"the probabilities are of {list(found)[:3]}…: they must be of actions"
        else:
            line.probabilities = [(action, float(probability)) for action, probability in found.items()]
        self._append(line)

    def _line_for(self, key: StepKey) -> _Line:
        now, before = time.monotonic(), self._last
        self._last = now
        return _Line(session_id=key[0], step_index=key[1], seconds=round(now - before, 6))

    def _read(self) -> None:
        content = self.path.read_bytes()
        self._whole_bytes = content.rfind(b"\n") + 1  # a line that a kill cut off has no end
        lines = _decoded(content[: self._whole_bytes], self.path)
        if lines and lines[0].asked_with != self._asked_with:
            raise BadSession(f"kept replies '{self.path}' were asked with {lines[0].asked_with}: move the file away")
        for line in lines[1:]:
            self._take(line)

    def _take(self, line: _Line) -> None:
        if line.asked_by is not None:
            self._runs.append(line.asked_by)
        elif line.session_id is not None and line.step_index is not None:
            of_reply = line.probabilities is None and line.probabilities_error is None
            answers = self._answers if of_reply else self._probabilities
            key = (line.session_id, line.step_index)
            if not line.failed or key not in answers or answers[key].line.failed:
                answers[key] = _Kept(line, len(self._runs) - 1)

    def _open(self) -> None:
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._file = self.path.open("ab", buffering=0)
            self._file.truncate(self._whole_bytes)
            if self._synced:
                sync_folder(self.path.parent)
        except OSError as error:
            raise BadConfig(f"replies cannot be kept in '{self.path}': {error.strerror}") from error
        if self._whole_bytes == 0:
            self._append(_Line(asked_with=self._asked_with))

    def _append(self, line: _Line) -> None:
        assert self._file is not None, "begin_run comes first"
        text = msgspec.json.encode(line) + b"\n"
        try:
            written = self._file.write(text)  # one call, straight to the system: a kill leaves whole lines behind
            if written != len(text):
                raise OSError(errno.ENOSPC, "no room for the next line")
            if self._synced:
                os.fsync(self._file.fileno())
        except OSError as error:
            with suppress(OSError):  # else the next line would stand behind a part of this one
                self._file.truncate(self._whole_bytes)
            raise BadConfig(f"replies cannot be kept in '{self.path}': {error.strerror}") from error
        self._whole_bytes += len(text)
        self._take(line)


def take_replies(source: Path, path: Path) -> bool:
    """Adds to the answers kept in `path` those that another file keeps of the same questions; its own count more.

    Returns:
        Whether there was anything new.

    Raises:
        BadSession: One of them cannot be read, or they were asked with something else.
    """
    theirs, asked_with = _whole_lines(source)
    ours, ours_asked_with = _whole_lines(path) if path.exists() else ([], asked_with)
    if ours and ours_asked_with != asked_with:
        raise BadSession(f"kept replies '{source}' were asked with something else than '{path}': keep them apart")
    if set(theirs[1:]) <= set(ours[1:]):
        return False
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
    replace_file(path, b"".join([*theirs, *ours[1:]]))  # of two lines about the same thing the later counts
    return True


def _whole_lines(path: Path) -> tuple[list[bytes], dict[str, Any] | None]:
    """Without a last one that a kill cut off; and what they were asked with."""
    content = path.read_bytes()
    whole = content[: content.rfind(b"\n") + 1]
    lines = _decoded(whole, path)
    return whole.splitlines(keepends=True), lines[0].asked_with if lines else None


def _decoded(lines: bytes, path: Path) -> list[_Line]:
    try:
        return msgspec.json.Decoder(_Line).decode_lines(lines)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise BadSession(f"kept replies '{path}' cannot be read ({error}): move the file away") from error
