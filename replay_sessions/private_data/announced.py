"""Private data that words announce, on a page and in what a shopper says or types.

On a page labels and greetings do: "Deliver to …", "Hello, Anna", "Account menu for …", "Recipient: …". Rationales,
goals and searches have no labels and cells; there the words before a name or an address announce it ("I live at …",
"a gift for Anna"; `told_before_…` in words.toml). Some of those take any name, others ("for", "to", "with") only what
people are called. An address goes on as long as its words are numbers, capitalised, or small words of streets, and must
hold a number.
"""

import functools
import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from replay_sessions.private_data.people import PARTICLES, is_person, leading_name
from replay_sessions.private_data.spans import (
    AROUND_WORDS,
    EAST_ASIAN,
    GAP,
    SEPARATOR,
    PageText,
    Span,
    word_list,
    word_set,
)

_WORD = re.compile(r"[^\W\d_][\w’'.-]*")
_PHONE = re.compile(r"[+(]*\d(?:[ ().‑–/-]{0,3}\d){6,14}(?: ?(?:x|ext\.? ?)\d{1,6})?")
_PIECE = re.compile(rf"[^{GAP}]+")
# Between a label and what it labels: a colon, or the end of a text and the beginning of the next.
_COLON = re.compile(rf"\s*+(?:[:：]\s*+)?{SEPARATOR}\s*+|\s*+[:：]\s*+")
_FIRST_WORD = re.compile(r"[^\s,:：、，]*")
_SENTENCE_WORDS = 14
_LONGEST_NAME = 80
_MOST_OWNER_WORDS = 3
_MOST_GREETED = 2  # words of a name that is greeted and unknown: products greet too ("Hi Bio Green Tea")
# What may follow a name: a degree, or which of several of the name.
_SUFFIX = re.compile(r"[ ,]*(?:Jr|Sr|II|III|IV|MD|PhD|Ph\.D|DDS|DVM|B\.?\s?Sc|M\.?\s?Sc|B\.?A|M\.?A|MBA)?\W*")
# What says where something goes: a word that is no small one, or a postcode.
_PLACE = re.compile(r"[^\W\d_a-zà-öø-ÿ]|\d{3}")
_OWNERS = ("'s ", "’s ", "さん", "様", "님")  # what stands between an owner and what is owned
_KINDS = ("name", "weak_name", "address", "weak_address")
_WORD_OF_ADDRESS = (
    r"(?:[#(]?\d[\w/.ºª°-]*|[^\W\d_a-zà-öø-ÿ][^\s,;]*|['’][\w-]+|(?:de|la|las|los|du|des|del|della|di|da|do|dos|das|van|den|der|von|the|of|le|el|y|e|am|an|im|bis|ter"
    r"|rue|avenue|boulevard|place|chemin|plac|ul\.?|al\.?|os\.?|pl\.?|calle|via|rua|n[º°o]|nr\.?|apt\.?|piso|top|kw|m\.|/|-)(?=[\s,]))[)]?"
)
_ADDRESS = re.compile(rf"{_WORD_OF_ADDRESS}(?:(?: ?, ?| |/| / ){_WORD_OF_ADDRESS})*")
_LONGEST_SPOKEN_NAME = 100
_DIGIT = re.compile(r"\d")


def find_announced(page: PageText) -> Iterator[Span]:
    """What a page says itself to be a name or an address."""
    words = _words()
    for start, labels in _beginnings(page, words):
        for label in labels:
            if page.joined[start : start + len(label.words)].lower() == label.words:
                yield from label.find(page.joined, start + len(label.words))
                break
    for mark in _OWNERS:
        start = page.joined.find(mark)
        while start >= 0:
            if words.ending.match(page.joined, start):
                yield from _owner(page.joined, start)
            start = page.joined.find(mark, start + len(mark))


def find_shopper(page: PageText, positions: Iterable[int]) -> Iterator[Span]:
    """Names and phone numbers that stand alone in a text or attribute where a shop shows whose account it is."""
    likely: dict[str, list[Span]] = {}  # names by their shape alone: the shopper's only if there is one of them
    for position in positions:
        start = page.starts[position]
        for match in _PIECE.finditer(page.joined, start, start + len(page.texts[position])):
            piece = match[0].strip()
            begin = match.start() + match[0].index(piece)
            name = leading_name(piece)
            if name and _SUFFIX.fullmatch(piece, len(name)):
                span = Span(begin, begin + len(name), "name", "label")
                if is_person(name):
                    yield span
                elif not _is_in_menu(name, page):
                    likely.setdefault(name, []).append(span)
            elif _PHONE.fullmatch(piece):
                yield Span(begin, begin + len(piece), "phone", "label")
    if len(likely) == 1:
        yield from likely.popitem()[1]


def _is_in_menu(name: str, page: PageText) -> bool:
    """Whether a name may be a link that stands beside the account: "Order History", "Gift Cards"."""
    words = [word.lower() for word in name.split() if word.lower() not in PARTICLES]
    menu_words = word_set("menu_words", "not_private", "after_names")
    is_word = not page.words.isdisjoint(words) or not menu_words.isdisjoint(words)
    return is_word or len(words) < 2 or not name[0].isupper()


def _beginnings(page: PageText, words: "_Words") -> Iterator[tuple[int, "list[_Label]"]]:
    """Where a text or an attribute begins with a word that labels begin with, and those labels."""
    text = page.joined
    for word in page.words & words.first_words.keys():
        for start in page.offsets(word):
            before = start - 1 if text[start - 1 : start] != " " else start - 2
            if before < 0 or text[before] in GAP or text[before] == "¿":
                yield start, words.first_words[word]
    if page.is_east_asian:
        for piece, start in zip(page.texts, page.starts, strict=True):
            if labels := words.labels.get(piece.lstrip()[:1], []):
                yield start + len(piece) - len(piece.lstrip()), labels


def _key(label: str) -> str:
    """What labels are filed under: their first word, or the first letter where words are not apart."""
    first_word = _FIRST_WORD.match(label)
    return label[0] if label[0] >= EAST_ASIAN or first_word is None else first_word[0].strip(AROUND_WORDS)


class _Label(NamedTuple):
    """Words that announce something; `suffix` must come after it."""

    words: str
    kind: str
    suffix: str

    def find(self, text: str, end: int) -> Iterator[Span]:
        if text[end : end + 1].isalnum() and self.words[-1] < EAST_ASIAN:
            return iter(())
        if self.kind == "greeting":
            return _greeted(text, end, self)
        find = _address if self.kind.endswith("address") else _labelled_name
        return find(text, end, weak=self.kind.startswith("weak"))


class _Words:
    """The words of words.toml, ready to be looked up."""

    def __init__(self) -> None:
        endings: list[str] = []
        labels: list[_Label] = []
        for template in word_list("greetings"):
            before, after = template.split("{}")
            if before:
                labels.append(_Label(before.strip().lower(), "greeting", after.strip()))
            else:
                endings.append(after)
        labels += (
            _Label(f"{verb} {words}".lower(), kind, "")
            for kind, list_name in (("weak_address", "changed_addresses"), ("name", "changed_names"))
            for words in word_list(list_name)
            for verb in word_list("verbs_before_labels")
        )
        labels += (_Label(words.lower(), kind, "") for kind in _KINDS for words in word_list(f"{kind}_labels"))
        self.labels: dict[str, list[_Label]] = {}
        for label in sorted(labels, key=lambda label: -len(label.words)):
            self.labels.setdefault(_key(label.words), []).append(label)
        # The first words as they may be written at the beginning of a text.
        self.first_words = {
            written: label_list
            for word, label_list in self.labels.items()
            for written in (word, word.capitalize(), word.upper())
            if not written[:1].islower()
        }
        written_endings = [re.escape(ending).replace("'", "['’]") for ending in endings]
        self.ending = re.compile(rf"(?:{'|'.join(written_endings)})(?!\w)")
        self.all_labels = frozenset(label.words for label in labels)


@functools.cache
def _words() -> _Words:
    return _Words()


def _value_start(text: str, end: int, *, blank_enough: bool) -> int:
    """Where what a label announces begins; -1 where the label only begins a sentence."""
    match = _COLON.match(text, end)
    if match:
        return match.end()
    if blank_enough and end < len(text):
        return end + 1 if text[end] == " " else end
    return -1


def _piece(text: str, start: int) -> str:
    """The text from a place up to the next tag, quote or label."""
    match = _PIECE.match(text, start)
    return match[0].rstrip() if match else ""


def _greeted(text: str, end: int, greeting: _Label) -> Iterator[Span]:
    start = _value_start(text, end, blank_enough=True)
    if SEPARATOR in text[end:start] and greeting.words[-1] not in ",，、":
        return  # a menu with "Hi" in it, say
    piece = _piece(text, start)
    name = leading_name(piece)
    rest = piece[len(name) :].lstrip()
    if not name or not rest.startswith(greeting.suffix) or (len(name.split()) > _MOST_GREETED and not is_person(name)):
        return
    following = _WORD.search(rest)
    if greeting.suffix or following is None or following[0].lower() in word_set("after_names") or rest[0] in "!.,。！":
        yield Span(start, start + len(name), "name", "label")


def _labelled_name(text: str, end: int, *, weak: bool) -> Iterator[Span]:
    start = _value_start(text, end, blank_enough=False)
    piece = _piece(text, start) if start >= 0 else ""
    name = leading_name(piece)
    if not name or not _SUFFIX.fullmatch(piece, len(name)) or name.lower() in _words().all_labels:
        return
    if not weak or is_person(name):
        yield Span(start, start + len(name), "name", "label")


def _address(text: str, end: int, *, weak: bool) -> Iterator[Span]:
    start = _value_start(text, end, blank_enough=not weak)
    piece = _piece(text, start).partition("[")[0].rstrip() if start >= 0 else ""  # [address] stands there already
    if not piece or piece[0].islower() or len(piece.split()) > _SENTENCE_WORDS:
        return
    if weak and SEPARATOR in text[end:start] and not any(map(str.isdigit, piece)):
        return
    if not _PLACE.search(piece):
        return
    first = _WORD.match(piece)
    if first is None or first[0].lower() not in word_set("not_private"):
        yield Span(start, start + len(piece), "address", "label")


def _owner(text: str, end: int) -> Iterator[Span]:
    """The name before "'s Orders" or "さん", if its text begins with it."""
    first = max(0, end - _LONGEST_NAME)
    start = max(text.rfind(mark, first, end) for mark in GAP) + 1
    if start == 0 and first > 0:
        return
    piece = text[start:end]
    name = leading_name(piece.strip())
    if name and name == piece.strip() and len(name.split()) <= _MOST_OWNER_WORDS:
        start += piece.index(name)
        yield Span(start, start + len(name), "name", "label")


def find_spoken(page: PageText) -> Iterator[Span]:
    """Names and addresses that the words before them announce."""
    text = page.joined
    for match in _announcing("told_before_addresses").finditer(text):
        address = _ADDRESS.match(text, match.end())
        if address and _DIGIT.search(written := address[0].rstrip(".,;:!? ")):
            yield Span(match.end(), match.end() + len(written), "address")
    for words in ("told_before_names", "told_before_people"):
        for match in _announcing(words).finditer(text):
            name = leading_name(text[match.end() : match.end() + _LONGEST_SPOKEN_NAME])
            if name and (words == "told_before_names" or is_person(name)):
                yield Span(match.end(), match.end() + len(name), "name")


@functools.cache
def _announcing(words: str) -> re.Pattern[str]:
    alternatives = "|".join(re.escape(word) for word in sorted(word_list(words), key=len, reverse=True))
    return re.compile(rf"(?<!\w)(?i:{alternatives})(?: ?:)? +")
