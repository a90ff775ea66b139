"""The realistic shop's search: what was typed, against the words of titles; small misspellings are forgiven.

A word of a query matches a word of a title where they are equal (1 point), or one letter apart and at least five long
(0.8). Articles are ranked by their points, then by the order that the shop shows; where the query names a kind of
article only those of that kind are shown. A query of which no word matches finds nothing.
"""

from functools import lru_cache

from replay_sessions.demo_shop.catalogue import BRANDS, NOUNS, STYLES
from replay_sessions.demo_shop.realistic.articles import Article, articles
from replay_sessions.demo_shop.realistic.variant import Order

_WORDS = frozenset((*BRANDS, *STYLES, *NOUNS))


@lru_cache(maxsize=4096)
def find_articles(query: str, order: Order) -> tuple[Article, ...]:
    """All that match, best first."""
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


def misspelt(word: str) -> str:
    """The word as a hasty shopper types it: without its third letter.

    >>> misspelt("lantern"), misspelt("tent")
    ('latern', 'tet')
    """
    return word[:2] + word[3:]


def _differs_by_a_letter(typed: str, word: str) -> bool:
    """Whether one letter more, less or other turns one word into the other."""
    if abs(len(typed) - len(word)) > 1:
        return False
    same = 0
    while same < min(len(typed), len(word)) and typed[same] == word[same]:
        same += 1
    return typed[same + (len(typed) >= len(word)) :] == word[same + (len(word) >= len(typed)) :]
