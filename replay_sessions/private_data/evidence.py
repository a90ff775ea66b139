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

from replay_sessions.private_data.gazetteer import read_gazetteer
from replay_sessions.private_data.people import PARTICLES, is_brand, is_given, is_person
from replay_sessions.private_data.signs import CAPITAL, TO_REMOVE, Hit, interface_words
from replay_sessions.private_data.spans import (
    AROUND_WORDS,
    EAST_ASIAN,
    SEPARATOR,
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
_LONGEST_LABEL = 5  # words
_LONGEST_SENTENCE = 30  # words of a text that may speak of an order
_MOST_CANDIDATES = 2_000
_FEWEST_SMALL = 3  # words in small letters that make a sentence
_WHOLE_STEM = 3  # letters of a stem that only stands for itself
_OF_NAME = 0.6  # of the letters of a text


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
    candidates = list(_candidates(page))
    if not candidates:
        return
    emails = [page.joined[span.start : span.end] for span in others if span.kind == "email"]
    clues = _Clues(
        {page.text_at(span.start) for span in others if span.kind != "secret"},
        [email.partition("@")[0].lower() for email in emails],
        {bare for name in found for word in name.split() if len(bare := _bare(word)) >= _SHORTEST},
        _relatives(candidates),
    )
    for candidate in candidates:
        signs = _signs(page, candidate, clues)
        if signs and candidate.strength + signs > TO_REMOVE:
            yield Hit(candidate.start, candidate.name, candidate.strength + signs - 1, "evidence")


class _Clues(NamedTuple):
    """What a page has that may speak for a name: texts with something private, mailboxes, words of names that are
    announced, and how many full names end with a word."""

    private: set[int]
    mailboxes: list[str]
    found: set[str]
    relatives: Counter[str]


def _candidates(page: PageText) -> Iterator[_Candidate]:
    names = read_gazetteer()
    likely = {
        word for word in page.capitalised
        if len(word) >= 2 and ((bare := lower(word)) in names.given or bare in names.family or word >= EAST_ASIAN)
    }
    texts = {page.text_at(offset) for offset, _ in page.offsets_of(likely)}
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
    before, after = text[:start].rstrip(), text[end:].lstrip()
    if (not before or not before[-1].isalnum()) and (not after or not after[0].isalnum()):
        return "apart"
    small = sum(word[0].islower() for word in (*before.split(), *after.split()))
    is_in_sentence = small >= _FEWEST_SMALL and 2 * small >= len(before.split()) + len(after.split())
    return "sentence" if is_in_sentence and not after[:1].isdigit() and not before[-1:].isdigit() else ""


def _trimmed(run: str) -> tuple[str, int]:
    """A run of capitalised words without those of an interface at its ends, and how many letters those before have."""
    words = run.split(" ")
    skipped = 0
    while words and _is_idle(words[0]):
        skipped += len(words.pop(0)) + 1
    while words and (_is_idle(words[-1]) or words[-1] in PARTICLES):
        words.pop()
    return "" if any(map(_is_idle, words)) else " ".join(words).rstrip(".’'-"), skipped


def _is_idle(word: str) -> bool:
    bare = _bare(word)
    return bare in interface_words() or bare in word_set("titles", "second_person") or bare in read_gazetteer().words


def _bare(word: str) -> str:
    return lower(word).strip(AROUND_WORDS)


def _strength(page: PageText, name: str, place: str) -> int:
    if name >= EAST_ASIAN:
        return 1 + _is_split(name) if is_person(name) else -1
    if is_brand(name):
        return -1
    names = read_gazetteer()
    words = [part for word in name.split() for part in [_bare(word)] if part and part not in PARTICLES]
    if not words or (name < CASELESS and any(word in page.words for word in words)):  # in small letters too
        return -1
    given = [word in names.given or (word in names.both and len(words) > 1) for word in words]
    family = [word in names.family or word in names.both or len(word) == 1 for word in words]
    if len(words) == 1:
        return 0 if given[0] and len(words[0]) >= _SHORTEST else -1
    unknown = sum(not any(pair) for pair in zip(given, family, strict=True))
    is_initial = min(map(len, words)) == 1
    if unknown > 1 or not (is_initial or not names.given.isdisjoint(words)):
        return -1
    is_written_so = not any(len(word) > 1 and word.isupper() for word in name.split())
    return 2 if is_written_so and (unknown == 0 or place == "sentence") else 1


def _is_split(name: str) -> bool:
    """Whether a name without blanks is a surname and a given name."""
    names = read_gazetteer()
    return any(
        name[:end] in names.family and name[end:].strip() in names.given for end in range(1, len(name))
    )


def _signs(page: PageText, candidate: _Candidate, clues: _Clues) -> int:
    """How many things around a name say that it is somebody's."""
    position = candidate.text
    words = [_bare(word) for word in candidate.name.split()]
    around = page.texts[position].replace(candidate.name, " ")
    tokens = [lower(token) for token in _TOKEN.findall(around)]
    before = [lower(token) for token in _TOKEN.findall(page.texts[position - 1])] if position else []
    is_whole = not tokens
    near = 1 if is_whole else _NEAR
    return sum((
        not clues.private.isdisjoint(range(position - near, position + near + 1)),
        len(tokens) <= _LONGEST_SENTENCE and _speaks_of_order(tokens),
        is_whole and len(before) <= _LONGEST_LABEL and _speaks_of_order(before),
        2 * any(len(word) >= _SHORTEST and word in mailbox for mailbox in clues.mailboxes for word in words),
        2 * (not clues.found.isdisjoint(words)),
        len(words) > 1 and clues.relatives[words[-1]] > 1,
        len(words) > 1 and "".join(word[0] for word in words if word).upper() in page.words,
    ))


def _relatives(candidates: Iterable[_Candidate]) -> Counter[str]:
    """How many different full names of the page end with a word."""
    names = {candidate.name for candidate in candidates if " " in candidate.name}
    return Counter(_bare(name.split()[-1]) for name in names)


def _speaks_of_order(tokens: Iterable[str]) -> bool:
    """Whether any word is about an order, an account, or somebody spoken to."""
    spoken, (whole, stems) = word_set("second_person"), _stems()
    return any(token in spoken or token in whole or token.startswith(stems) for token in tokens)


@functools.cache
def _stems() -> tuple[frozenset[str], tuple[str, ...]]:
    stems = word_list("roles")
    return frozenset(stems), tuple(stem for stem in stems if len(stem) > _WHOLE_STEM)
