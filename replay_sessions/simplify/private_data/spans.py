"""What the finders of private data share: the texts of a page in one string, and spans of that string."""

import functools
import re
from collections.abc import Container, Iterator, Sequence
from typing import Literal, NamedTuple

__all__ = ["AROUND_WORDS", "EAST_ASIAN", "GAP", "SEPARATOR", "PageText", "Span"]

SEPARATOR = "\x02"  # between two texts of a page
# A character class body: what no value contains, since a text or an attribute ends there.
GAP = '<>"\x01\x02'
AROUND_WORDS = ".,;:()[]\"'’!?¿、，。：°º#№"
EAST_ASIAN = "\u3000"  # from here on scripts put no blanks between words
# Chinese, Japanese and Korean letters.
_EAST_ASIAN = re.compile("[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7a3]")


class Span(NamedTuple):
    """A stretch of text that looks private: what it is, and what says so."""

    start: int
    end: int
    kind: str
    found_by: Literal["label", "pattern"] = "pattern"


class PageText:
    """The texts of a page (pieces of visible text, attributes as they stand in a tag) in one string.

    Args:
        continued: The positions of texts that go on in the line of the one before.

    Attributes:
        joined: All texts; where one does not go on in the next there is a SEPARATOR, so that what stands in
            neighbouring cells is found together and still told apart.
        starts: Where each text begins in `joined`.
    """

    def __init__(self, texts: Sequence[str], continued: Container[int] = ()) -> None:
        self.texts = texts
        self.starts: list[int] = []
        pieces: list[str] = []
        start = 0
        for position, text in enumerate(texts):
            if position and position not in continued:
                pieces.append(SEPARATOR)
                start += 1
            pieces.append(text)
            self.starts.append(start)
            start += len(text)
        self.joined = "".join(pieces)

    def without(self, spans: Sequence[Span]) -> list[str]:
        """The texts with `[kind]` in the place of each span. Spans are in order and do not overlap."""
        texts: list[str] = []
        upcoming = iter((*spans, Span(len(self.joined) + 1, len(self.joined) + 1, "")))
        span = next(upcoming)
        for text, start in zip(self.texts, self.starts, strict=True):
            end = start + len(text)
            if span.start >= end:
                texts.append(text)
                continue
            kept = ""
            while span.start < end:
                if span.start >= start:
                    kept += f"{self.joined[start : span.start]}[{span.kind}]"
                start = min(span.end, end)
                if span.end > end:
                    break  # it goes on in the next text
                span = next(upcoming)
            texts.append(kept + self.joined[start:end])
        return texts

    @functools.cached_property
    def words(self) -> set[str]:
        """The different words, without the punctuation around them."""
        words = set(self.joined.replace(SEPARATOR, " ").replace('"', " ").split())
        bare = {word for word in words if word.isalnum()}
        return bare.union([word.strip(AROUND_WORDS) for word in words - bare])

    @functools.cached_property
    def _lines(self) -> str:
        return "\n".join(("", *self.words, ""))

    def clues(self, pattern: re.Pattern[str]) -> list[str]:
        """The words that a pattern finds in the list of all different words, one a line."""
        return pattern.findall(self._lines)

    @functools.cached_property
    def is_east_asian(self) -> bool:
        """Whether there is text in a script that puts no blanks between words."""
        return not self.joined.isascii() and _EAST_ASIAN.search(self.joined) is not None

    def places(self, word: str) -> Iterator[int]:
        """Where a word stands in `joined`, not as a part of another."""
        text = self.joined
        start = text.find(word) if word else -1
        while start >= 0:
            end = start + len(word)
            apart = not text[end : end + 1].isalnum() and not text[start - 1 : start].isalnum()
            if apart or word[:1] >= EAST_ASIAN:
                yield start
            start = text.find(word, end)
