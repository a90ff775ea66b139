"""Who comes to the realistic shop and for what: traits with their sentences, and needs with theirs.

A need is one article, one of a kind within a budget, or two kinds within one budget. Budgets lie around the usual price
of the kind, so that some cannot be met.
"""

import re
from dataclasses import dataclass
from random import Random
from typing import Literal

from replay_sessions.demo_shop.catalogue import NOUNS
from replay_sessions.demo_shop.realistic.articles import articles, kind_of, usual_price_cents
from replay_sessions.schema import Persona

__all__ = ["EVERYONE", "Need", "Traits", "draw_need", "draw_persona", "need_of", "traits_of"]

Price = Literal["thrifty", "fair", "generous"]
Quality = Literal["careful", "easy-going"]
Patience = Literal["patient", "hasty"]

PRICE: dict[Price, str] = {
    "thrifty": "looks at every cent",
    "fair": "pays a fair price",
    "generous": "rarely looks at prices",
}
QUALITY: dict[Quality, str] = {"careful": "trusts only good reviews", "easy-going": "does not read reviews"}
PATIENCE: dict[Patience, str] = {"patient": "takes time to compare", "hasty": "types in haste and soon loses interest"}


@dataclass(frozen=True)
class Traits:
    """A kind of shopper."""

    price: Price
    quality: Quality
    patience: Patience

    def persona(self) -> Persona:
        text = f"This shopper {PRICE[self.price]}, {QUALITY[self.quality]} and {PATIENCE[self.patience]}."
        return Persona(text=text, traits={"price": self.price, "quality": self.quality, "patience": self.patience})


EVERYONE = tuple(Traits(price, quality, patience) for price in PRICE for quality in QUALITY for patience in PATIENCE)
_BY_TEXT = {traits.persona().text: traits for traits in EVERYONE}


@dataclass(frozen=True)
class Need:
    """What a shopper wants in one visit.

    Attributes:
        nouns: The kinds of article, one or two.
        wanted: The words that the article's title must have besides; empty where any of the kind will do.
        budget_cents: For all of it together.
    """

    nouns: tuple[str, ...]
    wanted: tuple[str, ...]
    budget_cents: int

    def text(self) -> str:
        things = " and ".join(f"a {' '.join((*self.wanted, noun))}" for noun in self.nouns)
        return f"Find {things} for at most ${self.budget_cents // 100}."


def draw_persona(random: Random) -> Persona:
    """One of the twelve kinds of shopper, all equally likely."""
    return random.choice(EVERYONE).persona()


def draw_need(random: Random) -> Need:
    """Half want one of a kind, three tenths a brand and style, two tenths two kinds."""
    kind = random.random()
    if kind < 0.3:
        one = random.choice([*articles().values()])
        budget = one.price_cents * random.uniform(0.9, 1.6)
        return Need((one.product.noun,), (one.product.brand, one.product.style), _dollars(budget))
    nouns = tuple(random.sample(NOUNS, 1 if kind < 0.8 else 2))
    budget = sum(usual_price_cents(noun) for noun in nouns) * random.uniform(0.6, 1.6)
    return Need(nouns, (), _dollars(max(budget, min(one.price_cents for one in kind_of(nouns[0])))))


def traits_of(persona: str) -> tuple[Traits, ...]:
    """Whose sentence it is; of one that nobody's is, everybody."""
    return (_BY_TEXT[persona],) if persona in _BY_TEXT else EVERYONE


def need_of(goal: str) -> Need:
    """The need that a goal says.

    Raises:
        ValueError: It is no goal of this shop.
    """
    found = re.fullmatch(r"Find (.+) for at most \$(\d+)\.", goal)
    things = [thing.split() for thing in found[1].removeprefix("a ").split(" and a ")] if found else []
    if not things or any(thing[-1] not in NOUNS for thing in things):
        raise ValueError(f"the goal {goal!r} is not one of the realistic demo shop: 'Find a NOUN for at most $50.'")
    assert found is not None
    return Need(tuple(thing[-1] for thing in things), tuple(things[0][:-1]), 100 * int(found[2]))


def _dollars(cents: float) -> int:
    return 100 * max(5, round(cents / 100))
