"""`random`: an action type that the page allows, then an element, each drawn uniformly. The floor of every table."""

import random

from replay_sessions.elements import find_elements
from replay_sessions.schema import Action, Click, Terminate, TypeAndSubmit
from shop_env.given_words import given_words
from shop_env.observation import Observation
from shop_env.replies import format_reply

__all__ = ["RandomAgent"]

LONGEST_PHRASE = 4


class RandomAgent:
    """Draws a type among those possible on the page, then an element; types a phrase of the goal or the history."""

    def __init__(self) -> None:
        self._random = random.Random()

    def reset(self, *, seed: int | None = None) -> None:
        self._random = random.Random(seed)

    def act(self, observation: Observation) -> str:
        return format_reply("I try something.", self._draw(observation))

    def _draw(self, observation: Observation) -> Action:
        elements = find_elements(observation["page"])
        clickable = [element.name for element in elements if element.accepts == "click"]
        typable = [element.name for element in elements if element.accepts == "type"]
        types = ["click"] * bool(clickable) + ["type_and_submit"] * bool(typable) + ["terminate"]
        match self._random.choice(types):
            case "click":
                return Click(name=self._random.choice(clickable))
            case "type_and_submit":
                return TypeAndSubmit(name=self._random.choice(typable), text=self._phrase(observation))
            case _:
                return Terminate()

    def _phrase(self, observation: Observation) -> str:
        words = given_words(observation) or ["something"]
        start = self._random.randrange(len(words))
        return " ".join(words[start : start + self._random.randint(1, LONGEST_PHRASE)])
