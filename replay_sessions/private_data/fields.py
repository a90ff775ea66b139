"""What forms hold of somebody: values of fields that are called after it, by their label, placeholder, name or id."""

import functools
import re
from collections.abc import Iterator

from replay_sessions.private_data.labelled import is_called
from replay_sessions.private_data.spans import (
    SEPARATOR,
    SURE,
    VOWEL_SIGNS,
    PageText,
    Span,
    is_unspaced,
    word_list,
    word_set,
)
from replay_sessions.private_data.urls import kind_by_name

_VALUE = re.compile(r' value="([^"]+)"')
# Of fields whose value somebody typed; the names of attributes say nothing of it.
_TYPED = re.compile(r'<(?:input|textarea)\b|(?<= )type="(?:text|tel|email|date|number)?"')
_ATTRIBUTE = re.compile(r'<\w+|type="\w*"|[\w-]+="|"')
_NO_WORD = re.compile(rf"(?:[^\w{VOWEL_SIGNS}]|_)+|(?<=[a-z])(?=[A-Z])")
_LONGEST_NAME = 60
# By what their labels hold, the first that fits.
_STEMS = {"birth_date": "birth_stems", "id_number": "id_stems"}
_LABELS = {
    "phone": ("phone_labels",),
    "address": ("weak_address_labels", "address_fields"),
    "name": ("name_labels", "name_fields"),
}


def find_fields(page: PageText) -> Iterator[Span]:
    """The values of fields on a page that are somebody's."""
    text = page.joined
    for match in _VALUE.finditer(text):
        start = text.rfind(SEPARATOR, 0, match.start()) + 1
        end = text.find(SEPARATOR, match.end())
        around = f"{text[start : match.start()]} {text[match.end() : end if end >= 0 else None]}"
        kinds = _kinds_of(_ATTRIBUTE.sub(" ", around)) if _TYPED.search(around) else ()
        if kind := next((kind for kind in kinds if _fits(kind, match[1])), ""):
            yield Span(*match.span(1), kind, "field", SURE)


def _kinds_of(words: str) -> Iterator[str]:
    """The kinds of private data that a field may hold by the words on it, the likeliest first."""
    yield from (kind for kind in map(kind_by_name, words.split()) if kind and kind != "order")
    padded = f" {' '.join(_NO_WORD.sub(' ', words).lower().split())} "
    is_own = "mail" not in padded and word_set("no_name_fields").isdisjoint(padded.split())
    yield from (kind for kind, stems in _STEMS.items() if is_called(padded, stems))
    for kind in _LABELS:
        if (is_own or kind not in ("name", "address")) and any(phrase in padded for phrase in _phrases(kind)):
            yield kind
    if padded.strip() in _short_labels():
        yield "name"


def _fits(kind: str, value: str) -> bool:
    digits = sum(map(str.isdigit, value))
    if value[0] == "[" or kind == "secret":
        return False
    if kind == "email":
        return "@" in value
    if kind == "name":
        return len(value) <= _LONGEST_NAME and digits <= 1 and any(map(str.isalpha, value)) and "@" not in value
    return kind == "address" or digits >= 2


@functools.cache
def _phrases(kind: str) -> tuple[str, ...]:
    phrases = {" ".join(_NO_WORD.sub(" ", label).lower().split()) for label in word_list(*_LABELS[kind])}
    return tuple(phrase if is_unspaced(phrase[0]) else f" {phrase} " for phrase in phrases if phrase)


@functools.cache
def _short_labels() -> frozenset[str]:
    return frozenset(label.lower() for label in word_list("weak_name_labels"))
