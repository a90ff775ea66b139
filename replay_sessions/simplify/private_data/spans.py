"""What the finders of private data share: the texts of a page in one string, and spans of that string."""

import functools
import re
from collections.abc import Sequence
from typing import NamedTuple

__all__ = ["GAP", "SEPARATOR", "PageText", "Span"]

SEPARATOR = "\x02"  # between two texts of a page
# A character class body: what no value contains, since a text or an attribute ends there.
GAP = '<>"\x01\x02'
_AROUND_WORDS = ".,;:()[]\"'’!?"


class Span(NamedTuple):
    start: int
    end: int
    kind: str


class PageText:
    """The texts of a page (pieces of visible text, and attributes as they stand in a tag) in one string.

    Attributes:
        joined: All texts with SEPARATOR between them, so that what stands in neighbouring cells is found together.
        starts: Where each text begins in `joined`.
    """

    def __init__(self, texts: Sequence[str]) -> None:
        self.texts = texts
        self.joined = SEPARATOR.join(texts)
        self.starts: list[int] = []
        start = 0
        for text in texts:
            self.starts.append(start)
            start += len(text) + 1

    @functools.cached_property
    def words(self) -> set[str]:
        """The different words, without the punctuation around them."""
        return {word.strip(_AROUND_WORDS) for word in set(self.joined.replace(SEPARATOR, " ").split())}

    def around(self, word: str, reach: int) -> list[tuple[int, int]]:
        """Stretches of text around each place where a word stands."""
        return [
            (max(0, match.start() - reach), min(len(self.joined), match.end() + reach))
            for match in re.finditer(re.escape(word), self.joined)
        ]
