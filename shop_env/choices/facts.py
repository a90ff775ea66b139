"""Computes the facts of a choice: numbers of its offer, the goal, the cart and the visit so far, and words of its name.

    observation ─► ChoicePage of choices (reader.py) and offers (offers.py) ─► each Choice with its facts, as FEATURES

A rating or number of reviews that the page does not show is NaN, which models treat as neutral. The conditional logit
`choice` and the boosted trees `boosted_choice` (agents/baselines) read the facts.
"""

import re
from array import array
from collections.abc import Sequence
from functools import lru_cache
from math import log1p, log10, nan
from statistics import median
from typing import NamedTuple, Self

from replay_sessions.schema import Click
from shop_env.choices.offers import Offer, amounts, read_offers
from shop_env.choices.reader import Choice, ChoicePage, Reader, ReaderState
from shop_env.choices.relations import DISTANCE, FROM_FARTHEST, MOVEMENT
from shop_env.observation import Observation
from shop_env.shopper_words import content_words, past_actions, words_of
from shop_env.train_view import TrainView

_FEATURE_NAMES = """
constant; has its own price; price / budget; price over budget; rating; reviews, log; badge; out of stock;
place; place, log; wanted words; wanted kind; another kind; other words typed; product: wanted words;
product: another kind; done before; done since the product; is set; its group is set; leads to a purchase;
purchase, nothing else wanted; leads back; total / budget; total over budget; shipping / budget;
kinds still wanted; steps so far, log; words matched; best match; goal words; share of goal words; times done;
heading words; is the heading; last one on the page; after the last one; distance from the last one, log;
next after the last click; beyond the farthest click; in the direction of the last movement"""
FEATURES = tuple(fact.strip() for fact in _FEATURE_NAMES.split(";"))
NAMED_STEPS = 5_000  # of the train split: enough to see every offer's name that recurs
_ADDS = frozenset(("add", "cart", "basket", "bag", "buy"))
_LIMIT_WORDS = "most under less below within up budget max maximum about"
_LIMITS = frozenset(_LIMIT_WORDS.split())
_BUYS = re.compile(
    r"\b(?:buy|check ?out|purchase|order|pay|kaufen|kasse|bestell\w*|bezahl\w*|achet\w*|command\w*"
    r"|compr\w*|acquist\w*)\b"
)
_BACK = re.compile(r"\b(?:back|return|previous|continue shopping|zurück|retour|volver|indietro)\b")


class OfferReader(Reader):
    """Reads observations as pages of choices with their facts; an element's role does not include its offer's name."""

    def __init__(
        self,
        store: TrainView,
        *,
        first_action: bool = False,
        inferred: bool = False,
        max_steps: int | None = None,
    ) -> None:
        super().__init__(store, first_action=first_action, inferred=inferred, max_steps=max_steps)
        offers = [
            item
            for session, _ in store.learnt(first_action=True, max_steps=NAMED_STEPS)
            for step in session.steps
            for item in read_offers(step.page).by_name.items()
        ]
        # Replaces a missing budget. The median of the page's prices would change with these prices.
        self._typical_price = median([offer.price for _, offer in offers if offer.price] or [1.0])
        names = {tuple(name.split(".")) for name, _ in offers}
        self._parts -= {part for name in names for part in name[1:-1]} - {
            name[end] for name in names for end in (0, -1)
        }

    def state(self) -> ReaderState:
        return super().state()._replace(typical_price=self._typical_price)

    @classmethod
    def restored(cls, state: ReaderState) -> Self:
        reader = super().restored(state)
        reader._typical_price = state.typical_price
        return reader

    def read(self, observation: Observation, user_id: str | None = None) -> ChoicePage:
        page = super().read(observation, user_id)
        facts = _StepFacts(observation, page, self._typical_price)
        return page._replace(choices=[facts.add_to(choice) for choice in page.choices])


class _StepFacts:
    """Computes the facts of a step's choices, from the facts that they share."""

    def __init__(self, observation: Observation, page: ChoicePage, typical_price: float) -> None:
        goal, past = observation["goal"], past_actions(observation["history"])
        self._offers = read_offers(observation["page"])
        self._heading = {*words_of(self._offers.heading)}
        self._groups = {name.rpartition(".")[0] for name in self._offers.chosen}
        opened = max((index + 1 for index, role in enumerate(page.past) if "*" in role), default=0)
        self._since = {*page.past[opened:]}
        clicks = {choice.action.name: choice for choice in page.choices if isinstance(choice.action, Click)}
        last = (clicks[str(action["name"])] for action in past if action.get("name") in clicks)
        self._last_ranks = {choice.role: choice.numbers[-1] for choice in last}  # rank of the last click on each role
        content = {word for word in content_words(goal) if not word.isdigit()} - _LIMITS
        products = [[word for word in words_of(part) if word in content] for part in goal.split(" and ")]
        kinds = [product[-1] for product in products if product]
        self._wanted = {word for product in products for word in product[:-1]}
        remaining = _kinds_left(kinds, past)
        self._kind, self._is_last = (remaining or kinds or [""])[0], not remaining
        limit = max(amounts(goal), default=0.0)
        budget = limit or typical_price
        self._budget = budget / max(1, len(kinds)) if limit else budget
        total = self._offers.total / budget
        self._shared = (total, max(0.0, total - 1), self._offers.shipping / budget, len(remaining), log1p(len(past)))

    def add_to(self, choice: Choice) -> Choice:
        """Returns the choice with its facts (FEATURES) and words: its name's last part, and its offer's name."""
        name, is_click = getattr(choice.action, "name", ""), isinstance(choice.action, Click)
        named_offer = self._offers.by_name.get(name, Offer())
        is_of_page = is_click and name not in self._offers.by_name
        offer = self._offers.main if is_of_page else named_offer
        ratio = min(4.0, offer.price / self._budget)
        parsed_name, typed = (
            _read_name(name),
            frozenset[str]() if is_click else _read_words(getattr(choice.action, "text", "")),
        )
        words = parsed_name.words | typed
        product_words = self._heading if is_of_page and offer.price else set[str]()
        is_buying = is_click and parsed_name.is_buying
        _, repeats, _, _, times, rank = choice.numbers
        in_heading = len(self._heading.intersection(parsed_name.last)) / max(1, len(parsed_name.last))
        last_rank = self._last_ranks.get(choice.role) if is_click else None
        distance = choice.relations[DISTANCE]
        facts = (
            1.0,
            named_offer.price > 0,
            ratio,
            max(0.0, ratio - 1),
            nan if offer.rating is None else offer.rating,
            log10(offer.reviews) if offer.reviews else nan,
            offer.has_badge,
            offer.is_out_of_stock,
            min(rank, 30) / 10,
            log1p(rank),
            len(words & self._wanted),
            self._kind in words,
            named_offer.price > 0 and self._kind not in words,
            len(typed - self._wanted - {self._kind}),
            len(product_words & self._wanted),
            len(product_words) > 0 and self._kind not in product_words,
            (times if is_click else repeats) > 0,
            choice.role in self._since,
            name in self._offers.chosen,
            name.rpartition(".")[0] in self._groups,
            is_buying,
            is_buying and self._is_last,
            parsed_name.is_back,
            *self._shared,
            *(min(number, 10.0) for number in choice.numbers[:-1]),
            in_heading,
            in_heading == 1,
            last_rank is not None,
            last_rank is not None and rank > last_rank,
            0.0 if last_rank is None else log1p(abs(rank - last_rank)),
            distance == 1,
            choice.relations[FROM_FARTHEST] > 0,
            distance * choice.relations[MOVEMENT] > 0,
        )
        own_name = (name.rpartition(".")[0],) if "*" in choice.role else ()
        return choice._replace(facts=array("d", facts), words=parsed_name.last + own_name)


@lru_cache(maxsize=65_536)
def _read_words(text: str) -> frozenset[str]:
    return frozenset(words_of(text))


class _Name(NamedTuple):
    words: frozenset[str]
    last: tuple[str, ...]  # the words of its last part
    is_back: bool
    is_buying: bool


@lru_cache(maxsize=65_536)
def _read_name(name: str) -> _Name:
    last = words_of(name.rpartition(".")[2])
    is_back = bool(_BACK.search(" ".join(last)))
    return _Name(
        words=frozenset(words_of(name)),
        last=tuple(sorted({*last})),
        is_back=is_back,
        is_buying=not is_back and bool(_BUYS.search(" ".join(last))),
    )


def _kinds_left(kinds: Sequence[str], past: Sequence[dict[str, object]]) -> list[str]:
    """Returns the kinds of product in the goal that are not in the cart yet."""
    remaining, last = list(kinds), ""
    for action in past:
        words = words_of(str(action.get("name", "")))
        last = next((kind for kind in kinds if kind in words), last)
        if _ADDS.intersection(words) and last in remaining and action.get("type") == "click":
            remaining.remove(last)
    return remaining
