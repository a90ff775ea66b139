"""`human`: answers as a person did to the same questions in `python -m agents.human`.

    observation ─► its digest ─► the steps of the recording with the same observation ─► the person's reply

An agent sees observations and not which step of which session it is at, so a reply is looked up by the observation.
Where several steps have the very same one and different replies, the step's seed draws one of them. A step that the
person was not asked about, or has not answered yet, is an AgentFailed: an error row, never a score of 0.
"""

import random
from pathlib import Path

from agents.human.recording import Recording, observation_digest
from replay_sessions.foundation.errors import AgentFailed, BadConfig
from shop_env.observation import Observation


class HumanAgent:
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
                f"not asked: {self._person} saw no such page, history, persona and goal (another store, context or "
                "session)"
            )
        if not answers:
            raise AgentFailed(f"not answered: {self._person} has not reached this step yet")
        return self._random.choice(answers)
