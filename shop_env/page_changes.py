"""Pages as changes (`context.pages`): a prompt replaces parts that repeat earlier pages of the session by references.

    page 1   <h1>Kettles</h1><a name="results.one">One</a><a name="results.two">Two</a><a name="cart">Cart (0)</a>
    page 2   <!-- tags 1-6 of page 1 --><a name="cart">Cart (1)</a>

A tag (opening or closing) includes the text behind it; tags and pages are numbered from 1. Nothing is lost: every page
can be restored. A page refers only to pages that its prompt shows, and its text does not depend on later pages, so each
prompt stays a prefix of the next. This departs from the papers; observations hold complete pages in either case.
"""

import re
from bisect import bisect_left
from collections.abc import Sequence
from typing import Literal

PageForm = Literal["full", "changes"]

RUN = 4  # the smallest number of tags in a reference
MAX_CANDIDATES = 8  # how many earlier occurrences of a run are compared, the latest first

_TAG = re.compile(r"<[^<]*|^[^<]+")


class SessionPages:
    """The pages of a session as prompts show them; a page that is not shown is ""."""

    def __init__(self, pages: Sequence[str], form: PageForm) -> None:
        self._form, self._pages = form, [self.escape(page, form) for page in pages]
        self._tags: list[list[str]] = []
        self._positions: dict[tuple[str, ...], list[tuple[int, int]]] = {}  # (page, tag) of each run of RUN tags
        for number, page in enumerate(self._pages if form == "changes" else ()):
            self._tags.append(_TAG.findall(page))
            for position, run in enumerate(_runs(self._tags[-1])):
                self._positions.setdefault(run, []).append((number, position))

    def text(self, number: int, first: int = 0) -> str:
        """Returns the text of page `number` in a prompt that begins with page `first`, both counted from 0."""
        if self._form == "full" or number == first:
            return self._pages[number]
        tags, parts, position = self._tags[number], list[str](), 0
        while position < len(tags):
            page, start, length = self._longest(number, position, first)
            repeated = "".join(tags[position : position + length])
            reference = f"<!-- tags {start + 1}-{start + length} of page {page + 1} -->"
            is_shorter = len(reference) < len(repeated)
            parts.append(reference if is_shorter else tags[position])
            position += length if is_shorter else 1
        return "".join(parts)

    def _longest(self, number: int, position: int, first: int) -> tuple[int, int, int]:
        """Finds the longest sequence of tags on an earlier page that the page repeats from a tag on.

        Returns:
            The page, the sequence's first tag there, and its length in tags; length 0 means no repetition.
        """
        tags, longest = self._tags[number], (0, 0, 0)
        positions = self._positions.get(tuple(tags[position : position + RUN]), [])
        end = bisect_left(positions, (number, 0))
        for page, start in reversed(positions[max(0, end - MAX_CANDIDATES) : end]):
            if page >= first:
                length = _common_length(tags, position, self._tags[page], start)
                longest = max(longest, (page, start, length), key=lambda stretch: stretch[2])
        return longest

    @staticmethod
    def escape(page: str, form: PageForm) -> str:
        """Returns the page with a dash added to its own comments that look like references."""
        return re.sub("<!-- (-*)tags ", r"<!-- -\1tags ", page) if form == "changes" else page


def _common_length(tags: Sequence[str], position: int, others: Sequence[str], start: int) -> int:
    """Returns how many tags two pages share from these tags on."""
    longest = min(len(tags) - position, len(others) - start)
    return next((length for length in range(longest) if tags[position + length] != others[start + length]), longest)


def _runs(tags: Sequence[str]) -> list[tuple[str, ...]]:
    return [tuple(tags[position : position + RUN]) for position in range(len(tags) - RUN + 1)]
