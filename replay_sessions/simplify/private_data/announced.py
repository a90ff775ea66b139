"""Private data that the page itself announces: "Deliver to …", "Hello, Anna", "Order #…", "Phone: …"."""

import functools
import re
from collections.abc import Iterable, Iterator

from replay_sessions.simplify.private_data.labels import word_list
from replay_sessions.simplify.private_data.spans import GAP, SEPARATOR, PageText, Span

__all__ = ["find_announced"]

_MAX_NAME_WORDS = 4
_WORD = re.compile(r"[^\W\d_][\w’'.-]*")
_PARTICLES = frozenset("al bin da de del della den der di dos du el ibn la le ter van von y zu".split())
_PIECE = re.compile(rf"[^{GAP}]+")
# Between a label and what it labels: a colon, or the end of a text and the beginning of the next.
_COLON = re.compile(rf"\s*[:：]?\s*{SEPARATOR}\s*|\s*[:：]\s*")
_ATTRIBUTE = re.compile(r'="')
_SENTENCE_WORDS = 14


def find_announced(page: PageText) -> Iterator[Span]:
    """What a page says itself to be a name or an address."""
    words = _words()
    text = page.joined
    for start in _beginnings(page, words.first_words):
        match = words.labels.match(text, start)
        if match is None:
            continue
        kind, suffix = words.kinds[match[1].lower()]
        if kind == "greeting":
            yield from _greeted(text, match.end(), suffix)
        elif kind == "address":
            yield from _address(text, match.end())
        else:
            yield from _labelled_name(text, match.end())
    for match in words.endings.finditer(text):
        yield from _owner(text, match.start())


def _beginnings(page: PageText, first_words: frozenset[str]) -> Iterator[int]:
    """Where texts and attributes begin that may begin with a label."""
    for text, start in zip(page.texts, page.starts, strict=True):
        if '="' in text:
            yield from (start + match.end() for match in _ATTRIBUTE.finditer(text))
            continue
        words = text.split(None, 1)
        if words and (words[0].rstrip(",:").lower() in first_words or not words[0].isascii()):
            yield start


class _Words:
    """The words of words.toml, as patterns."""

    def __init__(self) -> None:
        self.kinds: dict[str, tuple[str, str]] = {}  # what begins a text -> what follows, and what comes after it
        endings: list[str] = []
        for template in word_list("greetings"):
            before, after = template.split("{}")
            if before:
                self.kinds.setdefault(before.strip().lower(), ("greeting", after.strip()))
            else:
                endings.append(re.escape(after).replace("'", "['’]"))
        for kind in ("name", "address"):
            for label in word_list(f"{kind}_labels"):
                self.kinds.setdefault(label.lower(), (kind, ""))
        self.labels = re.compile(rf"\s?({_alternation(self.kinds)})(?!\w)")
        self.first_words = frozenset(label.split()[0].rstrip(",:") for label in self.kinds)
        self.endings = re.compile(rf"(?:{'|'.join(endings)})(?!\w)")
        self.not_private = frozenset(word_list("not_private"))
        self.after_names = frozenset(word_list("after_names"))


@functools.cache
def _words() -> _Words:
    return _Words()


def _alternation(labels: Iterable[str]) -> str:
    """A pattern of many words, grouped by their first letter so that few of them are tried at any place."""
    groups: dict[str, list[str]] = {}
    for label in sorted(labels, key=len, reverse=True):
        groups.setdefault(label[0], []).append(re.escape(label[1:]))
    return "|".join(
        f"[{letter.upper()}{letter}](?i:{'|'.join(rest)})"
        if letter.isalpha()
        else f"{re.escape(letter)}(?:{'|'.join(rest)})"
        for letter, rest in groups.items()
    )


def _value_start(text: str, end: int, *, blank_enough: bool) -> int:
    """Where what a label announces begins; -1 where the label only begins a sentence."""
    found = _COLON.match(text, end)
    if found:
        return found.end()
    if blank_enough and end < len(text):
        return end + 1 if text[end] == " " else end
    return -1


def _piece(text: str, start: int) -> str:
    """The text from a place up to the next tag, quote or label."""
    found = _PIECE.match(text, start)
    return found[0].rstrip() if found else ""


def _name(piece: str) -> str:
    """The name that a piece begins with; "" where it does not look like one."""
    taken: list[str] = []
    end = 0
    words = _words()
    for match in _WORD.finditer(piece):
        word = match[0]
        bare = word.lower().rstrip(".")
        if (taken and piece[end : match.start()] not in (" ", "·", "・")) or (not taken and match.start()):
            break
        if bare in words.not_private or bare in words.after_names:
            break
        if word[0].islower() and (not taken or bare not in _PARTICLES):
            break
        taken.append(word)
        end = match.end()
        if len(taken) == _MAX_NAME_WORDS:
            break
    while taken and taken[-1].lower() in _PARTICLES:
        taken.pop()
        end = end - len(taken) if not taken else piece.rfind(taken[-1], 0, end) + len(taken[-1])
    return piece[:end].rstrip(".-'’")


def _greeted(text: str, end: int, suffix: str) -> Iterator[Span]:
    start = _value_start(text, end, blank_enough=True)
    piece = _piece(text, start)
    name = _name(piece)
    rest = piece[len(name) :].lstrip()
    if not name or not rest.startswith(suffix):
        return
    following = _WORD.search(rest)
    if suffix or following is None or following[0].lower() in _words().after_names or rest[0] in "!.,。！":
        yield Span(start, start + len(name), "name")


def _labelled_name(text: str, end: int) -> Iterator[Span]:
    start = _value_start(text, end, blank_enough=False)
    piece = _piece(text, start) if start >= 0 else ""
    name = _name(piece)
    if name and not any(map(str.isalnum, piece[len(name) :])):
        yield Span(start, start + len(name), "name")


def _address(text: str, end: int) -> Iterator[Span]:
    start = _value_start(text, end, blank_enough=True)
    piece = _piece(text, start)
    first = _WORD.match(piece)
    if not piece or piece[0].islower() or len(piece.split()) > _SENTENCE_WORDS:
        return
    if first is not None and first[0].lower() in _words().not_private:
        return
    yield Span(start, start + len(piece), "address")


def _owner(text: str, end: int) -> Iterator[Span]:
    """The name before "'s Orders" or "さん", if its text begins with it."""
    start = max(text.rfind(mark, 0, end) for mark in GAP) + 1
    piece = text[start:end].lstrip()
    name = _name(piece)
    if name and name == piece and len(name.split()) < _MAX_NAME_WORDS:
        yield Span(end - len(name), end, "name")
