"""Reads and writes the file of an agent's steps, a line for each step: all that an evaluation stores of an agent.

    waves.py ─► StepsFile.add ─► one line ─► (any reward, metrics, extraction) ─► StepRecord

    {"version": 1, "identity": {"target": "random", "store": "9f…", "seed": 0, …}, "run": {"commit": "1a…", …}}
    {"session_id": "s1", "step_index": 2, "observation": "5c…", "seconds": 0.8, "reply": "{…}", "probabilities": […]}
    {"session_id": "s1", "step_index": 3, "observation": "77…", "seconds": 9.1, "error": "AgentFailed: …"}

A stopped run continues from this file. Each line is written in one call, so several processes can append to the file of
one agent. If two lines are about the same step, the later one counts. A record has FILE.gz instead,
to be read only.
"""

import gzip
import hashlib
import logging
import time
from io import BytesIO
from itertools import chain, count
from pathlib import Path
from typing import Any, BinaryIO, Self

import msgspec

from replay_sessions.foundation import durable_files
from replay_sessions.foundation.durable_files import read_regular, replace_file, writing
from replay_sessions.foundation.errors import BadSession
from replay_sessions.foundation.records import Config
from replay_sessions.schema import Action
from shop_env.evaluation.answering import Answer, NoReply, Reason
from shop_env.evaluation.protocol import PromptCut
from shop_env.evaluation.scored_steps import ScoredStep, StepKey
from shop_env.observation import Observation

logger = logging.getLogger(__name__)

Identity = dict[str, Any]  # everything that decides a reply: agent, code, store, context, seed
UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
FORMAT_VERSION = 1
LONGEST_BYTES = 1 << 30  # of an unpacked file, because a folder may come from a stranger


class Header(Config):
    """The first line: the identity of the replies, and the provenance of the run that began the file."""

    version: int = FORMAT_VERSION
    identity: Identity
    run: dict[str, Any] = {}


class StepLine(Config, omit_defaults=True, gc=False):
    """The answer of an agent at a step, as a line of the file.

    Attributes:
        observation: The digest of the agent's observation.
        seconds: Seconds since the previous line.
        reply: The complete reply; None for an error.
        error: The error because of which the agent gave no reply, or no distribution if probabilities were requested.
        reason: Why there is no reply; None if there is one.
        probabilities: The probabilities of actions; None if they were not requested or the agent gives none.
        cut: The part of the pages that the agent did not read; None if it read all or does not report it.
    """

    session_id: str
    step_index: int
    observation: str
    seconds: float = 0.0
    reply: str | None = None
    error: str | None = None
    reason: Reason | None = None
    probabilities: tuple[tuple[Action, float], ...] | None = None
    cut: PromptCut | None = None

    @property
    def key(self) -> StepKey:
        return self.session_id, self.step_index

    @property
    def is_too_long(self) -> bool:
        """True if the agent gave no reply because the prompt is too long for its model."""
        return self.reason is Reason.TOO_LONG


def observation_digest(observation: Observation) -> str:
    """Computes the digest of everything that an agent sees at a step."""
    return hashlib.blake2b(msgspec.json.encode(observation), digest_size=16).hexdigest()


class StepsFile:
    """The lines of one agent; a context manager that closes its file.

    Args:
        path: The file after `prepare`; None keeps the lines in memory alone.

    Attributes:
        lines: The lines by step.
    """

    def __init__(self, path: Path | None = None) -> None:
        # An incomplete last line is ignored, because another process may be writing it.
        self.lines = {} if path is None else _read(path)[1]
        self._file: BinaryIO | None = None
        if path is not None:
            with writing(path):
                self._file = path.open("ab", buffering=0)
        self._last = time.monotonic()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            self._file.close()

    def add(self, step: ScoredStep, answer: Answer) -> None:
        """Adds the agent's answer at a step as a line."""
        before, self._last = self._last, time.monotonic()
        reply, probabilities, cut = answer
        line = StepLine(
            session_id=step.key[0],
            step_index=step.key[1],
            observation=observation_digest(step.observation),
            seconds=round(self._last - before, 6),
            cut=cut if cut is not None and any(cut) else None,
        )
        if isinstance(reply, NoReply):
            line = msgspec.structs.replace(line, error=reply.text, reason=reply.reason)
        else:
            pairs = None if probabilities is None else tuple(probabilities.items())
            line = msgspec.structs.replace(line, reply=reply, probabilities=pairs)
        self.write(line)

    def write(self, line: StepLine) -> None:
        """Adds a line and writes it to the file."""
        self.lines[line.key] = line
        if self._file is not None:
            with writing(Path(self._file.name)):
                self._file.write(msgspec.json.encode(line) + b"\n")


def read_identity(path: Path) -> Identity | None:
    """Reads the identity of a file's replies; None if the file is absent or unreadable."""
    header = _read(path)[0]
    return None if header is None else header.identity


def prepare(path: Path, identity: Identity, run: dict[str, Any], *, fresh: bool, retry_errors: bool) -> Path | None:
    """Prepares the file for new lines: removes an incomplete last line, and failed steps that are to be run again.

    If the file has another identity or an unreadable header, it is moved to FILE.before (FILE.before2 if there is one,
    and so on), and a new file begins.

    Args:
        identity: Everything that decides the replies.
        run: The provenance of this run, for a new file.
        fresh: Whether to begin a new file in any case.
        retry_errors: Whether failed steps are to be run again, except those with a prompt that is too long.

    Returns:
        The path that the earlier file was moved to; None if there was none or it is used.
    """
    moved = None
    identity = msgspec.to_builtins(identity)
    header, lines, complete = _read(path)
    # A file with probabilities also serves a run that does not request them.
    if fresh or header is None or header.identity not in (identity, identity | {"likelihood": True}):
        with writing(path):
            if path.is_file():
                targets = (path.with_name(f"{path.name}.before{number}") for number in chain([""], count(2)))
                moved = path.rename(next(target for target in targets if not target.exists()))
        header, lines, complete = Header(identity=identity, run=run), {}, False
    kept_lines = [line for line in lines.values() if line.is_too_long or not (retry_errors and line.error is not None)]
    if not complete or len(kept_lines) < len(lines):
        replace_file(path, msgspec.json.Encoder().encode_lines([header, *kept_lines]))
    return moved


def packed_file(path: Path) -> Path:
    """Returns the compressed file that a record has in place of a file of steps."""
    return path.with_name(f"{path.name}.gz")


def read_content(path: Path) -> bytes:
    """Returns the content of a file of steps, also of a record's.

    Raises:
        FileNotFoundError: There is neither.
        BadSession: The record's file is damaged or too long.
    """
    packed = packed_file(path)
    if path.is_file() or not packed.is_file():
        return read_regular(path)
    try:
        content = gzip.GzipFile(fileobj=BytesIO(read_regular(packed))).read(LONGEST_BYTES + 1)
    except durable_files.UNREADABLE as error:
        raise BadSession(f"'{packed}' cannot be unpacked: {error!r}") from error
    if len(content) > LONGEST_BYTES:
        raise BadSession(f"'{packed}' unpacks to more than {LONGEST_BYTES >> 20} MiB")
    return content


def read_lines(path: Path) -> dict[StepKey, StepLine]:
    """Reads all lines, by step, also of a record.

    Raises:
        BadSession: The file is absent, cut off or of another version.
    """
    header, lines, complete = _read(path, packed=True)
    if header is None or not complete:
        raise BadSession(f"the steps in '{path}' cannot be read: run the same command again, which goes on from them")
    return lines


def _read(path: Path, *, packed: bool = False) -> tuple[Header | None, dict[StepKey, StepLine], bool]:
    """Reads the header (None if it is unreadable or of another version), the readable lines, and whether all are."""
    try:
        content = read_content(path) if packed else read_regular(path)
    except FileNotFoundError:
        return None, {}, False
    header_text, _, lines_text = content.partition(b"\n")
    try:
        header = msgspec.json.decode(header_text, type=Header)
    except UNREADABLE:
        return None, {}, False
    decoder = msgspec.json.Decoder(StepLine)
    lines, complete = dict[StepKey, StepLine](), content.endswith(b"\n")
    for text in lines_text.splitlines():
        try:
            line = decoder.decode(text)
        except UNREADABLE as error:
            logger.warning("a line of '%s' cannot be read (%s): its step counts as not run", path, error)
            complete = False
        else:
            if line.error is not None and line.reason is None:  # a file from before lines had a reason
                reason = Reason.TOO_LONG if line.error.startswith("PromptTooLong:") else Reason.FAILED
                line = msgspec.structs.replace(line, reason=reason)
            lines[line.key] = line
    return header if header.version == FORMAT_VERSION else None, lines, complete
