"""An agent's records on disk: what it answered at every step, so that figures can be checked and counted anew.

DIR/results.json                 figures of all agents, and what they were made with
DIR/leaderboard.md               the same as a table
DIR/agents/<label>/steps.jsonl   one record per step
DIR/agents/<label>/run.json      what these records were made with; written last, so a folder with it is complete
"""

import hashlib
import logging
import os
import re
from pathlib import Path
from typing import Any

import msgspec

from replay_sessions.errors import BadConfig, BadSession
from shop_env.metrics.records import StepRecord

__all__ = ["AgentFiles", "AgentRun", "read_json", "write_atomically"]

logger = logging.getLogger(__name__)


class AgentRun(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """run.json: what an agent's records were made with.

    Attributes:
        made_with: Everything that decides the records (config.made_with): the same need not be made again.
        provenance: Commit, packages, machine, time.
        time_s: How long the agent took to answer, retries included.
    """

    label: str
    made_with: dict[str, Any]
    provenance: dict[str, Any]
    time_s: float


class AgentFiles:
    """Reads and writes the folder of one agent in a leaderboard's folder."""

    def __init__(self, leaderboard: Path, label: str) -> None:
        self.label = label
        self.folder = leaderboard / "agents" / _folder_name(label)
        self.steps = self.folder / "steps.jsonl"
        self.run = self.folder / "run.json"

    def write(self, records: list[StepRecord], run: AgentRun) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        self.run.unlink(missing_ok=True)  # until the new one stands, the folder is incomplete
        write_atomically(self.steps, msgspec.json.Encoder().encode_lines(records))
        write_atomically(self.run, msgspec.json.format(msgspec.json.encode(run)))

    def read(self) -> list[StepRecord]:
        """All records.

        Raises:
            BadSession: The file is absent, cut off or of another version.
        """
        try:
            return msgspec.json.Decoder(StepRecord).decode_lines(self.steps.read_bytes())
        except FileNotFoundError as error:
            raise BadSession(f"No records of '{self.label}' at '{self.steps}': run the leaderboard again") from error
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise BadSession(
                f"Records of '{self.label}' at '{self.steps}' cannot be read ({error}): run again with --fresh"
            ) from error

    def finished_run(self, made_with: dict[str, Any]) -> AgentRun | None:
        """How the records were made, if they are complete and were made with exactly this; else None."""
        if not self.run.is_file():
            return None
        try:
            found = msgspec.json.decode(self.run.read_bytes(), type=AgentRun)
        except msgspec.DecodeError:  # of another version: made anew
            return None
        wanted = msgspec.json.decode(msgspec.json.encode(made_with))
        if found.made_with == wanted:
            return found
        changed = [key for key in wanted if wanted[key] != found.made_with.get(key)]
        logger.warning("records of '%s' were made with another %s: running it again", self.label, ", ".join(changed))
        return None


def read_json(path: Path) -> Any:
    try:
        return msgspec.json.decode(path.read_bytes())
    except FileNotFoundError as error:
        raise BadConfig(f"No '{path}': is '{path.parent}' the folder of a finished leaderboard run?") from error
    except msgspec.DecodeError as error:
        raise BadConfig(f"'{path}' is no JSON: {error}") from error


def write_atomically(path: Path, content: bytes) -> None:
    """Writes to a temporary name and renames: whoever reads sees the old file or the new one, never half of one."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        temporary.write_bytes(content)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def _folder_name(label: str) -> str:
    """A folder name that says the label; where characters had to go, a digest keeps labels apart.

    >>> _folder_name("copy_match"), _folder_name("runs/sft?temperature=0")
    ('copy_match', 'runs_sft_temperature_0-5eb66b')
    """
    cleaned = re.sub(r"[^\w.-]+", "_", label).strip(".") or "agent"
    if cleaned == label:
        return cleaned
    return f"{cleaned[:80]}-{hashlib.blake2b(label.encode(), digest_size=3).hexdigest()}"
