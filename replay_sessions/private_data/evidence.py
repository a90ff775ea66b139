"""People by evidence that no template has to announce: what they are called, and what else of theirs is near.

A name of the gazetteer is no evidence alone: brands, authors and models of dresses are called like people. It goes if
something near speaks of an order or an account, if an address, a number or a mailbox stands beside it, if a mailbox
or initials are made of it, or if a relative or part of it is named on the page too.
"""

import functools
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from typing import NamedTuple

from replay_sessions.private_data.around import is_dated, is_remark
from replay_sessions.private_data.gazetteer import fold, read_gazetteer
from replay_sessions.private_data.people import PARTICLES, is_brand, is_person
from replay_sessions.private_data.signs import CAPITAL, TO_REMOVE, Hit, interface_words
from replay_sessions.private_data.spans import (
    AROUND_WORDS,
    EAST_ASIAN,
    VOWEL_SIGNS,
    PageText,
    Span,
    lower,
    word_list,
    word_set,
)

_WORD = rf"(?:{CAPITAL}[\w’'{VOWEL_SIGNS}-]*\.?)"
_CANDIDATE = re.compile(rf"(?<!\w){_WORD}(?: (?:(?:{'|'.join(sorted(PARTICLES))}) ){{0,2}}{_WORD}){{0,4}}")
CASELESS = "\u0590"  # from here on scripts have no capitals
_CASELESS = re.compile("[\u0590-\u1fff\u3000-\uffef]")
_TOKEN = re.compile(rf"[^\W\d_][\w’'{VOWEL_SIGNS}-]*")
_CASELESS_RUN = re.compile(rf"{_TOKEN.pattern}(?: {_TOKEN.pattern})*")
_SHORTEST = 3
_NEAR = 2  # texts before and after a name
_COLONS = (":", "：")
_COMMAS = (",", "،", "，", "、")
_REACH = 10  # texts before and after a name that may speak of an order
_DENSE = 0.34  # of them do where an order is shown
_LONGEST_LABEL = 5  # words
_LONGEST_SENTENCE = 30  # words of a text that may speak of an order
_SENTENCE = 400  # characters before and after a name that say whether it is in a sentence
_MOST_CANDIDATES = 2_000
_WHOLE_STEM = 3  # letters of a stem that only stands for itself
_LAST_IN_TEXT = re.compile(r"\W*\Z")
_MOST_WITH_DATE = 15  # words of a text that says when somebody wrote something
_MOST_IN_CALL = 8  # words of a text that calls somebody at its end
_SPEAKING_LISTS = (
    "name_labels", "order_stems", "person_phrases", "maybe_person_phrases",
    "owned", "kin", "greetings", "closings", "introductions",
)  # fmt: skip


class _Candidate(NamedTuple):
    """What may be a name: where, its words, and how surely people are called so, from 0 to 2."""

    text: int
    start: int
    name: str
    strength: int


def find_people(page: PageText, others: Collection[Span], found: Iterable[str]) -> Iterator[Hit]:
    """Names that at least two different things speak for.

    Args:
        others: What else is private on the page.
        found: The names that are announced on it.
    """
    if page.is_speech:  # who types a brand has no labels and no neighbors
        return
    named = _by_word(found)
    offsets = [offset for offset, _ in page.offsets_of(_likely(page, named))]
    yield from _find_in(page, others, dict(named), {page.text_at(offset) for offset in offsets})
    by_line, several = page.by_line()
    texts = several.intersection(by_line.text_at(offset) for offset in offsets)
    yield from _find_in(by_line, others, named, texts)  # with what goes on in the line of a name


def _find_in(
    page: PageText, others: Collection[Span], named: dict[str, set[str]], texts: Collection[int]
) -> Iterator[Hit]:
    """The names in some of the texts of a page."""
    candidates = list(_candidates(page, texts))
    if not candidates:
        return
    emails = [page.joined[span.start : span.end] for span in others if span.kind == "email"]
    clues = _Clues(
        {page.text_at(span.start) for span in others if span.kind != "secret"},
        [email.partition("@")[0].lower() for email in emails],
        named,
        _relatives(candidates),
        _acquaintances(candidates),
    )
    hits: list[Hit] = []
    for _ in range(2):  # relatives of those who are found at first are found then
        hits = [
            Hit(candidate.start, candidate.name, candidate.strength + signs - 1, "evidence")
            for candidate in candidates
            if (signs := _signs(page, candidate, clues)) and candidate.strength + signs > TO_REMOVE
        ]
        for word, names in _by_word(hit.name for hit in hits).items():
            named.setdefault(word, set()).update(names)
    yield from hits


def _by_word(names: Iterable[str]) -> dict[str, set[str]]:
    """Names by their words."""
    named: dict[str, set[str]] = {}
    for name in names:
        for word in map(_bare, re.split("[ -]", name)):
            if len(word) >= _SHORTEST:
                named.setdefault(word, set()).add(name)
    return named


class _Clues(NamedTuple):
    """What a page has that may speak for a name: texts with something private, mailboxes, words of names that are
    announced, how many full names end with a word, and given names that stand alone and in a full name."""

    private: set[int]
    mailboxes: list[str]
    named: dict[str, set[str]]
    relatives: Counter[str]
    acquaintances: frozenset[str]


def _likely(page: PageText, named: Collection[str]) -> set[str]:
    """The words of a page that may be of names."""
    names = read_gazetteer()
    return {
        word
        for word in page.capitalised
        if len(word) >= 2
        and ((bare := fold(word)) in names.given or bare in names.family or bare in named or word >= EAST_ASIAN)
    }


def _candidates(page: PageText, texts: Collection[int]) -> Iterator[_Candidate]:
    for text in sorted(texts)[:_MOST_CANDIDATES]:
        written = page.texts[text]
        pattern = _CANDIDATE if written < CASELESS or not _CASELESS.search(written) else _CASELESS_RUN
        for match in pattern.finditer(written):
            name, skipped = _trimmed(match[0])
            start = match.start() + skipped
            place = _place(written, start, start + len(name)) if name else ""
            if place and (strength := _strength(page, name, place)) >= 0:
                yield _Candidate(text, page.starts[text] + start, name, strength)


def _place(text: str, start: int, end: int) -> str:
    """Where a name stands: "apart" in a text of its own or between punctuation, in a "sentence", or ""."""
    before, after = text[max(0, start - _SENTENCE) : start].rstrip(), text[end : end + _SENTENCE].lstrip()
    if before[-1:] == "&" or after[:1] == "&":
        return ""
    if (not before or not before[-1].isalnum()) and (not after or not after[0].isalnum()):
        return "apart"
    words = [*before.split(), *after.split()]
    small = sum(word[0].islower() for word in words)
    is_in_sentence = small > 1 and 5 * small >= 2 * len(words)  # not "Ben Sherman shirt"
    return "sentence" if is_in_sentence and not after[:1].isdigit() and not before[-1:].isdigit() else ""


@functools.lru_cache(1 << 15)
def _trimmed(run: str) -> tuple[str, int]:
    """A run of capitalised words without those of an interface at its ends, and how many letters those before have."""
    words = run.split(" ")
    skipped = 0
    while words and _is_idle(words[0]):
        skipped += len(words.pop(0)) + 1
    while words and (_is_idle(words[-1]) or words[-1] in PARTICLES):
        words.pop()
    return "" if any(map(_is_idle, words)) else " ".join(words).rstrip(".’'-"), skipped


@functools.lru_cache(1 << 15)
def _is_idle(word: str) -> bool:
    bare = _bare(word)
    return (
        bare in interface_words() or bare in word_set("titles", "second_person") or fold(bare) in read_gazetteer().words
    )


@functools.lru_cache(1 << 15)
def _bare(word: str) -> str:
    return lower(word).strip(AROUND_WORDS)


def _strength(page: PageText, name: str, place: str) -> int:
    if name >= EAST_ASIAN:
        return 1 + _is_split(name) if is_person(name) else -1
    if is_brand(name):
        return -1
    names = read_gazetteer()
    written = [part for word in name.split() for part in [_bare(word)] if part and part not in PARTICLES]
    if not written or (name < CASELESS and any(word in page.words for word in written)):  # in small letters too
        return -1
    words = list(map(fold, written))
    given = [word in names.given or (word in names.both and len(words) > 1) for word in words]
    family = [word in names.family or word in names.both or len(word) == 1 for word in words]
    if len(words) == 1:
        return int(not name.isupper()) if given[0] and len(words[0]) >= _SHORTEST else -1
    unknown = sum(not any(pair) for pair in zip(given, family, strict=True))
    is_initial = min(map(len, words)) == 1
    is_headed = len(words) > 2 and not (given[0] or family[0])  # "Collection Tom Ford"
    if unknown > 1 or is_headed or not (is_initial or not names.given.isdisjoint(words)):
        return 0
    is_written_so = not any(len(word) > 1 and word.isupper() for word in name.split())
    return 2 if is_written_so and (unknown == 0 or place == "sentence") else 1


def _is_split(name: str) -> bool:
    """Whether a name without blanks is a surname and a given name."""
    names = read_gazetteer()
    return any(name[:end] in names.family and name[end:].strip() in names.given for end in range(1, len(name)))


def _signs(page: PageText, candidate: _Candidate, clues: _Clues) -> int:
    """How many things around a name say that it is somebody's."""
    position = candidate.text
    words = [_bare(word) for word in candidate.name.split()]
    head, _, tail = page.texts[position].partition(candidate.name)
    tokens = [token for token in _tokens(head + " " + tail) if token not in word_set("titles")]
    before = _tokens(page.texts[position - 1]) if position else []
    is_whole = not tokens
    if not word_set("makers").isdisjoint(before if is_whole else tokens):
        return 0
    label = page.texts[position - 1] if is_whole and position else head
    near = 1 if is_whole else _NEAR
    return sum(
        (
            not clues.private.isdisjoint(range(position - near, position + near + 1)),
            len(tokens) <= _LONGEST_SENTENCE and _speaks_of_order(tokens),
            is_whole
            and len(before) <= _LONGEST_LABEL
            and (_speaks_of_order(before) or " ".join(before) in _weak_labels()),
            candidate.strength > 1 and label.rstrip()[-1:] in _COLONS and len(label.split()) <= _LONGEST_LABEL,
            len(words) > 1 and _near_order(page, position),
            2 * any(len(word) >= _SHORTEST and word in mailbox for mailbox in clues.mailboxes for word in words),
            2 * any(clues.named.get(word, set()) - {candidate.name} for word in words),
            candidate.strength > 0 and clues.relatives[words[-1]] > 1,
            len(words) > 1 and "".join(word[0] for word in words if word).upper() in page.words,
            len(words) == 1 and words[0] in clues.acquaintances,
            candidate.strength > 0 and _is_agent(head if tokens else page.texts[position - 1]),
            len(tokens) <= _MOST_IN_CALL and head.rstrip()[-1:] in _COMMAS and _LAST_IN_TEXT.match(tail) is not None,
            0 < len(tokens) <= _MOST_WITH_DATE and candidate.name < CASELESS and is_dated(head + tail),
            is_whole and position + 1 < len(page.texts) and is_remark(page.texts[position + 1]),
        )
    )


def _is_agent(head: str) -> bool:
    """Whether what stands before a name ends as "answered by" does, in some language, and says no more than that."""
    words = head.split(maxsplit=_LONGEST_LABEL)
    return 1 < len(words) <= _LONGEST_LABEL and lower(words[-1]) in word_set("agents")


def _near_order(page: PageText, position: int) -> bool:
    """Whether many of the texts around a place speak of an order."""
    around = [text for text in page.texts[max(0, position - _REACH) : position + _REACH + 1] if text.strip()]
    return sum(map(_is_of_order, around)) >= _DENSE * len(around)


@functools.lru_cache(4096)
def _is_of_order(text: str) -> bool:
    tokens = _tokens(text)
    spoken = word_set("second_person")
    return len(tokens) <= _LONGEST_SENTENCE and _speaks_of_order(token for token in tokens if token not in spoken)


def _acquaintances(candidates: Iterable[_Candidate]) -> frozenset[str]:
    """Given names that stand alone on a page and begin a full name of it."""
    known = [candidate.name.split() for candidate in candidates if candidate.strength > 0]
    alone, first = ({_bare(words[0]) for words in known if (len(words) > 1) is is_full} for is_full in (False, True))
    return frozenset(alone & first)


def _relatives(candidates: Iterable[_Candidate]) -> Counter[str]:
    """How many different full names of the page end with a surname; a shop's products end with their kind."""
    names = {candidate.name for candidate in candidates if " " in candidate.name}
    gazetteer = read_gazetteer()
    last = Counter(_bare(name.split()[-1]) for name in names)
    return Counter(
        {word: count for word, count in last.items() if fold(word) in gazetteer.family or fold(word) in gazetteer.both}
    )


def _tokens(text: str) -> list[str]:
    return [lower(token) for token in _TOKEN.findall(text)]


@functools.cache
def _weak_labels() -> frozenset[str]:
    return frozenset(map(lower, word_list("weak_name_labels")))


def _speaks_of_order(tokens: Iterable[str]) -> bool:
    """Whether any word is about an order, an account, or somebody spoken to."""
    words, stems = _order_words()
    return any(token in words or token.startswith(stems) for token in tokens)


@functools.cache
def _order_words() -> tuple[frozenset[str], tuple[str, ...]]:
    phrases = word_list(*_SPEAKING_LISTS)
    words = {_bare(word) for phrase in phrases for word in phrase.split()}
    small = word_set("told_before_people", "prepositions", "and_words", "openers") | PARTICLES
    stems = word_list("roles")
    long = {word for word in words if len(word) > _WHOLE_STEM and word not in small | word_set("not_private")}
    return frozenset({*long, *stems, *word_list("second_person")}), tuple(
        stem for stem in stems if len(stem) > _WHOLE_STEM
    )
