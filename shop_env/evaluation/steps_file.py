"""The file of an agent's steps, a line for each as it comes: all that an evaluation keeps of an agent.

    generate.py ─► StepsFile.add ─► one line ─► (any reward, metrics, extraction) ─► StepRecord

    {"version": 1, "identity": {"target": "random", "store": "9f…", "seed": 0, …}, "run": {"commit": "1a…", …}}
    {"session_id": "s1", "step_index": 2, "observation": "5c…", "seconds": 0.8, "reply": "{…}", "probabilities": […]}
    {"session_id": "s1", "step_index": 3, "observation": "77…", "seconds": 9.1, "error": "AgentFailed: …"}

A run that was stopped goes on from this file. A line is written in one call, so processes that share an agent's steps
append to one file; of two lines about the same step the later counts.
"""

import hashlib
import logging
import time
from pathlib import Path
from typing import Any, BinaryIO, Self

import msgspec

from replay_sessions.foundation.durable_files import read_regular, replace_file, writing
from replay_sessions.foundation.errors import BadSession, PromptTooLong
from replay_sessions.foundation.records import Config
from replay_sessions.schema import Action
from shop_env.evaluation.generate import Answer, format_error
from shop_env.evaluation.protocol import PromptCut
from shop_env.evaluation.scored_steps import ScoredStep, StepKey
from shop_env.observation import Observation

logger = logging.getLogger(__name__)

Identity = dict[str, Any]  # everything that decides a reply: agent, code, store, context, seed
UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
FORMAT_VERSION = 1


class Header(Config):
    """The first line: what decides the replies, and the provenance of the run that began the file."""

    version: int = FORMAT_VERSION
    identity: Identity
    run: dict[str, Any] = {}


class StepLine(Config, omit_defaults=True, gc=False):
    """The answer of an agent at a step, as a line of the file.

    Attributes:
        observation: The digest of what the agent saw.
        seconds: Since the line before.
        error: Why there is no reply, or no distribution where probabilities were wanted.
        probabilities: None where they were not wanted, or the agent has none.
        cut: What of the pages the agent did not read, where it read less than all of them.
    """

    session_id: str
    step_index: int
    observation: str
    seconds: float = 0.0
    reply: str | None = None
    error: str | None = None
    probabilities: tuple[tuple[Action, float], ...] | None = None
    cut: PromptCut | None = None

    @property
    def key(self) -> StepKey:
        return self.session_id, self.step_index

    @property
    def is_too_long(self) -> bool:
        """Returns whether the agent gave no reply because its model cannot read so much."""
        return self.error is not None and self.error.startswith(f"{PromptTooLong.__name__}:")


def observation_digest(observation: Observation) -> str:
    """The digest of everything that an agent sees at a step."""
    return hashlib.blake2b(msgspec.json.encode(observation), digest_size=16).hexdigest()


class StepsFile:
    """The lines of one agent; closes its file as a context manager.

    Args:
        path: The file, as `prepare` left it; None: memory alone.

    Attributes:
        lines: By step.
    """

    def __init__(self, path: Path | None = None) -> None:
        # Another process may be in the middle of a line, which is none of this one's.
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
        """Adds what the agent gave, or the exception in its place."""
        before, self._last = self._last, time.monotonic()
        reply, probabilities, cut = answer
        line = StepLine(
            session_id=step.key[0],
            step_index=step.key[1],
            observation=observation_digest(step.observation),
            seconds=round(self._last - before, 6),
            cut=cut if cut is not None and any(cut) else None,
        )
        if isinstance(reply, Exception):
            line = msgspec.structs.replace(line, error=format_error(reply))
        elif isinstance(probabilities, Exception):
            line = msgspec.structs.replace(line, error=format_error(probabilities))
        else:
            # Half a surrogate pair is no text that a file can hold; its escape reads as the same malformed reply.
            reply = reply.encode("utf-8", "backslashreplace").decode()
            pairs = None if probabilities is None else tuple(probabilities.items())
            line = msgspec.structs.replace(line, reply=reply, probabilities=pairs)
        self.write(line)

    def write(self, line: StepLine) -> None:
        """Adds a line."""
        self.lines[line.key] = line
        if self._file is not None:
            with writing(Path(self._file.name)):
                self._file.write(msgspec.json.encode(line) + b"\n")


def prepare(path: Path, identity: Identity, run: dict[str, Any], *, fresh: bool, retry_errors: bool) -> None:
    """Makes the file ready to be continued: a whole last line, no failed step that is to be run again.

    The lines of another identity, or all if `fresh`, are moved to FILE.before, and the file begins anew.
    """
    identity = msgspec.to_builtins(identity)
    header, lines, complete = _read(path)
    # Probabilities more than wanted are no harm.
    if fresh or header is None or header.identity not in (identity, identity | {"likelihood": True}):
        with writing(path):
            if path.is_file():
                path.replace(path.with_name(f"{path.name}.before"))
        header, lines, complete = Header(identity=identity, run=run), {}, False
    kept = [line for line in lines.values() if line.is_too_long or not (retry_errors and line.error is not None)]
    if not complete or len(kept) < len(lines):
        replace_file(path, msgspec.json.Encoder().encode_lines([header, *kept]))


def read_lines(path: Path) -> dict[StepKey, StepLine]:
    """All lines, by step.

    Raises:
        BadSession: The file is absent, cut off or of another version.
    """
    header, lines, complete = _read(path)
    if header is None or not complete:
        raise BadSession(f"the steps in '{path}' cannot be read: run the same command again, which goes on from them")
    return lines


def _read(path: Path) -> tuple[Header | None, dict[StepKey, StepLine], bool]:
    """The header, the lines that can be read, and whether these are all."""
    try:
        content = read_regular(path)
    except FileNotFoundError:
        return None, {}, False
    first, _, rest = content.partition(b"\n")
    try:
        header = msgspec.json.decode(first, type=Header)
    except UNREADABLE:
        return None, {}, False
    decoder = msgspec.json.Decoder(StepLine)
    lines, complete = dict[StepKey, StepLine](), content.endswith(b"\n")
    for text in rest.splitlines():
        try:
            line = decoder.decode(text)
        except UNREADABLE as error:
            logger.warning("a line of '%s' cannot be read (%s): its step counts as not run", path, error)
            complete = False
        else:
            lines[line.key] = line
    return header if header.version == FORMAT_VERSION else None, lines, complete
