"""What a visitor of the realistic shop wants.

A need is one article, one of a kind within a budget, or two kinds within one budget. Budgets lie around the usual price
of the kind, so that some cannot be met.
"""

import re
from random import Random
from typing import NamedTuple

from replay_sessions.demo_shop.catalogue import NOUNS
from replay_sessions.demo_shop.realistic.articles import articles, kind_of, usual_price_cents


class Need(NamedTuple):
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


def draw_need(random: Random) -> Need:
    """Half want one of a kind, three tenths a brand and style, two tenths two kinds."""
    kind = random.random()
    if kind < 0.3:
        article = random.choice([*articles().values()])
        brand, style, noun = article.product
        return Need((noun,), (brand, style), _dollars(article.price_cents * random.uniform(0.9, 1.6)))
    nouns = tuple(random.sample(NOUNS, 1 if kind < 0.8 else 2))
    budget = sum(usual_price_cents(noun) for noun in nouns) * random.uniform(0.6, 1.6)
    return Need(nouns, (), _dollars(max(budget, min(article.price_cents for article in kind_of(nouns[0])))))


def need_of(goal: str) -> Need:
    """Parses the goal of a session.

    Raises:
        ValueError: It is no goal of this shop.
    """
    match = re.fullmatch(r"Find (?:a )?(.+) for at most \$(\d+)\.", goal)
    things = [thing.split() for thing in match[1].split(" and a ")] if match else []
    if not match or not all(thing and thing[-1] in NOUNS for thing in things):
        raise ValueError(f"the goal {goal!r} is not one of the realistic demo shop: 'Find a NOUN for at most $50.'")
    return Need(tuple(thing[-1] for thing in things), tuple(things[0][:-1]), 100 * int(match[2]))


def _dollars(cents: float) -> int:
    return 100 * max(5, round(cents / 100))
