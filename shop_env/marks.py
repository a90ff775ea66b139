"""Marks on pages what a browser shows of the session so far (`context.marks`), in the attribute `mark` of elements.

    <a name="results.kettle.view_product" mark="3 opened-before clicked-last">

    3              the place in a list of products, from 1 (lists.py)
    +2, -1         the distance in a list of products from the one that was clicked last
    opened-before  a link that was clicked before
    clicked-last   the element of its list that was clicked last, of those on the page: where the shopper left off

The marks of a page depend on the page and on the actions before it, so each prompt stays a prefix of the next. The
papers' pages have no marks.
"""

import json
import re
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from html import unescape

from replay_sessions.elements import Element, find_elements
from shop_env.lists import Place, list_of, read_places

_NAMED_TAG = re.compile(
    r"""<!--.*?-->|<[a-zA-Z][^\s/>]*(?:\s+(?!name=)[^\s"'>/=]++(?:=(?:"[^"]*"|'[^']*'|[^\s"'>]++))?)*+"""
    r"""\s+name=(?:"(?P<double>[^"]*)"|'(?P<single>[^']*)'|(?P<bare>[^\s"'>]++))"""
    r"""(?=(?:[^<>"']|"[^"]*"|'[^']*')*+>)""",  # to the end of a tag that is well formed, as in _MARK
    re.DOTALL,
)
_MARK = re.compile(r""" mark="[a-z0-9 +-]*"(?=(?:[^<>"']|"[^"]*"|'[^']*')*+>)""")


def mark_pages(pages: Sequence[str], actions: Sequence[str]) -> list[str]:
    """Returns the pages of a session with the marks that each had when it was shown.

    Args:
        pages: The pages, oldest first.
        actions: The action at each page as JSON text; that at the last page is not needed.
    """
    clicked: list[str] = []
    marked = []
    for number, page in enumerate(pages):
        marked.append(_mark(page, clicked))
        action = json.loads(actions[number]) if number < len(actions) else {}
        if action.get("type") == "click":
            clicked.append(action.get("name", ""))
    return marked


def has_marks(page: str) -> bool:
    """Returns whether an element of the page has a mark."""
    return _MARK.search(page) is not None


def remove_marks(page: str) -> str:
    """Returns the page without its marks.

    >>> remove_marks('<a name="cart" mark="opened-before clicked-last">Cart</a>')
    '<a name="cart">Cart</a>'
    """
    return _MARK.sub("", page)


def _mark(page: str, clicked: Sequence[str]) -> str:
    """Returns a page with marks.

    Args:
        clicked: The names of the elements that were clicked before, oldest first.
    """
    elements, places = _read(page)
    lengths = Counter(place.list_name for place in places.values())
    last = {list_of(name): name for name in clicked if name in places}
    opened = {name for name in clicked if name in elements and elements[name].tag == "a"}

    def add(tag: re.Match[str]) -> str:
        name = unescape(tag["double"] or tag["single"] or tag["bare"] or "")
        if name not in places:
            return tag[0]
        list_name, rank = places[name]
        marks = []
        left_off = last.get(list_name)
        if ".*." in list_name and lengths[list_name] > 1:
            marks.append(str(rank + 1))
            if left_off not in (None, name):
                marks.append(f"{rank - places[left_off].rank:+d}")
        marks += ["opened-before"] if name in opened else []
        marks += ["clicked-last"] if left_off == name else []
        return f'{tag[0]} mark="{" ".join(marks)}"' if marks else tag[0]

    return _NAMED_TAG.sub(add, page)


@lru_cache(maxsize=512)
def _read(page: str) -> tuple[dict[str, Element], dict[str, Place]]:
    elements = find_elements(page) if page else []
    return {element.name: element for element in elements}, read_places(elements)
