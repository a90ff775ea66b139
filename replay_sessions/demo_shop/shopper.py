"""The demo shop's shoppers: who they are, what they want, and how likely each next action is.

A shopper's policy is a function of what an observation shows (persona, goal, page, history) and of nothing else, so
the best achievable accuracy is known: `action_probabilities` is the policy itself, not a copy. Traits:

    price    thrifty leaves when the price is high and pays through the cart; easy buys at once
    care     quick gives up when nothing fits; picky turns the page and chooses a size first; reviewer searches anew
             and reads reviews first
    search   exact types brand, style and noun; brief starts from a department and refines by brand

The likeliest action has a probability of 0.64 to 0.84 and mostly follows from words the shopper has already given.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import product as combinations
from random import Random
from typing import Any

import msgspec

from replay_sessions.demo_shop.catalogue import BRANDS, NOUNS, SIZES, STYLES, Product, department_of
from replay_sessions.schema import Action, Click, Persona, Terminate, TypeAndSubmit

__all__ = ["MAX_STEPS", "Goal", "Shopper", "action_probabilities", "draw_goal", "draw_shopper", "rationale_for"]

MAX_STEPS = 10  # whoever has taken this many actions gives up

PRICE = {"thrifty": "watches the price", "easy": "does not mind the price"}
CARE = {"quick": "decides quickly", "picky": "is picky about details", "reviewer": "reads reviews first"}
SEARCH = {"exact": "searches with exact words", "brief": "browses by brand"}

Options = list[tuple[Action, float]]


@dataclass(frozen=True)
class Shopper:
    """A kind of person; `persona` tells a model about it."""

    price: str
    care: str
    search: str

    def persona(self) -> Persona:
        text = f"This shopper {PRICE[self.price]}, {CARE[self.care]} and {SEARCH[self.search]}."
        return Persona(text=text, traits={"price": self.price, "care": self.care, "search": self.search})


EVERYONE = tuple(Shopper(*traits) for traits in combinations(PRICE, CARE, SEARCH))


@dataclass(frozen=True)
class Goal:
    """What a shopper wants in one session."""

    product: Product
    size: str

    def text(self) -> str:
        return f"Buy a {self.product.title}, size {self.size}."


def draw_shopper(random: Random) -> Shopper:
    """One of the twelve kinds of shopper, all equally likely."""
    return random.choice(EVERYONE)


def draw_goal(random: Random) -> Goal:
    """One product and size, all equally likely."""
    product = Product(random.choice(BRANDS), random.choice(STYLES), random.choice(NOUNS))
    return Goal(product, random.choice(SIZES))


def action_probabilities(observation: Mapping[str, Any]) -> dict[Action, float]:
    """The shopper's policy: every possible next action and its probability, likeliest first; they sum to 1.

    Args:
        observation: As the env gives it; `page`, `history`, `persona` and `goal` are read. A persona that is missing
            or from another shop is averaged over all kinds of shopper.

    Raises:
        ValueError: The goal or page is not one of the demo shop.
    """
    view = _View.of(observation)
    people = [person for person in EVERYONE if person.persona().text == observation["persona"]] or EVERYONE
    probabilities: dict[Action, float] = {}
    for person in people:
        options = _options(person, view)
        total = sum(weight for _, weight in options)
        for action, weight in options:
            probabilities[action] = probabilities.get(action, 0.0) + weight / total / len(people)
    return dict(sorted(probabilities.items(), key=lambda item: -item[1]))


def rationale_for(observation: Mapping[str, Any], action: Action) -> str:
    """The one first-person sentence that the shopper would give for `action`."""
    view = _View.of(observation)
    noun = view.goal.product.noun
    match action:
        case Terminate():
            return LEAVING.get(view.note, "I have looked long enough.")
        case TypeAndSubmit():
            return f"I search for the {noun} I want."
        case Click(name=name) if name == view.target:
            return f"This {noun} is just what I want."
        case Click(name=name):
            return next((reason for start, reason in REASONS.items() if name.startswith(start)), "I look around.")


LEAVING = {
    "no match": "Nothing here is what I want.",
    "high price": "This costs more than I want to pay.",
    "mostly bad reviews": "The reviews put me off.",
}
REASONS = {
    "departments.": "I start with the right department.",
    "refinements.brand.": "I only want to see my brand.",
    "refinements.style.": "I only want to see my style.",
    "pagination.next": "Maybe the next page has it.",
    "search_results.": "This one looks interesting too.",
    "product.options.size.": "I need my size.",
    "product.reviews": "I want to know what others say.",
    "product.add_to_cart": "I put it into my cart.",
    "product.buy_now": "I buy it right away.",
    "product.back_to_results": "I want to see the other results.",
    "reviews.next": "I read some more reviews.",
    "reviews.back_to_product": "That is enough about it.",
    "cart.checkout": "I am ready to pay.",
    "cart.remove": "I do not want it after all.",
}


@dataclass(frozen=True)
class _View:
    """What the policy sees in an observation."""

    kind: str
    note: str
    goal: Goal
    others: tuple[str, ...]
    heading: str
    size_chosen: bool
    reviews_read: bool
    steps: int

    @property
    def target(self) -> str:
        return f"search_results.{self.goal.product.slug}.view_product"

    @staticmethod
    def of(observation: Mapping[str, Any]) -> "_View":
        page, goal = observation["page"], _read_goal(observation["goal"])
        title, heading, note = (re.search(f"<{tag}>(.*?)</{tag}>", page) for tag in ("title", "h1", "p"))
        if title is None:
            raise ValueError("this page is not one of the demo shop: it has no <title>")
        kind = title[1]
        said = note if kind in ("product", "cart") else heading
        target = f"search_results.{goal.product.slug}.view_product"
        names = re.findall(r'name="(search_results\.[^"]*)"', page)
        past = [msgspec.json.decode(past_step["action"]).get("name", "") for past_step in observation["history"]]
        opened = max((i for i, name in enumerate(past) if name.endswith(".view_product")), default=0)
        return _View(
            kind=kind,
            note=said[1] if said else "",
            goal=goal,
            others=tuple(name for name in names if name != target),
            heading=heading[1] if heading else "",
            size_chosen='aria-checked="true"' in page,
            reviews_read="product.reviews" in past[opened:],
            steps=len(past),
        )


def _read_goal(text: str) -> Goal:
    found = re.fullmatch(r"Buy a (\w+) (\w+) (\w+), size (\w+)\.", text)
    if found is None:
        raise ValueError(f"the goal {text!r} is not one of the demo shop: 'Buy a BRAND STYLE NOUN, size SIZE.'")
    return Goal(Product(found[1], found[2], found[3]), found[4])


def _options(person: Shopper, view: _View) -> Options:
    if view.steps >= MAX_STEPS:
        return [(Terminate(), 1.0)]
    if view.kind not in PAGES:
        raise ValueError(f"the demo shop has no {view.kind!r} page")
    return PAGES[view.kind](person, view)


def _type(*words: str) -> TypeAndSubmit:
    return TypeAndSubmit(name="search_input", text=" ".join(words))


def _click(name: str) -> Click:
    return Click(name=name)


def _on_home(person: Shopper, view: _View) -> Options:
    product = view.goal.product
    department = _click(f"departments.{department_of(product.noun)}")
    if person.search == "exact":
        return [(_type(product.noun), 0.8), (department, 0.2)]
    return [(department, 0.7), (_type(product.noun), 0.3)]


def _on_results(person: Shopper, view: _View) -> Options:
    product, following = view.goal.product, _click("pagination.next")
    brand, style = _click(f"refinements.brand.{product.brand}"), _click(f"refinements.style.{product.style}")
    full, short = _type(product.brand, product.style, product.noun), _type(product.brand, product.noun)
    if view.note == "exact match":
        likely = {"quick": 0.84, "picky": 0.70, "reviewer": 0.76}[person.care]
        rest = (1 - likely) / 3
        return [(_click(view.target), likely), (following, rest), (style, rest), (_click(view.others[0]), rest)]
    if view.note == "many items" and person.search == "exact":
        return [(full, 0.70), (brand, 0.12), (short, 0.10), (following, 0.08)]
    if view.note == "many items":
        return [(brand, 0.70), (short, 0.12), (style, 0.10), (following, 0.08)]
    by_care: dict[str, Options] = {
        "quick": [(Terminate(), 0.66), (following, 0.20), (short, 0.14)],
        "picky": [(following, 0.66), (Terminate(), 0.18), (style, 0.16)],
        "reviewer": [(_type(product.style, product.noun), 0.64), (following, 0.18), (Terminate(), 0.18)],
    }
    return by_care[person.care]


def _on_product(person: Shopper, view: _View) -> Options:
    back, buy, cart = (_click(f"product.{name}") for name in ("back_to_results", "buy_now", "add_to_cart"))
    reviews, size = _click("product.reviews"), _click(f"product.options.size.{view.goal.size}")
    if view.heading != view.goal.product.title:
        return [(back, 0.74), (Terminate(), 0.16), (buy, 0.10)]
    if view.note == "high price" and person.price == "thrifty":
        return [(Terminate(), 0.68), (back, 0.20), (reviews, 0.12)]
    if person.care == "picky" and not view.size_chosen:
        return [(size, 0.76), (cart, 0.14), (reviews, 0.10)]
    if person.care == "reviewer" and not view.reviews_read:
        return [(reviews, 0.76), (cart, 0.14), (size, 0.10)]
    first, second = (buy, cart) if person.price == "easy" else (cart, buy)
    return [(first, 0.72), (second, 0.18), (back, 0.10)]


def _on_reviews(person: Shopper, view: _View) -> Options:
    back, more = _click("reviews.back_to_product"), _click("reviews.next")
    if view.note == "mostly bad reviews":
        return [(Terminate(), 0.66), (back, 0.22), (more, 0.12)]
    return [(back, 0.80), (more, 0.12), (Terminate(), 0.08)]


def _on_cart(person: Shopper, view: _View) -> Options:
    return [(_click("cart.checkout"), 0.80), (Terminate(), 0.12), (_click("cart.remove"), 0.08)]


PAGES: dict[str, Callable[[Shopper, _View], Options]] = {
    "home": _on_home,
    "results": _on_results,
    "product": _on_product,
    "reviews": _on_reviews,
    "cart": _on_cart,
}
