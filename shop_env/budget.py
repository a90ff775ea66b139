"""Fitting an observation into a budget: earliest pages first, then the current page around where the shopper looks.

Stands between ContextConfig and the observation. Customer-R1, section 4.1: when the context is too long, the earliest
pages go while their actions and rationales stay. Where that is not enough, the current page is cut to a window: around
the element that the shopper used last, if it is still on this page, else from the top, as a page is seen when it opens.
The logged action of the step itself is never looked at: a window around it would give the answer away.

What was left out shows: a dropped page is "" in the history, a cut one says so in a comment.
"""

import json
import re
from collections.abc import Callable, Sequence

from replay_sessions.errors import BadConfig
from replay_sessions.plugins import load

__all__ = ["Counter", "find_counter", "first_page_kept", "shorten_page"]

Counter = Callable[[str], int]

_BUILT_IN: dict[str, Counter] = {"characters": len, "words": lambda text: len(text.split())}


def find_counter(name: str) -> Counter:
    """The counter of that name: `characters`, `words` or "module:function"."""
    if name in _BUILT_IN:
        return _BUILT_IN[name]
    try:
        counter: Counter = load(name)
        counts = isinstance(counter("a page"), int)
    except (ImportError, AttributeError, TypeError) as error:
        raise BadConfig(f"context.counter {name!r} is no function from a text to its count: {error}") from error
    if not counts:
        raise BadConfig(f"context.counter {name!r} must return an int, the count of a text.")
    return counter


def first_page_kept(counts: Sequence[int], room: int) -> int:
    """Of pages that count so much, oldest first, the first that is kept if the latest are to fit into `room`.

    >>> first_page_kept([40, 10, 30], room=45)
    1
    """
    for index in range(len(counts) - 1, -1, -1):
        room -= counts[index]
        if room < 0:
            return index + 1
    return 0


def shorten_page(page: str, room: int, counter: Counter, last_action: str | None) -> str:
    """The page, or a window of it that counts at most `room`; "" if not even a comment fits.

    Args:
        last_action: The shopper's previous action as JSON text; the window lies around its element, if it is here.
    """
    if counter(page) <= room:
        return page
    focus = _find_element(page, last_action)
    low, high = 0, len(page)
    while low < high:  # the widest window that fits
        width = (low + high + 1) // 2
        if counter(_window(page, focus, width)) <= room:
            low = width
        else:
            high = width - 1
    return _window(page, focus, low) if low else ""


def _window(page: str, focus: int, width: int) -> str:
    """About `width` characters of the page with `focus` in the middle, cut before tags or lines where there are any."""
    start = max(0, min(focus - width // 2, len(page) - width))
    end = start + width
    if start > 0:
        found = _CUT.search(page, start, end)
        start = found.start() if found else start
    if end < len(page):
        end = max(page.rfind("<", start + 1, end + 1), page.rfind("\n", start + 1, end + 1), 0) or end
    before = _left_out(start) if start > 0 else ""
    after = _left_out(len(page) - end) if end < len(page) else ""
    return before + page[start:end] + after


_CUT = re.compile(r"[<\n]")


def _left_out(characters: int) -> str:
    return f"<!-- {characters} characters left out -->"


def _find_element(page: str, last_action: str | None) -> int:
    name = json.loads(last_action).get("name", "") if last_action else ""
    return max(0, page.find(f'name="{name}"')) if name else 0
