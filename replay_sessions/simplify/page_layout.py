"""What the names on a simplified page tell of how the page once looked: which boxes were cards, what stood on a link.

Simplified pages have no styles, and some leave out of an element's text what its name says. Names are hierarchical
(`search_results.red_tent.add_to_cart`), so both can be told from them. For page_view.py; what is missed here only makes
a page less pleasant to look at.
"""

import re
from collections.abc import Iterable, Mapping

from selectolax.lexbor import LexborNode

from replay_sessions.elements import Element

_WORD = re.compile(r"[^\W_]+")
_MIXED = ""
_MOST_LEVELS = 24  # a card is not deeper than that; without an end, deep pages would take quadratic time


def find_cards(root: LexborNode, acts: Mapping[str, str]) -> set[int]:
    """The outermost boxes whose elements to act on (two at least) have names of which the first two parts are the same.

    Returns:
        Their `mem_id`s.
    """
    prefixes: dict[int, str] = {}
    counts: dict[int, int] = {}
    parents: dict[int, int] = {}
    for node in root.css("[name]"):
        name = node.attributes["name"] or ""
        if name not in acts:
            continue
        parts = name.split(".", 2)
        prefix = ".".join(parts[:2]) if len(parts) > 2 else _MIXED
        inner, box = node.mem_id, node.parent
        for _ in range(_MOST_LEVELS):
            if box is None:
                break
            parents[inner] = inner = box.mem_id
            first_prefix = prefixes.setdefault(inner, prefix)
            counts[inner] = counts.get(inner, 0) + 1
            if first_prefix != prefix:
                prefixes[inner] = _MIXED
            box = box.parent
    return {
        box
        for box, prefix in prefixes.items()
        if prefix != _MIXED and counts[box] > 1 and prefixes.get(parents.get(box, 0)) == _MIXED
    }


def unsaid_words(page_text: str, elements: Iterable[Element]) -> dict[str, str]:
    """For each name half of whose words stand nowhere on the page: its words, those of the first part left out.

    What the element itself says is left out too.

    >>> link = Element(name="search_results.red_tent.view_product", tag="a", role=None, text="view", accepts="click")
    >>> unsaid_words("4 results view", [link])
    {'search_results.red_tent.view_product': 'red tent · view product'}
    >>> unsaid_words("4 results, view the product Red Tent", [link])
    {}
    """
    elements = list(elements)
    texts = [set(_words(element.text)) for element in elements]
    page_words = set(_words(page_text)).union(*texts)
    hidden_words = {}
    for element, text in zip(elements, texts, strict=True):
        parts = [_words(part) for part in element.name.split(".")[1:]]
        words = [word for part in parts for word in part]
        if 2 * sum(word not in page_words for word in words) >= len(words) > 0:
            hidden_words[element.name] = " · ".join(" ".join(part) for part in parts if not text.issuperset(part))
    return hidden_words


def _words(text: str) -> list[str]:
    return _WORD.findall(text.casefold())
