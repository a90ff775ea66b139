"""One visit of a shopper to a demo shop: who comes, for what, and to which shop; and the sessions of many visits.

A population is the seed of its shoppers; visit n of it is always of the same shopper with the same need. In the small
shop one stream of random numbers serves the shopper and the shop. In the realistic one the shop draws nothing, and each
choice has a stream of its own, so that the same visit to two variants of the shop differs only by what they show.
"""

from collections.abc import Iterator, Mapping
from random import Random
from typing import Any

import msgspec

from replay_sessions.demo_shop import realistic, shopper
from replay_sessions.demo_shop.pages import PageSize
from replay_sessions.demo_shop.shop import DemoShop, Shop
from replay_sessions.foundation.errors import BadConfig
from replay_sessions.schema import Action, Persona, Session, Step, reply_action

SESSIONS_PER_USER = 4
SOURCE = "demo_shop"


class ShopVisit:
    """Visit `number` of a population.

    Args:
        page_size: `small`: the small shop; `compact`: the realistic shop; `realistic`: the same with all that surrounds
            the goods of a large one, 100 kB a page, which changes no choice.

    Attributes:
        shop: As the visitor finds it.

    Raises:
        BadConfig: A variant of the small shop, which has none.
    """

    def __init__(
        self, population: int, number: int, page_size: PageSize, variant: realistic.ShopVariant = realistic.CONTROL
    ) -> None:
        user = number // SESSIONS_PER_USER
        self.user_id = f"shopper-{population}-{user:05}"
        self.persona = draw_persona(Random(f"{population} user {user}"), page_size)
        self._stream = f"{population} session {number}"
        self._random = random = Random(self._stream)
        self._choices = 0
        self.shop: Shop
        if page_size == "small":
            if variant != realistic.CONTROL:
                raise BadConfig("the small demo shop has no variants; ask for page_size 'compact' or 'realistic'.")
            goal = shopper.draw_goal(random)
            self.goal, self.shop = goal.text(), DemoShop(random, goal.product)
        else:
            self.goal = realistic.draw_need(random).text()
            self.shop = realistic.RealisticShop(variant, is_surrounded=page_size == "realistic")
        self._page_size = page_size

    def choose(self, probabilities: Mapping[Action, float]) -> Action:
        """The shopper's next action, drawn from these."""
        random = self._random
        if self._page_size != "small":
            random = Random(f"{self._stream} choice {self._choices}")
        self._choices += 1
        return random.choices(list(probabilities), list(probabilities.values()))[0]


def draw_persona(random: Random, page_size: PageSize) -> Persona:
    """One of the twelve kinds of shopper that come to this shop, all equally likely."""
    return random.choice(shopper.PERSONAS if page_size == "small" else realistic.PERSONAS)


def generate_sessions(
    count: int, seed: int, page_size: PageSize = "small", variant: realistic.ShopVariant = realistic.CONTROL
) -> Iterator[Session]:
    """`count` sessions of a demo shop's shoppers, four to a user; session i depends on nothing but i and these."""
    for index in range(count):
        visit = ShopVisit(seed, index, page_size, variant)
        history: list[dict[str, Any]] = []
        steps: list[Step] = []
        while visit.shop.outcome is None:
            page = visit.shop.page
            observation = {"page": page, "history": history, "persona": visit.persona.text, "goal": visit.goal}
            action = visit.choose(action_probabilities(observation))
            steps.append(Step(page=page, action=action, rationale=rationale_for(observation, action)))
            history.append({"action": msgspec.json.encode(reply_action(action))})
            visit.shop.respond(action)
        yield Session(
            session_id=f"demo-{seed}-{index:06}",
            user_id=visit.user_id,
            steps=tuple(steps),
            source=SOURCE,
            persona=visit.persona,
            goal=visit.goal,
        )


def action_probabilities(observation: Mapping[str, Any]) -> dict[Action, float]:
    """The shopper's policy: every possible next action and its probability, likeliest first; they sum to 1.

    Args:
        observation: As the env gives it; `page`, `history`, `persona` and `goal` are read. A persona that is missing
            or from another shop is averaged over all kinds of shopper.

    Raises:
        ValueError: The goal or page is not one of a demo shop.
    """
    if _is_realistic(observation):
        options_of, personas = realistic.action_options(observation), realistic.PERSONAS
    else:
        options_of, personas = shopper.action_options(observation), shopper.PERSONAS
    people = [persona for persona in personas if persona.text == observation["persona"]] or personas
    probabilities: dict[Action, float] = {}
    for persona in people:
        weights = options_of(persona.traits)
        total = sum(weight for _, weight in weights)
        for action, weight in weights:
            probabilities[action] = probabilities.get(action, 0.0) + weight / total / len(people)
    return dict(sorted(probabilities.items(), key=lambda item: -item[1]))


def rationale_for(observation: Mapping[str, Any], action: Action) -> str:
    """The one first-person sentence that the shopper would give for `action`."""
    explain = realistic.rationale_for if _is_realistic(observation) else shopper.rationale_for
    return explain(observation, action)


def _is_realistic(observation: Mapping[str, Any]) -> bool:
    return str(observation["goal"]).startswith("Find ")
