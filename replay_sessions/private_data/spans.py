"""What the finders of private data share: the texts of a page in one string, and spans of that string."""

import copy
import functools
import re
import tomllib
from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator, Sequence
from importlib import resources
from itertools import accumulate, chain
from typing import Any, Literal, NamedTuple

SEPARATOR = "\x02"  # between two texts of a page
# A character class body: what no value contains, since a text or an attribute ends there.
GAP = '<>"\x01\x02'
AROUND_WORDS = ".,;:()[]\"'’!?¿¡“”„«»…、，。：！？；°º#№"
# A character class body: what a word goes on with that is no letter to `re`: the vowels of Indian scripts and of Thai.
VOWEL_SIGNS = "\u0900-\u0963\u0971-\u0dff\u0e31-\u0e4e"
EAST_ASIAN = "\u3000"  # from here on scripts put no blanks between words
_LONGEST_PIECE = 1_000
SURE = 3  # signs, from which on a name is taken out wherever it is repeated
_TO_GAP = re.compile(rf"[^{GAP}]{{0,{_LONGEST_PIECE}}}")
_FEW = 50  # up to so many texts are looked for one by one
_RUN = re.compile(r"\w+|[^\w\s]")
# Chinese, Japanese and Korean letters.
_EAST_ASIAN = re.compile("[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7a3]")
_THAI = re.compile("[\u0e00-\u0e7f]")


class Span(NamedTuple):
    """A stretch of text that looks private: what it is, what says so, and of a name how many signs there are."""

    start: int
    end: int
    kind: str
    found_by: Literal["label", "pattern", "field"] = "pattern"
    signs: int = SURE


class PageText:
    """The texts of a page (pieces of visible text, attributes as they stand in a tag) in one string.

    Args:
        continued: The positions of texts that go on in the line of the one before.

    Attributes:
        joined: All texts; where one does not go on in the next there is a SEPARATOR, so that what stands in
            neighbouring cells is found together and still told apart.
        starts: Where each text begins in `joined`.
        is_speech: It is what a shopper said or typed.
        phrases: The phrases on it that `phrases.py` looks for, once they were looked for.
        private_from: Where what was found private by itself begins: no name goes on there.
    """

    def __init__(self, texts: Sequence[str], continued: Iterable[int] = (), *, is_speech: bool = False) -> None:
        self.texts = texts
        self.is_speech = is_speech
        self.phrases: list[Any] | None = None
        separators = [SEPARATOR] * len(texts)
        for position in continued:  # those of neighboring elements are words of their own, though nothing parts them
            before, after = texts[position - 1][-1:], texts[position][:1]
            is_apart = before.isalnum() and after.isalnum() and not (before.isdigit() and after.isdigit())
            separators[position] = " " if is_apart else ""
        pieces = list(chain.from_iterable(zip(separators, texts, strict=True)))
        self.joined = "".join(pieces)
        self.private_from: list[int] = []
        self.starts = list(accumulate(map(len, pieces)))[::2]  # each text begins where its separator ends

    def without(self, spans: Sequence[Span]) -> dict[int, str]:
        """The texts that change when `[kind]` takes the place of each span, by their position.

        Args:
            spans: In order and without overlaps.
        """
        edits: dict[int, list[tuple[int, int, str]]] = {}
        for span in spans:
            position = bisect_right(self.starts, span.start) - 1
            replacement = f"[{span.kind}]"
            while position < len(self.texts) and (start := self.starts[position]) < span.end:
                edits.setdefault(position, []).append((max(span.start - start, 0), span.end - start, replacement))
                replacement = ""  # where it goes on in the next text
                position += 1
        return {position: _edited(self.texts[position], changes) for position, changes in edits.items()}

    def text_at(self, offset: int) -> int:
        """The position of the text in which a place lies."""
        return bisect_right(self.starts, offset) - 1

    def piece_around(self, offset: int) -> tuple[int, int]:
        """Where the text, or the attribute, begins and ends in which a place lies; of a long one only what is near."""
        start = max(self.joined.rfind(mark, max(0, offset - _LONGEST_PIECE), offset) for mark in GAP) + 1
        after = _TO_GAP.match(self.joined, offset)
        return start, after.end() if after else offset

    def by_line(self) -> tuple["PageText", set[int]]:
        """The same with each line as one text, and which of those are of several texts."""
        page = copy.copy(self)  # with what is known of its words
        page.texts = self.joined.split(SEPARATOR)[1:]
        page.starts = list(accumulate((len(text) + 1 for text in page.texts), initial=1))[:-1]
        return page, {page.text_at(start) for start in set(self.starts).difference(page.starts)}

    @functools.cached_property
    def words(self) -> set[str]:
        """The different words, without the punctuation around them."""
        words = set(self.joined.replace(SEPARATOR, " ").replace('"', " ").split())
        return words.union([word.strip(AROUND_WORDS) for word in words if not word.isalnum()])

    @functools.cached_property
    def small(self) -> dict[str, str]:
        """The different words, and each in small letters."""
        return {word: lower(word) for word in self.words}

    @functools.cached_property
    def lowered(self) -> set[str]:
        """The different words, in small letters."""
        return set(self.small.values())

    @functools.cached_property
    def capitalised(self) -> list[str]:
        """Those of the words that do not begin with a small letter."""
        return [word for word in self.words if not word[:1].islower()]

    @functools.cached_property
    def _lines(self) -> str:
        return "\n".join(("", *[word for word in self.words if not word.isalpha()], ""))

    def clues(self, pattern: re.Pattern[str]) -> list[str]:
        """The words that a pattern finds in the list of all different words that are not all letters, one a line."""
        return pattern.findall(self._lines)

    @functools.cached_property
    def is_east_asian(self) -> bool:
        """Whether there is text in a script that puts no blanks between words."""
        return not self.joined.isascii() and _EAST_ASIAN.search(self.joined) is not None

    @functools.cached_property
    def is_unspaced(self) -> bool:
        """Whether there is text in such a script, or in Thai."""
        return self.is_east_asian or (not self.joined.isascii() and _THAI.search(self.joined) is not None)

    def offsets(self, word: str) -> Iterator[int]:
        """Where a word stands in `joined`, not as a part of another."""
        text = self.joined
        start = text.find(word) if word else -1
        while start >= 0:
            end = start + len(word)
            apart = not text[end : end + 1].isalnum() and not text[start - 1 : start].isalnum()
            if apart or word[:1] >= EAST_ASIAN:
                yield start
            start = text.find(word, end)

    def offsets_of(self, wanted: Collection[str]) -> Iterator[tuple[int, str]]:
        """Where several texts stand in `joined`, each as `offsets` says, and which of them it is.

        Many are found by one look at each word of the page, whatever their number; those that begin inside a run of
        letters of a script without blanks are not among them then.
        """
        if len(wanted) <= _FEW:
            for text in wanted:
                yield from ((offset, text) for offset in self.offsets(text))
            return
        seen = set(wanted)
        lengths: dict[str, set[int]] = {}  # of the texts that begin with the same word
        for text in seen:
            if first := _RUN.match(text):
                lengths.setdefault(first[0], set()).add(len(text))
        joined = self.joined
        for run in _RUN.finditer(joined):
            for length in lengths.get(run[0], ()):
                end = run.start() + length
                if joined[run.start() : end] in seen and not joined[end : end + 1].isalnum():
                    yield run.start(), joined[run.start() : end]


def _edited(text: str, changes: list[tuple[int, int, str]]) -> str:
    parts: list[str] = []
    done = 0
    for start, end, replacement in changes:
        parts += (text[done:start], replacement)
        done = end
    return "".join((*parts, text[done:]))


def lower(text: str) -> str:
    """A text in small letters, each where it was: Turkish's "İ" would become two."""
    return text.lower() if text.isascii() else text.replace("İ", "i").lower()


def is_unspaced(letter: str) -> bool:
    """Whether a letter is of a script that puts no blanks between words."""
    return letter >= EAST_ASIAN or _THAI.match(letter) is not None


def word_list(*names: str) -> list[str]:
    """The words of some lists of words.toml."""
    return [word for name in names for word in read_lists("words")[name]]


@functools.cache
def word_set(*names: str) -> frozenset[str]:
    """The words of some lists of words.toml, to look words up in."""
    return frozenset(word_list(*names))


@functools.cache
def read_lists(file: str) -> dict[str, Any]:
    """The lists of a TOML file of this package."""
    return tomllib.loads((resources.files("replay_sessions.private_data") / f"{file}.toml").read_text("utf-8"))
