"""The words on a page that announce something private, wherever they stand: all lists of them in one search."""

import functools
from collections import defaultdict
from collections.abc import Iterator
from typing import NamedTuple

from replay_sessions.private_data.spans import AROUND_WORDS, PageText, is_unspaced, lower, word_list, word_set

ADDRESSES = frozenset({"address_labels", "weak_address_labels", "changed_addresses", "address_fields"})
# How many signs of a name the words of each list are. After labels there is a colon, or the end of their text.
SIGNS = {
    "greetings": 1, "letter_greetings": 1, "introductions": 2, "closings": 1, "person_phrases": 2, "kin": 2,
    "maybe_person_phrases": 1, "exits": 1, "denials": 1, "accounts": 1, "name_labels": 2, "changed_names": 2,
    "weak_name_labels": 1, "titled": 1, "prepositions": 1, "told_before_people": 1,
}  # fmt: skip
SPOKEN = frozenset({"introductions", "person_phrases", "kin", "maybe_person_phrases", "told_before_people"})
_ALL = (*SIGNS, *ADDRESSES, "owned", "entries")


class Phrase(NamedTuple):
    """Words that announce something, the list they are in, where the longest of them begins, and the other ones."""

    words: str
    kind: str
    key: int
    others: tuple[str, ...] = ()


def phrases_on(page: PageText) -> list[tuple[Phrase, int]]:
    """The phrases on a page, of those around one word the longest, and where they begin."""
    if page.phrases is None:
        page.phrases = list(_search(page))
    return page.phrases


def _search(page: PageText) -> Iterator[tuple[Phrase, int]]:
    spaced, unspaced = _phrases(page.is_speech)
    text = page.joined
    for word in page.words & spaced.keys():
        phrases = [phrase for phrase in spaced[word] if not phrase.others or page.lowered.issuperset(phrase.others)]
        for offset in page.offsets(word) if phrases else ():
            longest = 0
            for phrase in phrases:
                length = len(phrase.words)
                if length < longest:
                    break
                start = offset - phrase.key
                end = start + length
                around = text[max(0, start - 1) : max(0, start)] + text[end : end + 1]
                if start >= 0 and lower(text[start:end]) == phrase.words and not any(map(str.isalnum, around)):
                    longest = length
                    yield phrase, start
    for phrase in unspaced if page.is_unspaced else ():
        start = text.find(phrase.words)
        while start >= 0:
            yield phrase, start
            start = text.find(phrase.words, start + 1)


@functools.cache
def _phrases(is_speech: bool) -> tuple[dict[str, list[Phrase]], list[Phrase]]:
    """All phrases by their longest word as it may be written, the longest first; and those without blanks."""
    kinds = {*_ALL} if is_speech else {*_ALL} - {"told_before_people"}
    lists = {kind: word_list(kind) for kind in kinds}
    for kind in ("changed_names", "changed_addresses"):
        lists[kind] = [f"{verb} {words}" for verb in word_list("verbs_before_labels") for words in lists[kind]]
    phrases = {(words, kind) for kind, listed in lists.items() for words in listed}
    spaced: dict[str, list[Phrase]] = defaultdict(list)
    unspaced = []
    for given, kind in sorted(phrases, key=lambda pair: (-len(pair[0]), pair)):
        words = lower(given)
        if is_unspaced(words[0]):
            unspaced.append(Phrase(words, kind, 0))
        elif is_speech or kind in ("weak_name_labels", "prepositions") or words not in word_set("told_before_people"):
            bare = max((word.strip(AROUND_WORDS) or word for word in reversed(words.split())), key=len)
            others = tuple(
                other for word in words.split() if (other := word.strip(AROUND_WORDS)) != bare and other.isalpha()
            )
            key = words.rindex(bare)
            written = {bare.capitalize(), bare.upper(), given[key : key + len(bare)]}
            if (
                is_speech or kind == "prepositions" or words not in word_set("told_before_people")
            ):  # "to" is a label only where a text begins
                written.add(bare)
            for word in written | ({"İ" + bare[1:]} if bare[0] == "i" else set()):
                spaced[word].append(Phrase(words, kind, key, others))
    return dict(spaced), unspaced


def is_at(text: str, start: int, marks: str) -> bool:
    """Whether a place is where a text begins or comes after one of some marks."""
    before = text[max(0, start - 3) : start].rstrip(" ")
    return not before or before[-1] in marks
