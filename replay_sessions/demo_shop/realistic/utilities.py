"""Computes the utilities by which shoppers of the realistic shop value an offer, in units of log-odds.

With the price p, the budget b of the article, the rating r and the rank k among the results (from 0):

    own             depends only on what pages show: shopper.py has the formula
    reference       - price·(p/b)² - price·(3·max(0, p/u - 1) - max(0, 1 - p/u))    u: the usual price of the kind
                    + quality·1[r >= 4.2] - quality·1[r < 3.8] + 1.2·[the shopper's favourite brand]
                    looking at one of the first FOLD results costs 0, at any other 10·haste
    hidden_quality  own + 3·log(p'/u)     p': the article's price before any variant

`reference` has another form than `own`: kinks, thresholds, a fold, and a taste that no page shows. In `hidden_quality`
dearer articles are better in a way that no page shows, as in a shop that sets prices by the worth of its goods. The
price is endogenous, so a regression of purchases on prices underestimates how much shoppers mind them.
"""

import math
from collections.abc import Mapping
from hashlib import blake2b
from typing import Literal, NamedTuple

from replay_sessions.demo_shop.catalogue import BRANDS
from replay_sessions.demo_shop.realistic.articles import articles, compute_usual_price_cents
from replay_sessions.demo_shop.realistic.read import Offer

UtilityName = Literal["own", "reference", "hidden_quality"]

PRICE = {"thrifty": 2.4, "fair": 1.4, "generous": 0.5}
QUALITY = {"careful": 2.0, "easy-going": 0.5}
HASTE = {"patient": 0.08, "hasty": 0.25}
FOLD = 4


class Taste(NamedTuple):
    """A shopper's taste in one visit.

    Attributes:
        utility: Name of the utility.
        traits: Traits of the persona.
        goal: Text of the need; with the traits it determines the favourite brand.
        budget_cents: Budget per article.
    """

    utility: UtilityName
    traits: Mapping[str, str]
    goal: str
    budget_cents: float

    def value(self, offer: Offer) -> float:
        """Computes the part of an offer's utility that comes from price, stars and hidden tastes or quality."""
        price, quality = PRICE[self.traits["price"]], QUALITY[self.traits["quality"]]
        ratio = offer.price_cents / self.budget_cents
        if self.utility == "reference":
            slug = _slug(offer)
            to_usual = offer.price_cents / compute_usual_price_cents(slug.rsplit("_", 1)[-1])
            value = -price * (ratio**2 + 3 * max(0.0, to_usual - 1) - max(0.0, 1 - to_usual))
            value += 1.2 * (slug.split("_")[0] == self._favourite_brand)
            return value if offer.rating is None else value + quality * ((offer.rating >= 4.2) - (offer.rating < 3.8))
        value = -price * (ratio + 3 * max(0.0, ratio - 1))
        if offer.rating is not None:
            value += quality * (offer.rating - 4)
        if self.utility == "hidden_quality":
            article = articles()[_slug(offer)]
            value += 3.0 * math.log(article.price_cents / compute_usual_price_cents(article.product.noun))
        return value

    def effort(self, rank: int) -> float:
        """Computes the cost in utility of looking at the offer at a rank."""
        haste = HASTE[self.traits["patience"]]
        return haste * (10 if rank >= FOLD else 0) if self.utility == "reference" else haste * rank

    @property
    def _favourite_brand(self) -> str:
        digest = blake2b(f"{self.goal} {sorted(self.traits.items())}".encode(), digest_size=4).digest()
        return BRANDS[int.from_bytes(digest) % len(BRANDS)]


def _slug(offer: Offer) -> str:
    return "_".join(offer.title.lower().split())
