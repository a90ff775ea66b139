"""`human`: answers as a person did who was asked the same by `python -m agents.human`.

    observation ─► its digest ─► the steps of the recording at which just this was shown ─► the person's reply

An agent sees observations and not which step of which session it is at, so a reply is found by what was shown. Where
the very same was shown at several steps and answered differently, the step's seed draws one of the answers. What nobody
was asked, or has not answered yet, is an AgentFailed: an error row, never a score of 0.
"""

import random
from pathlib import Path

from agents.human.recording import Recording, observation_digest
from replay_sessions.errors import AgentFailed, BadConfig
from shop_env.observation import Observation

__all__ = ["HumanAgent"]


class HumanAgent:
    """Answers as a person did, from the folder of `python -m agents.human`.

    Args:
        replies: The folder.
        person: Who, where several people answered.
        show_answer: Must be true of people who were shown the logged action after each prediction, so that their row
            says so.
    """

    def __init__(self, replies: str, person: str | None = None, show_answer: bool = False) -> None:
        recording = Recording.open(Path(replies))
        self._person = recording.the_person(person)
        if recording.asked.show_answer != show_answer:
            told = "were" if recording.asked.show_answer else "were not"
            raise BadConfig(
                f"Agent 'human': the people of '{replies}' {told} shown the logged action after each prediction; say "
                f"show_answer={str(recording.asked.show_answer).lower()}, so that the row says so too"
            )
        kept = recording.replies_of(self._person)
        self._answers: dict[str, list[str]] = {}
        for step in recording.steps:
            answers = self._answers.setdefault(step.observation, [])
            if (reply := kept.reply(step.key)) is not None:
                answers.append(reply)
        self._random = random.Random()

    def reset(self, *, seed: int | None = None) -> None:
        """Seeds the draw among several answers to the very same page, history, persona and goal."""
        self._random = random.Random(seed)

    def act(self, observation: Observation) -> str:
        """The person's reply.

        Raises:
            AgentFailed: There is none.
        """
        answers = self._answers.get(observation_digest(observation))
        if answers is None:
            raise AgentFailed(
                f"not asked: {self._person} was shown no such page, history, persona and goal (another store, context "
                "or session)"
            )
        if not answers:
            raise AgentFailed(f"not answered: {self._person} has not got to this step yet")
        return self._random.choice(answers)
