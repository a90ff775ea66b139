"""The folder in which people's predictions are recorded, and the agent `human`, which answers from it as a person did.

DIR/asked.json            the questions: the store, context and sessions, the same for all people of the folder
DIR/steps.jsonl           the steps, each with a digest of its observation (HumanAgent looks a reply up by it)
DIR/people/NAME.jsonl     one person's replies, as the leaderboard keeps an agent's (evaluation/reply_cache.py)
DIR/people/NAME.consent.json    that the person agreed to take part (introduction.py)
DIR/people/NAME.lock      held by the process that serves this person

Everyone in a folder gets the same questions, so that people can be compared; others need another folder.

    observation ─► its digest ─► the steps of the recording with the same observation ─► the person's reply

An agent sees observations and not which step of which session it is at, so a reply is looked up by the observation.
Where several steps have the very same one and different replies, the step's seed draws one of them. A step that the
person was not asked about, or has not answered yet, is an AgentFailed: an error row, never a score of 0.
"""

import hashlib
import json
import random
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import msgspec
from msgspec.structs import asdict

from agents.adapted import SeededAgent
from replay_sessions.foundation.durable_files import replace_file, replace_json, sync_folder, working_alone_in, writing
from replay_sessions.foundation.errors import AgentFailed, BadConfig, BadSession, did_you_mean
from replay_sessions.foundation.progress import track
from replay_sessions.foundation.records import Config
from replay_sessions.store import SessionStore
from shop_env.evaluation.reply_cache import ReplyCache
from shop_env.evaluation.scored_steps import AnySplit, StepKey, scored_keys, steps_at
from shop_env.observation import ContextConfig, Observation
from shop_env.versions import SCORING_VERSION

_LONGEST_NAME = 40


class Questions(Config):
    """asked.json: what determines the questions of a folder.

    Attributes:
        store: The fingerprint of the store.
        show_answer: People saw the logged action after each prediction.
    """

    store: str
    split: AnySplit
    sessions: int | None
    first_action: bool
    context: ContextConfig
    show_answer: bool
    scoring: int = SCORING_VERSION


class QuestionStep(Config):
    """A line of steps.jsonl."""

    session_id: str
    step_index: int
    observation: str

    @property
    def key(self) -> StepKey:
        return self.session_id, self.step_index


@dataclass(frozen=True)
class Recording:
    """A folder of predictions.

    Attributes:
        steps: The questions, in their order.
    """

    folder: Path
    questions: Questions
    steps: Sequence[QuestionStep]

    @classmethod
    def open(cls, folder: Path) -> "Recording":
        """Opens a folder.

        Raises:
            BadConfig: It holds no recording.
            BadSession: A file in it cannot be read.
        """
        try:
            questions = msgspec.json.decode((folder / "asked.json").read_bytes(), type=Questions)
            steps = msgspec.json.Decoder(QuestionStep).decode_lines((folder / "steps.jsonl").read_bytes())
        except OSError as error:
            raise BadConfig(
                f"No recorded predictions in '{folder}' ({error.strerror}): expected the --out of "
                "`python -m agents.human`"
            ) from error
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise BadSession(f"The recording in '{folder}' cannot be read ({error}): move the folder away") from error
        return cls(folder, questions, steps)

    @classmethod
    def make(cls, folder: Path, questions: Questions, store: SessionStore) -> "Recording":
        """Makes the folder for these questions, or opens one that was made for the same.

        Raises:
            BadConfig: The folder was made for other questions.
        """
        if (folder / "asked.json").exists():
            recording = cls.open(folder)
            if recording.questions != questions:
                pairs = ((name, getattr(recording.questions, name), own) for name, own in asdict(questions).items())
                differences = ", ".join(f"{name} {old!r}, now {own!r}" for name, old, own in pairs if old != own)
                raise BadConfig(
                    f"--out {folder} holds answers to other questions ({differences}): give the same options to "
                    "continue, or another --out"
                )
            return recording
        keys = scored_keys(
            store, questions.split, skip_first_action=not questions.first_action, max_sessions=questions.sessions
        )
        steps = [
            QuestionStep(
                session_id=step.key[0], step_index=step.key[1], observation=observation_digest(step.observation)
            )
            for step in track(steps_at(store, questions.split, keys, questions.context), "questions", len(keys))
        ]
        with writing(folder):
            folder.joinpath("people").mkdir(parents=True, exist_ok=True)
            sync_folder(folder)
        replace_file(folder / "steps.jsonl", msgspec.json.Encoder().encode_lines(steps))
        replace_json(folder / "asked.json", questions)
        return cls(folder, questions, steps)

    @property
    def people(self) -> list[str]:
        """Everyone who has begun to answer."""
        return sorted(path.stem for path in self.folder.glob("people/*.jsonl"))

    def choose_person(self, name: str | None) -> str:
        """The person of this name; None: the only one there is.

        Raises:
            BadConfig: There is none, or there are several.
        """
        people = self.people
        if name in people:
            return name
        if not people:
            raise BadConfig(f"Nobody has answered in '{self.folder}' yet")
        if name is not None:
            raise BadConfig(f"Nobody called {name!r} answered in '{self.folder}'. {did_you_mean(name, people)}")
        if len(people) > 1:
            raise BadConfig(f"Several people answered in '{self.folder}': give person={'|'.join(people)}")
        return people[0]

    def replies_of(self, person: str) -> ReplyCache:
        """A person's replies, which are synced to the disk one by one as they are added."""
        return ReplyCache(
            self.path_of(person, ".jsonl"),
            {"target": "human", "person": person, **msgspec.to_builtins(self.questions)},
            synced=True,
        )

    @contextmanager
    def lock_replies(self, person: str) -> Iterator[ReplyCache]:
        """A person's replies, to be added to by this process alone.

        Raises:
            BadConfig: Another process serves this person.
        """
        remedy = f"choose another --person than '{person}'"
        file = self.path_of(person, ".lock")
        with working_alone_in(file.parent, file.name, remedy=remedy), self.replies_of(person) as replies:
            yield replies

    def path_of(self, person: str, ending: str) -> Path:
        """A file of a person's."""
        if not person.replace("-", "").replace("_", "").isalnum() or len(person) > _LONGEST_NAME:
            raise BadConfig(
                f"--person is {person!r}; expected up to {_LONGEST_NAME} letters, digits, '-' and '_', since it "
                "names a file"
            )
        return self.folder / "people" / f"{person}{ending}"


def observation_digest(observation: Observation) -> str:
    """Identifies a question, whatever store it comes from."""
    text = json.dumps(observation, sort_keys=True)  # escapes what UTF-8 cannot carry
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


class HumanAgent(SeededAgent):
    """Answers as a person did, from the folder of `python -m agents.human`.

    Args:
        replies: The folder.
        person: Who, where several people answered.
        show_answer: Must be true of people who saw the logged action after each prediction, so that their row says so.
    """

    def __init__(self, replies: str, person: str | None = None, show_answer: bool = False) -> None:
        recording = Recording.open(Path(replies))
        self._person = recording.choose_person(person)
        actual = recording.questions.show_answer
        if actual != show_answer:
            raise BadConfig(
                f"Agent 'human': the people of '{replies}' {'saw' if actual else 'did not see'} the logged action "
                f"after each prediction; give show_answer={str(actual).lower()}, so that the row says so too"
            )
        cache = recording.replies_of(self._person)
        self._answers: dict[str, list[str]] = {}
        for step in recording.steps:
            reply = cache.reply(step.key)
            self._answers.setdefault(step.observation, []).extend([] if reply is None else [reply])

    def act(self, observation: Observation) -> str:
        """The person's reply.

        Raises:
            AgentFailed: There is none.
        """
        answers = self._answers.get(observation_digest(observation))
        if answers is None:
            raise AgentFailed(
                f"not asked: {self._person} saw no such page, history, persona and goal (another store, context or "
                "session)"
            )
        if not answers:
            raise AgentFailed(f"not answered: {self._person} has not reached this step yet")
        return random.Random(self._seed).choice(answers)
