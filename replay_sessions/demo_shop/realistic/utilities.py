"""The utilities by which shoppers of the realistic shop value an offer, in units of log-odds.

With the price p, the budget b of the article, the rating r and the rank k among the results (from 0):

    own             what a model that reads the page can say: shopper.py has the formula
    reference       - price·(p/b)² - price·(3·max(0, p/u - 1) - max(0, 1 - p/u))    u: the usual price of the kind
                    + quality·1[r >= 4.2] - quality·1[r < 3.8] + 1.2·[the shopper's favourite brand]
                    the first FOLD results stand before all others, whatever their rank
    hidden_quality  own + 3·log(p'/u)     p': the article's price before any variant

`reference` has another form than `own`: kinks, thresholds, a fold, and a taste that no page tells. In `hidden_quality`
dearer articles are better in a way that no page tells, as in a shop that sets its prices by what its goods are worth:
the price is endogenous, and who regresses purchases on it finds that people mind prices less than they do.
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
        traits: Of the persona.
        goal: The text of the need; with the traits it decides the favourite brand.
        budget_cents: Of one article.
    """

    utility: UtilityName
    traits: Mapping[str, str]
    goal: str
    budget_cents: float

    def value(self, offer: Offer) -> float:
        """Computes what price and stars, and what no page tells, add to an offer's utility."""
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
        """Computes what it costs to look at the offer at a rank."""
        haste = HASTE[self.traits["patience"]]
        return haste * (10 if rank >= FOLD else 0) if self.utility == "reference" else haste * rank

    @property
    def _favourite_brand(self) -> str:
        digest = blake2b(f"{self.goal} {sorted(self.traits.items())}".encode(), digest_size=4).digest()
        return BRANDS[int.from_bytes(digest) % len(BRANDS)]


def _slug(offer: Offer) -> str:
    return "_".join(offer.title.lower().split())
