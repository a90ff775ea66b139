"""Cuts pages to a budget.

When the context is too long, the earliest pages go while their actions and rationales stay (Customer-R1, section 4.1).
Where that is not enough, the current page is cut to a window: around the element that the shopper used last, if it is
still on this page, else from the top, as a page is seen when it opens. A window around the logged action of the step
itself would give the answer away. What was left out shows: a dropped page is "" in the history, a cut one says so in a
comment.
"""

import json
import re
from collections.abc import Sequence

_CUT = re.compile(r"[<\n]")  # where a page is cut


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


def shorten_page(page: str, room: int, last_action: str | None) -> str:
    """The page, or a window of it that has at most `room` characters; "" if not even its comments fit.

    Args:
        last_action: The shopper's previous action as JSON text; the window lies around its element, if it is here.
    """
    if len(page) <= room:
        return page
    width = room - 2 * len(_left_out(len(page)))
    return _window(page, _find_element(page, last_action), width) if width > 0 else ""


def _window(page: str, focus: int, width: int) -> str:
    """About `width` characters of the page with `focus` in the middle, cut before tags or lines where there are any."""
    start = max(0, min(focus - width // 2, len(page) - width))
    end = start + width
    if start > 0:
        cut = _CUT.search(page, start, end)
        start = cut.start() if cut else start
    if end < len(page):
        end = max(page.rfind("<", start + 1, end + 1), page.rfind("\n", start + 1, end + 1), 0) or end
    before = _left_out(start) if start > 0 else ""
    after = _left_out(len(page) - end) if end < len(page) else ""
    return before + page[start:end] + after


def _left_out(characters: int) -> str:
    return f"<!-- {characters} characters left out -->"


def _find_element(page: str, last_action: str | None) -> int:
    name = json.loads(last_action).get("name", "") if last_action else ""
    return max(0, page.find(f'name="{name}"')) if name else 0
