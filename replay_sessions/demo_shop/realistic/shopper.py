"""The realistic shop's shoppers: the utility of what a page shows, and from it how likely each action is.

Each action has a utility V, and an action's probability is exp(V) / Σ exp(V) over all that the page offers (multinomial
logit). Of an offer, with price p, budget b of the article, rating r and place k among the results (from 0):

    U = 2·(wanted words in its title) - 3·[another kind] + 0.4·[best seller] - 4·[out of stock]
        - price·(p/b + 3·max(0, p/b - 1)) + quality·(r - 4)                      r counts only where it is shown
    V(look at it) = 1 + U - haste·k - 1.5·[looked at before]
    V(buy it)     = 1 + U,   in the cart: 1.5 - 3·price·(shipping/b) - 2·price·max(0, total/b - 1)
    V(leave)      = -1.8 + 0.15·(steps so far), more for hasty shoppers

        thrifty  fair  generous           careful  easy-going            patient  hasty
price   2.4      1.4   0.5       quality  2.0      0.5           haste   0.08     0.25

All of it follows from the observation, so the best achievable accuracy is known.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from replay_sessions.demo_shop.catalogue import SIZES, department_of
from replay_sessions.demo_shop.realistic.goals import Need, Traits, need_of, traits_of
from replay_sessions.demo_shop.realistic.read import Offer, View, view_of
from replay_sessions.demo_shop.realistic.search import misspelt
from replay_sessions.demo_shop.realistic.shop import SEARCH_INPUT
from replay_sessions.schema import Action, Click, Terminate, TypeAndSubmit

__all__ = ["MAX_STEPS", "action_probabilities", "is_realistic", "rationale_for"]

MAX_STEPS = 20  # whoever has taken this many actions gives up
PRICE = {"thrifty": 2.4, "fair": 1.4, "generous": 0.5}
QUALITY = {"careful": 2.0, "easy-going": 0.5}
HASTE = {"patient": 0.08, "hasty": 0.25}

Option = tuple[Action, float]


def is_realistic(observation: Mapping[str, Any]) -> bool:
    """Whether an observation is of this shop and not of the small one."""
    return str(observation["goal"]).startswith("Find ")


def action_probabilities(observation: Mapping[str, Any]) -> dict[Action, float]:
    """The shopper's policy: every possible next action and its probability, likeliest first; they sum to 1.

    Args:
        observation: As the env gives it. A persona that is missing or from another shop is averaged over all kinds.

    Raises:
        ValueError: The goal or page is not one of this shop.
    """
    view, need = view_of(observation), need_of(observation["goal"])
    people = traits_of(observation["persona"])
    probabilities: dict[Action, float] = {}
    for traits in people:
        options = list(_Mind(traits, need, view).options())
        total = sum(math.exp(value) for _, value in options)
        for action, value in options:
            probabilities[action] = probabilities.get(action, 0.0) + math.exp(value) / total / len(people)
    return dict(sorted(probabilities.items(), key=lambda item: -item[1]))


def rationale_for(observation: Mapping[str, Any], action: Action) -> str:
    """The one first-person sentence that the shopper would give for `action`."""
    view, need = view_of(observation), need_of(observation["goal"])
    if isinstance(action, Terminate):
        return "This is more than I want to pay." if view.total_cents > need.budget_cents else "I have seen enough."
    if isinstance(action, TypeAndSubmit):
        return f"I look for {action.text}."
    offer = next((offer for offer in view.offers if offer.name == action.name), None)
    if offer is not None:
        return f"{offer.title} for ${offer.price_cents // 100} may be it."
    return next((reason for start, reason in REASONS.items() if action.name.startswith(start)), "I look around.")


REASONS = {
    "refinements.price": "I do not want to see what is too dear.",
    "refinements.customer_reviews": "Only what others liked.",
    "refinements.brand": "I want this brand.",
    "pagination.": "There may be something better.",
    "product.add_to_cart": "I put it into my cart.",
    "product.buy_now": "I take it.",
    "product.reviews": "I want to know what others say.",
    "product.options": "I need my size.",
    "product.back": "I compare with the others.",
    "reviews.back": "That is enough about it.",
    "cart.checkout": "I am ready to pay.",
    "cart.continue": "I need something else as well.",
    "cart.": "I do not want it after all.",
    "checkout.place_order": "I order it.",
    "nav_bar.cart": "I have all I need.",
    "nav_bar.": "I go straight to the kind I need.",
    "departments.": "I start with the right department.",
    "categories.": "This is the kind I need.",
}


@dataclass(frozen=True)
class _Mind:
    """One kind of shopper before one page."""

    traits: Traits
    need: Need
    view: View

    def options(self) -> Iterator[Option]:
        """Every action that is thought of, with its utility."""
        if len(self.view.past) >= MAX_STEPS:
            yield Terminate(), 0.0
            return
        pages = {
            "home": self._on_home,
            "department": self._on_department,
            "results": self._on_results,
            "product": self._on_product,
            "reviews": self._on_reviews,
            "cart": self._on_cart,
            "checkout": self._on_checkout,
        }
        if self.view.kind not in pages:
            raise ValueError(f"the realistic demo shop has no {self.view.kind!r} page")
        yield from pages[self.view.kind]()

    @property
    def price(self) -> float:
        return PRICE[self.traits.price]

    @property
    def quality(self) -> float:
        return QUALITY[self.traits.quality]

    @property
    def is_hasty(self) -> bool:
        return self.traits.patience == "hasty"

    @property
    def unmet(self) -> tuple[str, ...]:
        """The kinds that are not in the cart yet."""
        opened, carried = "", []
        for name in self.view.past:
            if name.endswith(".view_product"):
                opened = name.split(".")[-2]
            elif name == "product.add_to_cart":
                carried.append(opened)
            elif name.startswith("cart.") and name.endswith(".remove"):
                carried = [slug for slug in carried if slug != name.split(".")[1]]
        nouns = {slug.rsplit("_", 1)[-1] for slug in carried}
        return tuple(noun for noun in self.need.nouns if noun not in nouns)

    @property
    def noun(self) -> str:
        return (*self.unmet, self.need.nouns[-1])[0]

    @property
    def budget(self) -> float:
        """Of one article, in cents."""
        return self.need.budget_cents / len(self.need.nouns)

    def leave(self, value: float = -1.8) -> Option:
        tired = 0.15 * len(self.view.past) * (1.6 if self.is_hasty else 1.0)
        return Terminate(), value + tired

    def utility(self, offer: Offer) -> float:
        words = offer.title.lower().split()
        ratio = offer.price_cents / self.budget
        found = 2.0 * sum(word in words for word in self.need.wanted) - 3.0 * (self.noun not in words)
        found += 0.4 * offer.badge - 4.0 * (not offer.in_stock)
        found -= self.price * (ratio + 3 * max(0.0, ratio - 1))
        return found if offer.rating is None else found + self.quality * (offer.rating - 4)

    def _queries(self) -> Iterator[Option]:
        """What may be typed, better queries more often; hasty shoppers misspell."""
        full = " ".join((*self.need.wanted, self.noun))
        tried = set(self.view.typed)
        for text, value in ((full, 1.8), (self.noun, 0.6), (misspelt(self.noun), 0.2 if self.is_hasty else -1.8)):
            if text not in tried and not (text == self.noun and text == full and value < 1):
                yield TypeAndSubmit(name=SEARCH_INPUT, text=text), value

    def _on_home(self) -> Iterator[Option]:
        yield from self._queries()
        yield Click(name=f"nav_bar.{self.noun}"), 0.6
        yield Click(name=f"departments.{department_of(self.noun)}"), 0.3
        if self.view.in_cart and not self.unmet:
            yield Click(name="nav_bar.cart"), 3.0
        yield self.leave(-4.0)

    def _on_department(self) -> Iterator[Option]:
        yield Click(name=f"categories.{self.noun}"), 3.0
        for action, value in self._queries():
            yield action, value - 1.0
        yield self.leave(-3.0)

    def _on_results(self) -> Iterator[Option]:
        view = self.view
        for place, offer in enumerate(view.offers):
            seen = 1.5 * (offer.name in view.past)
            yield Click(name=offer.name), 1.0 + self.utility(offer) - HASTE[self.traits.patience] * place - seen
        if "pagination.next" in view.names:
            yield Click(name="pagination.next"), -1.2 if self.is_hasty else -0.2
        yield from self._refinements()
        for action, value in self._queries():
            yield action, value - (2.0 if view.offers else -1.0)
        if view.in_cart and not self.unmet:
            yield Click(name="nav_bar.cart"), 3.0
        yield self.leave()

    def _refinements(self) -> Iterator[Option]:
        unset = [name for name, is_set in self.view.refinements.items() if not is_set]
        affordable = [name for name in unset if 100 * _band(name) <= 1.2 * self.budget and "price" in name]
        if affordable:
            yield (
                Click(name=max(affordable, key=_band)),
                {"thrifty": 0.8, "fair": -0.2, "generous": -2.0}[self.traits.price],
            )
        if "refinements.customer_reviews.4_stars_up" in unset:
            yield Click(name="refinements.customer_reviews.4_stars_up"), 0.6 if self.quality > 1 else -2.0
        for word in self.need.wanted[:1]:
            if (name := f"refinements.brand.{word}") in unset:
                yield Click(name=name), 1.2

    def _on_product(self) -> Iterator[Option]:
        offer, view = self.view.opened, self.view
        assert offer is not None
        opened = max((place for place, name in enumerate(view.past) if name.endswith(".view_product")), default=0)
        since = view.past[opened + 1 :]
        if offer.in_stock:
            value = 1.0 + self.utility(offer)
            if len(self.unmet) < 2:
                yield (
                    Click(name="product.buy_now"),
                    value + {"thrifty": -1.0, "fair": 0.0, "generous": 1.0}[self.traits.price],
                )
            yield Click(name="product.add_to_cart"), value
            if not any(name.startswith("product.options.size") for name in since):
                size = SIZES[len(self.need.text()) % len(SIZES)]
                yield Click(name=f"product.options.size.{size}"), -1.5 if self.is_hasty else 0.0
        if "product.reviews" in view.names and "product.reviews" not in since:
            yield Click(name="product.reviews"), 1.0 if self.quality > 1 else -1.5
        yield Click(name="product.back_to_results"), 0.3
        yield self.leave()

    def _on_reviews(self) -> Iterator[Option]:
        offer = self.view.opened
        put_off = offer is not None and offer.rating is not None and offer.rating < 4
        yield Click(name="reviews.back_to_product"), 2.0
        yield Click(name="reviews.next"), 0.0
        yield self.leave(-1.0 if put_off else -3.0)

    def _on_cart(self) -> Iterator[Option]:
        budget = self.need.budget_cents
        over = max(0.0, self.view.total_cents / budget - 1)
        if self.unmet:
            yield Click(name="cart.continue_shopping"), 2.0
        if "cart.checkout" in self.view.names:
            shipping = self.view.shipping_cents / budget
            yield Click(name="cart.checkout"), 1.5 - 3 * self.price * shipping - 2 * self.price * over
        for name in sorted(self.view.names):
            if name.endswith(".remove"):
                yield Click(name=name), -2.0 + self.price * min(over, 1.0)
        yield self.leave(-1.2)

    def _on_checkout(self) -> Iterator[Option]:
        yield Click(name="checkout.place_order"), 1.8
        yield Click(name="checkout.back_to_cart"), -1.0
        yield self.leave(-1.4)


def _band(name: str) -> int:
    """The dollars of a refinement by price."""
    tail = name.rsplit("_", 1)[-1]
    return int(tail) if tail.isdigit() else 0
