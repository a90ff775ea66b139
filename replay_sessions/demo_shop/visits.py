"""One visit of a shopper to a demo shop: who comes, for what, and to which shop.

A population is the seed of its shoppers; visit n of it is always of the same shopper with the same need. In the small
shop one stream of random numbers serves the shopper and the shop. In the realistic one the shop draws nothing, and each
choice has a stream of its own, so that the same visit to two variants of the shop differs only by what they show.
"""

from collections.abc import Mapping
from random import Random
from typing import Any, Literal, Protocol

from replay_sessions.demo_shop import realistic
from replay_sessions.demo_shop.pages import PageSize
from replay_sessions.demo_shop.shop import DemoShop
from replay_sessions.demo_shop.shopper import action_probabilities as probabilities_in_small_shop
from replay_sessions.demo_shop.shopper import draw_goal, draw_shopper
from replay_sessions.demo_shop.shopper import rationale_for as rationale_in_small_shop
from replay_sessions.errors import BadConfig
from replay_sessions.schema import Action, Persona

__all__ = ["SESSIONS_PER_USER", "Shop", "ShopVisit", "action_probabilities", "draw_persona", "rationale_for"]

SESSIONS_PER_USER = 4


class Shop(Protocol):
    """What a visit needs of a shop."""

    page: str
    outcome: Literal["purchase", "terminate"] | None
    revenue_cents: int | None

    def respond(self, action: Action) -> None: ...


class ShopVisit:
    """Visit `number` of a population.

    Args:
        page_size: `small`: the small shop; `compact`: the realistic shop; `realistic`: the same with all that surrounds
            the goods of a large one, 100 kB a page, which changes no choice.

    Attributes:
        shop: As the visitor finds it.

    Raises:
        BadConfig: A variant was asked of the small shop.
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
            goal = draw_goal(random)
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
    """One of the kinds of shopper that come to this shop, all equally likely."""
    return draw_shopper(random).persona() if page_size == "small" else realistic.draw_persona(random)


def action_probabilities(observation: Mapping[str, Any]) -> dict[Action, float]:
    """The shopper's policy: every possible next action and its probability, likeliest first; they sum to 1.

    Args:
        observation: As the env gives it; `page`, `history`, `persona` and `goal` are read. A persona that is missing
            or from another shop is averaged over all kinds of shopper.

    Raises:
        ValueError: The goal or page is not one of a demo shop.
    """
    if realistic.is_realistic(observation):
        return realistic.action_probabilities(observation)
    return probabilities_in_small_shop(observation)


def rationale_for(observation: Mapping[str, Any], action: Action) -> str:
    """The one first-person sentence that the shopper would give for `action`."""
    told = realistic.rationale_for if realistic.is_realistic(observation) else rationale_in_small_shop
    return told(observation, action)
