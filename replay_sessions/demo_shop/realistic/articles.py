"""The goods and the search of the realistic shop: 30 articles of each of 24 kinds; and variants of the shop.

Prices and numbers of reviews are log-normal around the kind's own, ratings follow the quality of the brand. Within a
kind no two articles share a brand or a style, so that element names of different articles stay apart (catalogue.py).

A word of a query matches a word of a title where they are equal (1 point), or one letter apart and at least five long
(0.8). Articles are ranked by their points, then by the order that the shop shows; where the query names a kind of
article only those of that kind are shown. A query of which no word matches has no results.
"""

import math
from functools import cache, lru_cache
from random import Random
from typing import Literal, NamedTuple

from replay_sessions.demo_shop.catalogue import BRANDS, NOUNS, STYLES, Product
from replay_sessions.foundation.errors import BadConfig, check_choice
from replay_sessions.foundation.records import Config

Order = Literal["relevance", "price", "rating"]


class ShopVariant(Config):
    """The differences from the shop as it is; the defaults change nothing.

    Attributes:
        price_factor: Times every price, rounded to whole cents.
        order: Of search results that match equally well: the most bought first, the cheapest, or the best rated.
        badges: Whether the most bought article of a kind has a badge.
        ratings: Whether stars and the number of reviews are shown, and reviews can be read.
        checkout_page: One more page between the cart and the purchase.
        shipping_cents: What is added in the cart; 0 is written as free shipping.
        wording: Another wording of headings and buttons, with the same names and the same content (a placebo).
    """

    price_factor: float = 1.0
    order: Order = "relevance"
    badges: bool = True
    ratings: bool = True
    checkout_page: bool = False
    shipping_cents: int = 590
    wording: Literal["plain", "warm"] = "plain"

    def __post_init__(self) -> None:
        if not 0 < self.price_factor < 100:
            raise BadConfig(f"variant.price_factor is {self.price_factor}; it must lie between 0 and 100.")
        check_choice("variant.order", self.order, Order)
        if self.shipping_cents < 0:
            raise BadConfig(f"variant.shipping_cents is {self.shipping_cents}; it must not be below 0.")


CONTROL = ShopVariant()


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
    """Returns all articles by slug; the same in every shop."""
    random = Random("the realistic shop's catalogue")
    quality = {brand: random.gauss(4.1, 0.35) for brand in BRANDS}
    catalogue: dict[str, Article] = {}
    for noun in NOUNS:
        usual = compute_usual_price_cents(noun)
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


def compute_usual_price_cents(noun: str) -> int:
    """Returns the middle of a kind's prices, 15 to 250 dollars."""
    quantile = Random(f"the usual price of a {noun}").random()
    return int(1500 * (250 / 15) ** quantile)


@cache
def kind_of(noun: str) -> tuple[Article, ...]:
    """Returns all articles of a kind."""
    return tuple(article for article in articles().values() if article.product.noun == noun)


_WORDS = frozenset((*BRANDS, *STYLES, *NOUNS))


@lru_cache(maxsize=4096)
def find_articles(query: str, order: Order) -> tuple[Article, ...]:
    """Returns all articles that match, best first."""
    points: dict[str, float] = {}
    for typed in query.lower().split():
        if typed in _WORDS:
            points[typed] = 1.0
        else:
            near = (word for word in _WORDS if len(word) >= 5 and _differs_by_a_letter(typed, word))
            points |= {word: max(points.get(word, 0.0), 0.8) for word in near}
    nouns = points.keys() & NOUNS
    ranked = []
    for article in articles().values():
        score = sum(points.get(word, 0.0) for word in article.product)
        if score and (not nouns or article.product.noun in nouns):
            by = {"relevance": -article.reviews, "price": article.price_cents, "rating": -article.rating}[order]
            ranked.append((-score, by, article.slug, article))
    return tuple(article for *_, article in sorted(ranked))


def misspell(word: str) -> str:
    """Returns the word as a hasty shopper types it: without its third letter.

    >>> misspell("lantern"), misspell("tent")
    ('latern', 'tet')
    """
    return word[:2] + word[3:]


def _differs_by_a_letter(typed: str, word: str) -> bool:
    """Returns True if one letter more, fewer or other turns one word into the other."""
    if abs(len(typed) - len(word)) > 1:
        return False
    same = 0
    while same < min(len(typed), len(word)) and typed[same] == word[same]:
        same += 1
    return typed[same + (len(typed) >= len(word)) :] == word[same + (len(word) >= len(typed)) :]
