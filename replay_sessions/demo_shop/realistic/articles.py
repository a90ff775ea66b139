"""What the realistic shop sells: 30 articles of each of 24 kinds, each with a price, a rating and stock that stay.

Prices and numbers of reviews are log-normal around the kind's own, ratings follow the quality of the brand. Within a
kind no two articles share a brand or a style, so that element names of different articles stay apart (catalogue.py).
"""

import math
from functools import cache
from random import Random
from typing import NamedTuple

from replay_sessions.demo_shop.catalogue import BRANDS, NOUNS, STYLES, Product

_PRICE_SPREAD = 0.45  # standard deviation of log price within a kind
_OUT_OF_STOCK = 0.08


class Article(NamedTuple):
    """One article.

    Attributes:
        rating: Stars, 1.0 to 5.0.
        bestseller: The most reviewed of its kind.
    """

    product: Product
    price_cents: int
    rating: float
    reviews: int
    in_stock: bool
    bestseller: bool = False

    @property
    def slug(self) -> str:
        return "_".join(self.product)

    @property
    def title(self) -> str:
        return " ".join(self.product).title()


@cache
def articles() -> dict[str, Article]:
    """All of them by slug; the same in every shop."""
    random = Random("the realistic shop's catalogue")
    quality = {brand: random.gauss(4.1, 0.35) for brand in BRANDS}
    catalogue: dict[str, Article] = {}
    for noun in NOUNS:
        usual = usual_price_cents(noun)
        brands, styles = random.sample(BRANDS, len(BRANDS)), random.sample(STYLES, len(STYLES))
        # The order of the draws is part of the catalogue: another order is another shop.
        kind = [
            Article(
                Product(brand, style, noun),
                # As shops write prices: on 99 or 49 cents.
                max(199, round(usual * math.exp(random.gauss(0, _PRICE_SPREAD)) / 50) * 50 - 1),
                min(5.0, max(2.0, round(random.gauss(quality[brand], 0.25), 1))),
                int(math.exp(random.gauss(5, 1.5))) + 1,
                random.random() >= _OUT_OF_STOCK,
            )
            for brand, style in zip(brands, styles, strict=True)
        ]
        most = max(article.reviews for article in kind)
        catalogue |= {article.slug: article._replace(bestseller=article.reviews == most) for article in kind}
    return catalogue


def usual_price_cents(noun: str) -> int:
    """The middle of a kind's prices, 15 to 250 dollars."""
    quantile = Random(f"the usual price of a {noun}").random()
    return int(1500 * (250 / 15) ** quantile)


@cache
def kind_of(noun: str) -> tuple[Article, ...]:
    """All articles of a kind."""
    return tuple(article for article in articles().values() if article.product.noun == noun)
