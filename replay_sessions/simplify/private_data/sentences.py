"""Private data in what a shopper says or types: rationales, goals, searches ("I live at …", "a gift for Anna").

Sentences have no labels and cells, so words before a name or an address announce it (`told_before_…` in words.toml):
some take any name, others ("for", "to", "with") only what people are called. An address goes on as long as its words
are numbers, capitalised, or small words of streets, and must hold a number.
"""

import functools
import re
from collections.abc import Iterator

from replay_sessions.simplify.private_data.labels import word_list
from replay_sessions.simplify.private_data.people import is_person, leading_name
from replay_sessions.simplify.private_data.spans import PageText, Span

__all__ = ["find_spoken"]

_WORD_OF_ADDRESS = re.compile(
    r"(?:[#(]?\d[\w/.ºª°-]*|[^\W\d_a-zà-öø-ÿ][^\s,;]*|['’][\w-]+|(?:de|la|las|los|du|des|del|della|di|da|do|dos|das|van|den|der|von|the|of|le|el|y|e|am|an|im|bis|ter"
    r"|rue|avenue|boulevard|place|chemin|plac|ul\.?|al\.?|os\.?|pl\.?|calle|via|rua|n[º°o]|nr\.?|apt\.?|piso|top|kw|m\.|/|-)(?=[\s,]))[)]?"
)
_BETWEEN = re.compile(r"(?: ?, ?| |/| / )")
_LONGEST_NAME = 100
_DIGIT = re.compile(r"\d")


def find_spoken(page: PageText) -> Iterator[Span]:
    """Names and addresses that the words before them announce."""
    text = page.joined
    for found in _announcing("told_before_addresses").finditer(text):
        end = _end_of_address(text, found.end())
        if _DIGIT.search(text, found.end(), end):
            yield Span(found.end(), end, "address")
    for words in ("told_before_names", "told_before_people"):
        for found in _announcing(words).finditer(text):
            name = leading_name(text[found.end() : found.end() + _LONGEST_NAME])
            if name and (is_person(name) if words == "told_before_people" else not _is_place(text, found.end())):
                yield Span(found.end(), found.end() + len(name), "name")


@functools.cache
def _announcing(words: str) -> re.Pattern[str]:
    alternatives = "|".join(re.escape(word) for word in sorted(word_list(words), key=len, reverse=True))
    return re.compile(rf"(?<!\w)(?i:{alternatives})(?: ?:)? +")


def _end_of_address(text: str, start: int) -> int:
    end = start
    while word := _WORD_OF_ADDRESS.match(text, end if end == start else _after_gap(text, end)):
        end = word.end()
    return end - (len(text[start:end]) - len(text[start:end].rstrip(".,;:!? ")))


def _after_gap(text: str, end: int) -> int:
    gap = _BETWEEN.match(text, end)
    return gap.end() if gap else len(text)


def _is_place(text: str, start: int) -> bool:
    return _DIGIT.match(text, start) is not None
