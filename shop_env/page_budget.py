"""Cuts pages to a budget.

When the context is too long, the earliest pages are dropped while their actions and rationales stay (Customer-R1,
section 4.1). If that is not enough, the current page is cut to a window: around the element that the shopper used last
if it is still on the page, else from the top, as a page looks when it opens. A window around the logged action of the
step itself would give the answer away. Cuts are visible: a dropped page is "" in the history, and a cut page has
comments about its missing parts. Tags are never cut, so names stay complete.

Budgets are in characters (context.budget, prompting, rationales) or in tokens (train/tokens.py, model.long_pages).
"""

import json
import re
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from itertools import chain

from replay_sessions.elements import page_names
from replay_sessions.schema import Action

_TAG_OR_LINE_END = re.compile(r"""<[a-zA-Z/!](?:"[^"]*"|'[^']*'|[^'">])*+>|\n""")


def first_page_kept(counts: Sequence[int], room: int) -> int:
    """Returns the index of the first page to keep so that it and all later pages fit.

    Args:
        counts: The length of each page, oldest first.
        room: The length that the kept pages may have together.

    >>> first_page_kept([40, 10, 30], room=45)
    1
    """
    for index in range(len(counts) - 1, -1, -1):
        room -= counts[index]
        if room < 0:
            return index + 1
    return 0


def shorten_page(page: str, room: int, last_action: str | None) -> str:
    """Returns the page, or a window of it with at most `room` characters; "" if no tag or text fits.

    Args:
        last_action: The shopper's previous action as JSON text; the window lies around its element if the page has it.
    """
    if len(page) <= room:
        return page
    width = room - 2 * len(_left_out(len(page)))
    start = window_start(find_element(page, last_action), width, len(page))
    return cut_window(page, start, start + width)


def window_start(focus: int, width: int, length: int) -> int:
    """Returns the start of a window of `width` around `focus`, moved so that it lies between 0 and `length`.

    >>> window_start(50, 20, length=100), window_start(3, 20, length=100), window_start(98, 20, length=100)
    (40, 0, 80)
    """
    return max(0, min(focus - width // 2, length - width))


def align_window(page: str, start: int, end: int) -> tuple[int, int] | None:
    """Returns the offsets of the complete tags and texts of a page between two offsets; None if there are none."""
    borders = chain.from_iterable(match.span() for match in _TAG_OR_LINE_END.finditer(page))
    offsets = [0, *borders, len(page)]
    first, last = bisect_left(offsets, start), bisect_right(offsets, end) - 1
    return (offsets[first], offsets[last]) if first < last else None


def cut_window(page: str, start: int, end: int) -> str:
    """Returns the complete tags and texts of a page between two offsets, with comments on what is left out.

    Returns "" if no complete tag or text lies between them.

    >>> cut_window('<a name="x">one</a> <a name="y">two</a>', 2, 24)
    '<!-- 12 characters left out -->one</a> <!-- 19 characters left out -->'
    """
    window = align_window(page, start, end)
    if window is None:
        return ""
    start, end = window
    before = _left_out(start) if start > 0 else ""
    after = _left_out(len(page) - end) if end < len(page) else ""
    return before + page[start:end] + after


def find_element(page: str, last_action: str | None) -> int:
    """Returns the offset of the name of an action's element on a page, 0 if the page does not have it.

    Args:
        last_action: The action as JSON text; None means no action.
    """
    name = json.loads(last_action).get("name", "") if last_action else ""
    return max(0, page.find(f'name="{name}"')) if name else 0


def shows_target(page: str, window: tuple[int, int] | None, action: Action) -> bool:
    """Returns whether the element of an action is on a page, or in its window; true for an action without one.

    Args:
        window: The offsets of the window in the page; None means the whole page.
    """
    name = getattr(action, "name", "")
    shown = page if window is None else page[slice(*window)]
    return not name or f'name="{name}"' in shown or name in page_names(shown)


def _left_out(characters: int) -> str:
    return f"<!-- {characters} characters left out -->"
