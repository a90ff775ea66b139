"""The files of one agent within the folder of an evaluation (log.py): its records and its replies."""

import hashlib
import re
from collections.abc import Sequence
from pathlib import Path

import msgspec

from replay_sessions.foundation.durable_files import read_regular, replace_file
from replay_sessions.foundation.errors import BadSession
from shop_env.evaluation.reply_cache import UNREADABLE, Identity
from shop_env.metrics.step_table import StepRecord


class AgentFiles:
    """The folder of one agent's records and replies."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.steps = folder / "steps.jsonl"

    @classmethod
    def of(cls, evaluation: Path, name: str) -> "AgentFiles":
        """In the folder of an evaluation, by a name that may be a label."""
        return cls(evaluation / "agents" / folder_name(name))

    def replies(self, identity: Identity) -> Path:
        """The replies of this identity; those of others are files beside it."""
        digest = hashlib.blake2b(msgspec.json.encode(identity, order="sorted"), digest_size=8)
        return self.folder / "replies" / f"{digest.hexdigest()}.jsonl"

    def write(self, records: Sequence[StepRecord]) -> None:
        """Writes steps.jsonl."""
        self.folder.mkdir(parents=True, exist_ok=True)
        replace_file(self.steps, msgspec.json.Encoder().encode_lines(records))

    def read(self) -> list[StepRecord]:
        """All records.

        Raises:
            BadSession: The file is absent, cut off or of another version.
        """
        remedy = "run the same command again, which makes them anew from the replies"
        try:
            return msgspec.json.Decoder(StepRecord).decode_lines(read_regular(self.steps))
        except FileNotFoundError as error:
            raise BadSession(f"no records at '{self.steps}': {remedy}") from error
        except UNREADABLE as error:
            raise BadSession(f"the records '{self.steps}' cannot be read ({error}): {remedy}") from error

    def digest(self) -> str:
        """The digest of the records as they are on the disk."""
        return _digest(self.steps.read_bytes())


def folder_name(label: str) -> str:
    """A folder name that says the label; where characters had to go, a digest keeps labels apart.

    >>> folder_name("copy_match"), folder_name("runs/sft?temperature=0")
    ('copy_match', 'runs_sft_temperature_0-5eb66b')
    """
    cleaned = re.sub(r"[^\w.-]+", "_", label).strip(".") or "agent"
    if cleaned == label and len(label) <= 80:
        return cleaned
    return f"{cleaned[:80]}-{hashlib.blake2b(label.encode(), digest_size=3).hexdigest()}"


def records_digest(records: Sequence[StepRecord]) -> str:
    """The digest of the file that holds these records."""
    return _digest(msgspec.json.Encoder().encode_lines(records))


def _digest(content: bytes) -> str:
    return hashlib.blake2b(content, digest_size=16).hexdigest()
