"""Baselines with fixed rules: `random`, `majority` (which counts actions), `repeat_last`, `copy_match` and `oracle`.

`oracle` is the demo shop's own policy; shop_env/evaluation/ceiling.py computes its expected score.
"""

import random
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import assert_never

import msgspec

from agents.adapted import SeededAgent
from replay_sessions import demo_shop
from replay_sessions.elements import find_elements
from replay_sessions.foundation.errors import AgentFailed, BadConfig
from replay_sessions.schema import (
    ACTION_TYPES,
    Action,
    Click,
    Scroll,
    Terminate,
    TypeAndSubmit,
    reply_action,
    written_action,
)
from shop_env.choices.reader import match_words
from shop_env.evaluation.ceiling import sharpened
from shop_env.observation import Observation
from shop_env.replies import format_reply
from shop_env.shopper_words import content_words, past_actions, quoted_parts, shopper_words
from shop_env.train_view import TrainView

MAX_PHRASE_WORDS = 4


class RandomAgent(SeededAgent):
    """Draws a type of action that the page allows, then an element; types a phrase of the goal or the history.

    Args:
        store: The store, which says whether scrolling is an action.
    """

    def __init__(self, store: TrainView | str | None = None) -> None:
        self._scrolls = store is not None and TrainView.of(store).scrolls

    def act(self, observation: Observation) -> str:
        """Returns a reply with a random action."""
        draw = random.Random(self._seed)
        names: dict[str, list[str]] = {"click": [], "type": []}
        for element in find_elements(observation["page"]):
            names[element.accepts].append(element.name)
        possible = {"click": bool(names["click"]), "type_and_submit": bool(names["type"]), "terminate": True}
        possible["scroll"] = self._scrolls
        action_type = draw.choice([name for name in ACTION_TYPES if possible[name]])
        action: Action
        match action_type:
            case "click":
                action = Click(name=draw.choice(names["click"]))
            case "type_and_submit":
                name, words = draw.choice(names["type"]), shopper_words(observation) or ["something"]
                start = draw.randrange(len(words))
                text = " ".join(words[start : start + draw.randint(1, MAX_PHRASE_WORDS)])
                action = TypeAndSubmit(name=name, text=text)
            case "terminate":
                action = Terminate()
            case "scroll":
                action = Scroll()
            case _:
                assert_never(action_type)
        return format_reply("I try something.", action)


class MajorityAgent(SeededAgent):
    """Repeats the most frequent action of the train split on every page; ties go to the JSON that sorts first.

    Args:
        store: The store to learn from: the actions of its train split.
        first_action: Count the first step of each session too.
        inferred: Count inferred actions too.
    """

    def __init__(self, store: TrainView | str, first_action: bool = False, inferred: bool = False) -> None:
        counts = Counter(
            msgspec.json.encode(written_action(session.steps[index].action))
            for session, learnt in TrainView.of(store).learnt(first_action=first_action, inferred=inferred)
            for index in learnt
        )
        text = min(counts, key=lambda text: (-counts[text], text))
        self._reply = format_reply("This is what shoppers do most often.", msgspec.json.decode(text))

    def act(self, observation: Observation) -> str:
        """Returns the same reply to every page."""
        return self._reply


class RepeatLastAgent(SeededAgent):
    """Repeats the last action of the history, or terminates if the history is empty; shows how repetitive a log is."""

    def act(self, observation: Observation) -> str:
        """Returns a reply with the last action of the history."""
        past = past_actions(observation["history"])
        return format_reply("I do that again.", past[-1] if past else reply_action(Terminate()))


class CopyMatchAgent(SeededAgent):
    """Types the goal into an unused input; otherwise clicks the best match among the elements that were not clicked.

    The shopper's words (goal, typed texts, rationales) reappear on the elements that are clicked next, in logs and in
    the demo shop. This agent measures how far copying them goes. `choices.match_words` computes the match; ties go to
    the element with fewer words, then to the earlier one. The agent terminates if no element matches.
    """

    def act(self, observation: Observation) -> str:
        """Returns a reply with the best-matching action."""
        action = self._choose(observation)
        is_match = not isinstance(action, Terminate)
        return format_reply("This fits what I want." if is_match else "I see nothing more of what I want.", action)

    def _choose(self, observation: Observation) -> Action:
        goal, past = observation["goal"], past_actions(observation["history"])
        phrases = quoted_parts(goal) or [" ".join(content_words(goal))]
        typed, clicked = (
            {action.get("name") for action in past if action.get("type") == action_type}
            for action_type in ("type_and_submit", "click")
        )
        elements = find_elements(observation["page"])
        inputs = [element for element in elements if element.accepts == "type" and element.name not in typed]
        if inputs and phrases[0]:
            return TypeAndSubmit(name=inputs[0].name, text=phrases[len(typed) % len(phrases)])
        clickable = [element for element in elements if element.accepts == "click" and element.name not in clicked]
        matches = match_words(clickable, shopper_words(observation))
        scores = [(match, -len(words)) for match, words in matches]
        best = max(range(len(scores)), key=scores.__getitem__, default=None)
        return Terminate() if best is None or scores[best][0] <= 0 else Click(name=clickable[best].name)


class OracleAgent(SeededAgent):
    """Follows the policy of the demo shop's simulated shoppers.

    Args:
        temperature: 0 chooses the likeliest action; T > 0 samples from p^(1/T), and T = 1 samples as the shoppers do.
        store: The store that it will be evaluated on, which must come from the demo shop; it is not read.
        utility: The utility by which the shoppers of the realistic shop value offers, as in `shop-r1 ab --utility`.
    """

    def __init__(
        self, temperature: float = 0.0, store: TrainView | None = None, utility: demo_shop.UtilityName = "own"
    ) -> None:
        if temperature < 0:
            raise BadConfig(f"Agent 'oracle': temperature {temperature} is below 0")
        if store is not None and store.source != demo_shop.SOURCE:
            raise BadConfig(
                f"Agent 'oracle' knows the shoppers of the demo shop only, and store '{store.name}' comes from "
                f"'{store.source}': leave it out of --agents"
            )
        self._temperature, self._utility = temperature, utility

    def act(self, observation: Observation) -> str:
        """Returns a reply with the likeliest or a drawn action, and the demo shop's rationale for it."""
        shares = sharpened(_probabilities(observation, self._utility), self._temperature)
        (action,) = random.Random(self._seed).choices(list(shares), list(shares.values()))
        return format_reply(demo_shop.rationale_for(observation["page"], action), action)

    def probabilities(
        self, observations: Sequence[Observation], *, seeds: Sequence[int | None] = ()
    ) -> list[Mapping[Action, float] | Exception]:
        """Returns the shoppers' probabilities of each page's actions, which ignore the temperature and the seeds."""
        results: list[Mapping[Action, float] | Exception] = []
        for observation in observations:
            try:
                results.append(_probabilities(observation, self._utility))
            except AgentFailed as failure:
                results.append(failure)
        return results


def _probabilities(observation: Observation, utility: demo_shop.UtilityName) -> Mapping[Action, float]:
    try:
        return demo_shop.action_probabilities(observation, utility)
    except (ValueError, IndexError) as error:
        raise AgentFailed(f"the oracle answers pages of the demo shop only: {error}") from error
