"""The folder in which people's predictions are recorded: what they are asked, and each one's replies.

DIR/asked.json            the store, context and sessions that all people of this folder are asked about
DIR/steps.jsonl           the steps, each with a digest of what is shown there (agent.py finds a reply by it)
DIR/people/NAME.jsonl     one person's replies, as the leaderboard keeps an agent's (agents/kept_replies.py)
DIR/people/NAME.lock      held by the process that asks this person

Everyone in a folder is asked the same, so that people can be compared; other questions need another folder.
"""

import hashlib
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from agents.kept_replies import KeptReplies
from agents.scored_steps import AnySplit, StepKey, scored_keys, steps_at
from replay_sessions.errors import BadConfig, BadSession, did_you_mean
from replay_sessions.progress_bar import progress_bar
from replay_sessions.store import SessionStore
from replay_sessions.store.durable_files import replace_file, sync_folder, writing
from replay_sessions.store.locks import lock
from shop_env.context import ContextConfig
from shop_env.observation import Observation
from shop_env.versions import SCORING_VERSION

__all__ = ["Asked", "AskedStep", "Recording", "observation_digest"]

_LONGEST_NAME = 40


class Asked(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """asked.json: what decides the questions of a folder.

    Attributes:
        store: The fingerprint of the store.
        show_answer: People were shown the logged action after each prediction.
    """

    store: str
    split: AnySplit
    sessions: int | None
    first_action: bool
    context: ContextConfig
    show_answer: bool
    scoring: int = SCORING_VERSION


class AskedStep(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A line of steps.jsonl."""

    session_id: str
    step_index: int
    observation: str

    @property
    def key(self) -> StepKey:
        return self.session_id, self.step_index


class Recording:
    """A folder of predictions.

    Attributes:
        steps: What people are asked about, in this order.
    """

    def __init__(self, folder: Path, asked: Asked, steps: Sequence[AskedStep]) -> None:
        self.folder = folder
        self.asked = asked
        self.steps = steps

    @classmethod
    def open(cls, folder: Path) -> "Recording":
        """A folder that is there.

        Raises:
            BadConfig: It holds no recording.
            BadSession: A file in it cannot be read.
        """
        try:
            asked = msgspec.json.decode((folder / "asked.json").read_bytes(), type=Asked)
            steps = msgspec.json.Decoder(AskedStep).decode_lines((folder / "steps.jsonl").read_bytes())
        except OSError as error:
            raise BadConfig(
                f"No recorded predictions in '{folder}' ({error.strerror}): expected the --out of "
                "`python -m agents.human`"
            ) from error
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise BadSession(f"The recording in '{folder}' cannot be read ({error}): move the folder away") from error
        return cls(folder, asked, steps)

    @classmethod
    def make(cls, folder: Path, asked: Asked, store: SessionStore) -> "Recording":
        """The folder for these questions: a new one, or the one that is there if it was made for the same.

        Raises:
            BadConfig: The folder was made for other questions.
        """
        if (folder / "asked.json").exists():
            found = cls.open(folder)
            if found.asked != asked:
                raise BadConfig(
                    f"--out {folder} holds answers to other questions ({_differences(found.asked, asked)}): give the "
                    "same options to go on, or another --out"
                )
            return found
        keys = scored_keys(store, asked.split, skip_first_action=not asked.first_action, max_sessions=asked.sessions)
        steps = []
        with progress_bar("questions", len(keys), "steps") as advance:
            for step in steps_at(store, asked.split, keys, asked.context):
                digest = observation_digest(step.observation)
                steps.append(AskedStep(session_id=step.key[0], step_index=step.key[1], observation=digest))
                advance(1)
        with writing(folder):
            folder.joinpath("people").mkdir(parents=True, exist_ok=True)
            sync_folder(folder)
        replace_file(folder / "steps.jsonl", msgspec.json.Encoder().encode_lines(steps))
        replace_file(folder / "asked.json", msgspec.json.format(msgspec.json.encode(asked)))  # last: now it is whole
        return cls(folder, asked, steps)

    @property
    def people(self) -> list[str]:
        """Everyone who has begun to answer."""
        return sorted(path.stem for path in self.folder.glob("people/*.jsonl"))

    def the_person(self, name: str | None) -> str:
        """The person of this name; None: the only one there is.

        Raises:
            BadConfig: There is none, or there are several.
        """
        people = self.people
        if name is None and len(people) == 1:
            return people[0]
        if not people:
            raise BadConfig(f"Nobody has answered in '{self.folder}' yet")
        if name is None:
            raise BadConfig(f"Several people answered in '{self.folder}': say person={'|'.join(people)}")
        if name not in people:
            raise BadConfig(f"Nobody called {name!r} answered in '{self.folder}'. {did_you_mean(name, people)}")
        return name

    def replies_of(self, person: str) -> KeptReplies:
        """A person's replies, which are synced to the disk one by one as they are added."""
        return KeptReplies(self._path(person, ".jsonl"), self._asked_with(person), synced=True)

    @contextmanager
    def asking(self, person: str) -> Iterator[KeptReplies]:
        """A person's replies, to be added to by this process alone.

        Raises:
            BadConfig: Another process asks this person.
        """
        path = self._path(person, ".lock")
        with writing(path):
            path.parent.mkdir(exist_ok=True)
            lock_file = path.open("wb")
        with lock_file:
            try:
                lock(lock_file)
            except BlockingIOError as error:
                raise BadConfig(
                    f"'{person}' is being asked by another process in '{self.folder}': end it, or choose another "
                    "--person"
                ) from error
            with self.replies_of(person) as kept:
                yield kept

    def _path(self, person: str, ending: str) -> Path:
        if not person.replace("-", "").replace("_", "").isalnum() or len(person) > _LONGEST_NAME:
            raise BadConfig(
                f"--person is {person!r}; expected up to {_LONGEST_NAME} letters, digits, '-' and '_', since a file "
                "is called so"
            )
        return self.folder / "people" / f"{person}{ending}"

    def _asked_with(self, person: str) -> dict[str, Any]:
        return {"target": "human", "person": person, **msgspec.to_builtins(self.asked)}


def observation_digest(observation: Observation) -> str:
    """Tells one question from another, whatever store it comes from."""
    text = json.dumps(observation, sort_keys=True)  # escapes what UTF-8 cannot carry
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def _differences(there: Asked, wanted: Asked) -> str:
    pairs = [(field, getattr(there, field), getattr(wanted, field)) for field in there.__struct_fields__]
    return ", ".join(f"{field} {old!r}, now {new!r}" for field, old, new in pairs if old != new)
