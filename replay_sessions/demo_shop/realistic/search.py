"""The realistic shop's search: what was typed, against the words of titles; small misspellings are forgiven.

A word of a query matches a word of a title where they are equal (1 point), or one letter apart and at least five long
(0.8). Articles are ranked by their points, then by the order that the shop shows; where the query names a kind of
article only those of that kind are shown. A query of which no word matches finds nothing.
"""

from collections.abc import Sequence
from functools import lru_cache

from replay_sessions.demo_shop.catalogue import BRANDS, NOUNS, STYLES
from replay_sessions.demo_shop.realistic.articles import Article, articles
from replay_sessions.demo_shop.realistic.variant import Order

__all__ = ["find_articles", "misspelt"]

_WORDS = frozenset((*BRANDS, *STYLES, *NOUNS))


@lru_cache(maxsize=4096)
def find_articles(query: str, order: Order) -> tuple[Article, ...]:
    """All that match, best first."""
    points: dict[str, float] = {}
    for typed in query.lower().split():
        for word, found in _meant(typed):
            points[word] = max(points.get(word, 0.0), found)
    nouns = {word for word in points if word in NOUNS}
    scored = [
        (sum(points.get(word, 0.0) for word in (one.product.brand, one.product.style, one.product.noun)), one)
        for one in articles().values()
        if not nouns or one.product.noun in nouns
    ]
    return tuple(
        one for score, one in sorted(scored, key=lambda scored: (-scored[0], *_place(scored[1], order))) if score
    )


def misspelt(word: str) -> str:
    """The word as a hasty shopper types it: without its third letter.

    >>> misspelt("lantern"), misspelt("tent")
    ('latern', 'tet')
    """
    return word[:2] + word[3:]


def _meant(typed: str) -> Sequence[tuple[str, float]]:
    if typed in _WORDS:
        return [(typed, 1.0)]
    return [(word, 0.8) for word in sorted(_WORDS) if len(word) >= 5 and _one_apart(typed, word)]


def _one_apart(one: str, other: str) -> bool:
    """Whether one letter more, less or other makes one of the other."""
    if abs(len(one) - len(other)) > 1:
        return False
    same = 0
    while same < min(len(one), len(other)) and one[same] == other[same]:
        same += 1
    return one[same + (len(one) >= len(other)) :] == other[same + (len(other) >= len(one)) :]


def _place(article: Article, order: Order) -> tuple[float, str]:
    by = {"relevance": -article.reviews, "price": article.price_cents, "rating": -article.rating}[order]
    return (by, article.slug)
