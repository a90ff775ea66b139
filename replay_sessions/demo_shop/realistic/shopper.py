"""Simulates the realistic shop's shoppers: their needs, the utility of each action, and its probability.

Each action has a utility V. Its probability is exp(V) / Σ exp(V) over all actions that the shopper considers on the
page (multinomial logit). For an offer with price p, budget b, rating r and rank k among the results (from 0):

    U = 2·(wanted words in its title) - 3·[another kind] + 0.4·[best seller] - 4·[out of stock]
        - price·(p/b + 3·max(0, p/b - 1)) + quality·(r - 4)                      r counts only if it is shown
    V(look at it) = 1 + U - haste·k - 1.5·[looked at before]
    V(buy it)     = 1 + U,   in the cart: 1.5 - 3·price·(shipping/b) - 2·price·max(0, total/b - 1)
    V(terminate)  = -1.8 + 0.15·(steps so far), 1.6 times the second term for hasty shoppers; other pages: see the code

        thrifty  fair  generous           careful  easy-going            patient  hasty
price   2.4      1.4   0.5       quality  2.0      0.5           haste   0.08     0.25

Everything follows from the observation, so the best achievable accuracy is known. Other utilities: utilities.py.

A shopper needs a certain article, any article of a kind, or articles of two kinds, within a budget. Budgets lie around
the usual price of the kind, so some needs cannot be met.
"""

import math
import re
from collections.abc import Callable, Iterator, Mapping
from random import Random
from typing import Any, NamedTuple, assert_never

from replay_sessions.demo_shop.catalogue import DEPARTMENT_OF, NOUNS, PHRASES, SIZES, get_reason, personas
from replay_sessions.demo_shop.realistic.articles import articles, compute_usual_price_cents, kind_of, misspell
from replay_sessions.demo_shop.realistic.read import Offer, View, read_page, read_view
from replay_sessions.demo_shop.realistic.shop import SEARCH_INPUT
from replay_sessions.demo_shop.realistic.utilities import PRICE, QUALITY, Taste, UtilityName
from replay_sessions.schema import Action, Click, Scroll, Terminate, TypeAndSubmit


class Need(NamedTuple):
    """The aim of a shopper in one visit.

    Attributes:
        nouns: The kinds of article, one or two.
        wanted: Further words that the title must have; empty if any article of the kind will do.
        budget_cents: Budget for all articles together.
    """

    nouns: tuple[str, ...]
    wanted: tuple[str, ...]
    budget_cents: int

    def text(self) -> str:
        phrases = " and ".join(f"a {' '.join((*self.wanted, noun))}" for noun in self.nouns)
        return f"Find {phrases} for at most ${self.budget_cents // 100}."


def draw_need(random: Random) -> Need:
    """Draws a need: 50% any article of a kind, 30% a certain brand and style, 20% articles of two kinds."""
    kind = random.random()
    if kind < 0.3:
        article = random.choice([*articles().values()])
        brand, style, noun = article.product
        return Need((noun,), (brand, style), _dollars(article.price_cents * random.uniform(0.9, 1.6)))
    nouns = tuple(random.sample(NOUNS, 1 if kind < 0.8 else 2))
    budget = sum(compute_usual_price_cents(noun) for noun in nouns) * random.uniform(0.6, 1.6)
    return Need(nouns, (), _dollars(max(budget, min(article.price_cents for article in kind_of(nouns[0])))))


def parse_need(goal: str) -> Need:
    """Parses the goal of a session.

    Raises:
        ValueError: The goal is not one of this shop.
    """
    match = re.fullmatch(r"Find (?:a )?(.+) for at most \$(\d+)\.", goal)
    phrases = [words.split() for words in match[1].split(" and a ")] if match else []
    if not match or not all(words and words[-1] in NOUNS for words in phrases):
        raise ValueError(f"the goal {goal!r} is not one of the realistic demo shop: 'Find a NOUN for at most $50.'")
    return Need(tuple(words[-1] for words in phrases), tuple(phrases[0][:-1]), 100 * int(match[2]))


def _dollars(cents: float) -> int:
    return 100 * max(5, round(cents / 100))


MAX_STEPS = 20  # after this many steps a shopper terminates

PERSONAS = personas("realistic")

Option = tuple[Action, float]


def action_options(observation: Mapping[str, Any], utility: UtilityName) -> Callable[[Mapping[str, str]], list[Option]]:
    """Returns a function from a shopper's traits to the possible next actions and their weights exp(V).

    Args:
        utility: Utility by which offers are valued (utilities.py).

    Raises:
        ValueError: The goal or page is not one of this shop.
    """
    view, need = read_view(observation), parse_need(observation["goal"])

    def options(traits: Mapping[str, str]) -> list[Option]:
        taste = Taste(utility, traits, observation["goal"], need.budget_cents / len(need.nouns))
        return [(action, math.exp(value)) for action, value in _Mind(traits, need, view, taste).options()]

    return options


def rationale_for(page: str, action: Action) -> str:
    """Returns the shopper's rationale for `action` on `page`, one sentence in the first person."""
    view = read_page(page)
    match action:
        case Terminate():
            return str(PHRASES["realistic"]["terminate"].get(view.kind, "I have seen enough."))
        case TypeAndSubmit(text=text):
            return f"I look for {text}."
        case Click(name=name):
            for offer in view.offers:
                if offer.name == name:
                    return f"{offer.title} for ${offer.price_cents // 100} may be it."
            return get_reason("realistic", name)
        case Scroll():
            return "I look further down."
        case _:
            assert_never(action)


class _Mind(NamedTuple):
    """The choices of one kind of shopper on one page."""

    traits: Mapping[str, str]
    need: Need
    view: View
    taste: Taste

    def options(self) -> Iterator[Option]:
        """Returns every action that the shopper considers, with its utility."""
        if len(self.view.past) >= MAX_STEPS:
            return iter([(Terminate(), 0.0)])
        on_page: Callable[[], Iterator[Option]] | None = getattr(self, f"_on_{self.view.kind}", None)
        if on_page is None:
            raise ValueError(f"the realistic demo shop has no {self.view.kind!r} page")
        return on_page()

    @property
    def price(self) -> float:
        return PRICE[self.traits["price"]]

    @property
    def quality(self) -> float:
        return QUALITY[self.traits["quality"]]

    @property
    def is_hasty(self) -> bool:
        return self.traits["patience"] == "hasty"

    @property
    def unmet(self) -> tuple[str, ...]:
        """The needed kinds of article that are not in the cart yet."""
        opened, in_cart = "", []
        for name in self.view.past:
            if name.endswith(".view_product"):
                opened = name.split(".")[-2]
            elif name == "product.add_to_cart":
                in_cart.append(opened)
            elif name.startswith("cart.") and name.endswith(".remove"):
                in_cart = [slug for slug in in_cart if slug != name.split(".")[1]]
        nouns = {slug.rsplit("_", 1)[-1] for slug in in_cart}
        return tuple(noun for noun in self.need.nouns if noun not in nouns)

    @property
    def noun(self) -> str:
        return (*self.unmet, self.need.nouns[-1])[0]

    def terminate(self, value: float = -1.8) -> Option:
        return Terminate(), value + 0.15 * len(self.view.past) * (1.6 if self.is_hasty else 1.0)

    def utility(self, offer: Offer) -> float:
        words = offer.title.lower().split()
        value = 2.0 * sum(word in words for word in self.need.wanted) - 3.0 * (self.noun not in words)
        return value + 0.4 * offer.badge - 4.0 * (not offer.in_stock) + self.taste.value(offer)

    def _queries(self) -> Iterator[Option]:
        """Yields the queries that the shopper may type; full ones are the likeliest, and hasty shoppers misspell."""
        full = " ".join((*self.need.wanted, self.noun))
        for text, value in ((full, 1.8), (self.noun, 0.6), (misspell(self.noun), 0.2 if self.is_hasty else -1.8)):
            if text not in self.view.typed and not (text == self.noun and text == full and value < 1):
                yield TypeAndSubmit(name=SEARCH_INPUT, text=text), value

    def _on_home(self) -> Iterator[Option]:
        yield from self._queries()
        yield _click(f"nav_bar.{self.noun}"), 0.6
        yield _click(f"departments.{DEPARTMENT_OF[self.noun]}"), 0.3
        if self.view.in_cart and not self.unmet:
            yield _click("nav_bar.cart"), 3.0
        yield self.terminate(-4.0)

    def _on_department(self) -> Iterator[Option]:
        yield _click(f"categories.{self.noun}"), 3.0
        for action, value in self._queries():
            yield action, value - 1.0
        yield self.terminate(-3.0)

    def _on_results(self) -> Iterator[Option]:
        view = self.view
        for rank, offer in enumerate(view.offers):
            revisit_penalty = 1.5 * (offer.name in view.past)
            yield _click(offer.name), 1.0 + self.utility(offer) - self.taste.effort(rank) - revisit_penalty
        if "pagination.next" in view.names:
            yield _click("pagination.next"), -1.2 if self.is_hasty else -0.2
        yield from self._refinements()
        for action, value in self._queries():
            yield action, value - (2.0 if view.offers else -1.0)
        if view.in_cart and not self.unmet:
            yield _click("nav_bar.cart"), 3.0
        yield self.terminate()

    def _refinements(self) -> Iterator[Option]:
        unset = [name for name, is_set in self.view.refinements.items() if not is_set]
        affordable = [name for name in unset if 100 * _band(name) <= 1.2 * self.taste.budget_cents and "price" in name]
        if affordable:
            value = {"thrifty": 0.8, "fair": -0.2, "generous": -2.0}[self.traits["price"]]
            yield _click(max(affordable, key=_band)), value
        if "refinements.customer_reviews.4_stars_up" in unset:
            yield _click("refinements.customer_reviews.4_stars_up"), 0.6 if self.quality > 1 else -2.0
        for word in self.need.wanted[:1]:
            if (name := f"refinements.brand.{word}") in unset:
                yield _click(name), 1.2

    def _on_product(self) -> Iterator[Option]:
        offer, view = self.view.opened, self.view
        assert offer is not None
        opened = max((index for index, name in enumerate(view.past) if name.endswith(".view_product")), default=0)
        since = view.past[opened + 1 :]
        if offer.in_stock:
            value = 1.0 + self.utility(offer)
            if len(self.unmet) < 2:
                ease = {"thrifty": -1.0, "fair": 0.0, "generous": 1.0}[self.traits["price"]]
                yield _click("product.buy_now"), value + ease
            yield _click("product.add_to_cart"), value
            if not any(name.startswith("product.options.size") for name in since):
                size = SIZES[len(self.need.text()) % len(SIZES)]
                yield _click(f"product.options.size.{size}"), -1.5 if self.is_hasty else 0.0
        if "product.reviews" in view.names and "product.reviews" not in since:
            yield _click("product.reviews"), 1.0 if self.quality > 1 else -1.5
        yield _click("product.back_to_results"), 0.3
        yield self.terminate()

    def _on_reviews(self) -> Iterator[Option]:
        offer = self.view.opened
        put_off = offer is not None and offer.rating is not None and offer.rating < 4
        yield _click("reviews.back_to_product"), 2.0
        yield _click("reviews.next"), 0.0
        yield self.terminate(-1.0 if put_off else -3.0)

    def _on_cart(self) -> Iterator[Option]:
        budget = self.need.budget_cents
        over = max(0.0, self.view.total_cents / budget - 1)
        if self.unmet:
            yield _click("cart.continue_shopping"), 2.0
        if "cart.checkout" in self.view.names:
            shipping = self.view.shipping_cents / budget
            yield _click("cart.checkout"), 1.5 - 3 * self.price * shipping - 2 * self.price * over
        for name in sorted(self.view.names):
            if name.endswith(".remove"):
                yield _click(name), -2.0 + self.price * min(over, 1.0)
        yield self.terminate(-1.2)

    def _on_checkout(self) -> Iterator[Option]:
        yield _click("checkout.place_order"), 1.8
        yield _click("checkout.back_to_cart"), -1.0
        yield self.terminate(-1.4)


def _click(name: str) -> Click:
    return Click(name=name)


def _band(name: str) -> int:
    """Returns the upper limit of a refinement by price, in dollars; 0 for other names."""
    tail = name.rsplit("_", 1)[-1]
    return int(tail) if tail.isdigit() else 0
