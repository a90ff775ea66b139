"""A leaderboard's folder: where an agent's replies and records lie, so that figures can be checked and counted anew.

DIR/results.json                      figures of all agents, and what they were made with
DIR/leaderboard.md                    the same as a table
DIR/.lock                             held by the run that writes here, and by none once its process is gone
DIR/agents/<label>/replies/*.jsonl    what the agent answered, line by line as it came (agents/kept_replies.py)
DIR/agents/<label>/steps.jsonl        one record per scored step: what was logged and what the reply to it is worth
DIR/agents/<label>/run.json           what these replies were asked with, and by which runs
"""

import hashlib
from pathlib import Path
from typing import Any

import msgspec

from agents.folder_names import folder_name
from replay_sessions.errors import BadConfig, BadSession
from replay_sessions.store.durable_files import replace_file
from shop_env.metrics.records import StepRecord

__all__ = ["AgentFiles", "AgentRun", "read_json"]


class AgentRun(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """run.json: what an agent's replies were asked with.

    Attributes:
        asked_with: Everything that decides a reply (config.asked_with).
        asked_by: Commit, packages, machine and time of each run of the command in which a reply was given.
        time_s: How long the agent took for these steps, probabilities included.
    """

    label: str
    asked_with: dict[str, Any]
    asked_by: list[dict[str, Any]]
    time_s: float


class AgentFiles:
    """The folder of one agent in a leaderboard's folder."""

    def __init__(self, leaderboard: Path, label: str) -> None:
        self.label = label
        self.folder = leaderboard / "agents" / folder_name(label)
        self.steps = self.folder / "steps.jsonl"
        self.run = self.folder / "run.json"

    def replies(self, asked_with: dict[str, Any]) -> Path:
        """Where the replies to what was asked so are kept; what was asked otherwise lies beside it."""
        digest = hashlib.blake2b(msgspec.json.encode(asked_with, order="sorted"), digest_size=8)
        return self.folder / "replies" / f"{digest.hexdigest()}.jsonl"

    def write(self, records: list[StepRecord], run: AgentRun) -> str:
        """Writes steps.jsonl and run.json; returns the digest of the records."""
        content = msgspec.json.Encoder().encode_lines(records)
        self.folder.mkdir(parents=True, exist_ok=True)
        replace_file(self.steps, content)
        replace_file(self.run, msgspec.json.format(msgspec.json.encode(run)))
        return _digest(content)

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
                f"Records of '{self.label}' at '{self.steps}' cannot be read ({error}): run the leaderboard again, "
                "which makes them anew from the kept replies"
            ) from error

    def digest(self) -> str:
        """The digest of the records as they lie there."""
        return _digest(self.steps.read_bytes())


def read_json(path: Path) -> Any:
    try:
        return msgspec.json.decode(path.read_bytes())
    except FileNotFoundError as error:
        raise BadConfig(f"No '{path}': is '{path.parent}' the folder of a finished leaderboard run?") from error
    except msgspec.DecodeError as error:
        raise BadConfig(f"'{path}' is no JSON: {error}") from error


def _digest(content: bytes) -> str:
    return hashlib.blake2b(content, digest_size=16).hexdigest()
