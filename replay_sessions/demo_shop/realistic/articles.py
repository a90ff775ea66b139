"""Defines the goods of the realistic shop (30 articles of each of 24 kinds), its search, and its variants.

Prices are log-normal around the usual price of the kind, numbers of reviews are log-normal, and ratings follow the
quality of the brand. No two articles of a kind share a brand or a style, so element names of different articles differ
clearly (catalogue.py).

A word of a query matches an equal word of a title (1 point), or a word of at least five letters that differs by one
letter (0.8 points). Articles are ranked by their points, then by the shop's order. If the query names a kind of
article, only articles of that kind are results. A query without a matching word has no results.
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
    """The differences of a variant from the original shop; the defaults change nothing.

    Attributes:
        price_factor: Factor of every price; prices are rounded to whole cents.
        order: Order of search results that match equally well: the most bought first, the cheapest, or the best rated.
        badges: Whether the most bought article of a kind has a badge.
        ratings: Whether stars and the number of reviews are shown, and reviews can be read.
        checkout_page: Whether one more page stands between the cart and the purchase.
        shipping_cents: Shipping costs that are added in the cart; 0 is shown as free shipping.
        wording: Wording of headings and buttons; both have the same names and the same content (a placebo).
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
        rating: Number of stars, from 1.0 to 5.0.
        bestseller: Whether it has the most reviews of its kind.
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
    """Returns all articles by slug; every visit has the same."""
    random = Random("the realistic shop's catalogue")
    quality = {brand: random.gauss(4.1, 0.35) for brand in BRANDS}
    catalogue: dict[str, Article] = {}
    for noun in NOUNS:
        usual_price = compute_usual_price_cents(noun)
        brands, styles = random.sample(BRANDS, len(BRANDS)), random.sample(STYLES, len(STYLES))
        # The catalogue depends on the order of the draws.
        kind = [
            Article(
                Product(brand, style, noun),
                # Prices end in 49 or 99 cents, as in real shops.
                max(199, round(usual_price * math.exp(random.gauss(0, _PRICE_SPREAD)) / 50) * 50 - 1),
                min(5.0, max(2.0, round(random.gauss(quality[brand], 0.25), 1))),
                int(math.exp(random.gauss(5, 1.5))) + 1,
                random.random() >= _OUT_OF_STOCK,
            )
            for brand, style in zip(brands, styles, strict=True)
        ]
        max_reviews = max(article.reviews for article in kind)
        catalogue |= {article.slug: article._replace(bestseller=article.reviews == max_reviews) for article in kind}
    return catalogue


def compute_usual_price_cents(noun: str) -> int:
    """Returns the median of the price distribution of a kind, between $15 and $250."""
    quantile = Random(f"the usual price of a {noun}").random()
    return int(1500 * (250 / 15) ** quantile)


@cache
def kind_of(noun: str) -> tuple[Article, ...]:
    """Returns all articles of a kind."""
    return tuple(article for article in articles().values() if article.product.noun == noun)


_WORDS = frozenset((*BRANDS, *STYLES, *NOUNS))


@lru_cache(maxsize=4096)
def find_articles(query: str, order: Order) -> tuple[Article, ...]:
    """Returns all articles that match a query, the best match first."""
    points: dict[str, float] = {}
    for typed in query.lower().split():
        if typed in _WORDS:
            points[typed] = 1.0
        else:
            similar_words = (word for word in _WORDS if len(word) >= 5 and _differs_by_a_letter(typed, word))
            points |= {word: max(points.get(word, 0.0), 0.8) for word in similar_words}
    nouns = points.keys() & NOUNS
    ranked = []
    for article in articles().values():
        score = sum(points.get(word, 0.0) for word in article.product)
        if score and (not nouns or article.product.noun in nouns):
            order_key = {"relevance": -article.reviews, "price": article.price_cents, "rating": -article.rating}[order]
            ranked.append((-score, order_key, article.slug, article))
    return tuple(article for *_, article in sorted(ranked))


def misspell(word: str) -> str:
    """Returns the word without its third letter, as a hasty shopper types it.

    >>> misspell("lantern"), misspell("tent")
    ('latern', 'tet')
    """
    return word[:2] + word[3:]


def _differs_by_a_letter(typed: str, word: str) -> bool:
    """Returns True if the words differ by at most one inserted, deleted or replaced letter."""
    if abs(len(typed) - len(word)) > 1:
        return False
    same = 0
    while same < min(len(typed), len(word)) and typed[same] == word[same]:
        same += 1
    return typed[same + (len(typed) >= len(word)) :] == word[same + (len(word) >= len(typed)) :]
