"""Private data that words announce, on a page and in what a shopper says or types.

Greetings, labels and phrases stand before a name ("Hello, Anna", "Recipient: …", "signed for by …") or an address
("Deliver to …"); `signs.py` says how sure each is. Rationales, goals and searches have no labels and cells; there
weaker words do before what people are called ("for", "to", "with"), and names may begin with small letters.
"""

import functools
import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from replay_sessions.private_data.around import find_around, is_role
from replay_sessions.private_data.evidence import find_people
from replay_sessions.private_data.people import is_person, leading_name, small_name
from replay_sessions.private_data.phrases import ADDRESSES, SIGNS, SPOKEN, Phrase, is_at, phrases_on
from replay_sessions.private_data.shops import is_company
from replay_sessions.private_data.signs import AFTER, CAPITAL, LONGEST_NAME, TO_REMOVE, Hit, says_who_it_is, signs_of
from replay_sessions.private_data.spans import (
    EAST_ASIAN,
    GAP,
    SEPARATOR,
    PageText,
    Span,
    is_unspaced,
    word_list,
    word_set,
)

# Between words that announce and a name: "Hello, ", "Recipient: ", "Log out (", or the end of a text.
_JOINT = re.compile(rf"(?: ?[,，、،:：–—(·•-]){{0,2}}[ \u200f]*(?:{SEPARATOR} *)?")
# A greeting may say more before the name: "Hi there Anna".
_FILLED_JOINT = re.compile(rf"(?: [a-zà-öø-ÿœžščřěýů]{{2,10}}){{0,2}}{_JOINT.pattern}")
_GIVEN_NAME_LAST = re.compile(rf", ?({CAPITAL}[\w'’-]+)(?=[{GAP}]|$)")
_SPOKEN_JOINT = re.compile("[ :,(]{0,2}")
_BEFORE_KIN = re.compile(r"(?<![\w-])([^\W\d_a-z][^\W\d_]{2,20}), \Z")
_AFTER_CAPITAL = re.compile(r"(?<=\S )[^\W\d_a-zà-öø-ÿ][\w-]* \Z")
_SMALL_ADDRESS = re.compile(r"\d{1,5}\w? [^\W\d_]{3,}(?: [^\W\d_]{4,})")
_TITLE = re.compile(r"(?<![^\W_])([^\W\d_][\w.]{0,10}?)\.? \Z")
_LONGEST_TITLE = 12
_GOES_ON = re.compile(" [a-zà-ÿ0-9(]")
_QUESTIONS = ("?", "？", ";")  # a Greek question ends with a semicolon
_PUNCTUATION = frozenset(",，、،:：–—(")
_BEFORE_CLAUSE = f"{GAP}.!?;:,·•|–—(¿¡…！。、-"
_BEFORE_LABEL = f"{GAP}·•|.;–—¿"
_BEFORE_TEXT = f"{GAP}¿¡"
_COLON = re.compile(rf"\s*+(?:[:：]\s*+)?{SEPARATOR}\s*+|\s*+[:：]\s*+")
_SENTENCE_WORDS = 14
_MOST_AFTER_WEAK = 2  # words
_PIECE = re.compile(rf"[^{GAP}]+")
# What says where something goes: a word that is no small one, or a postcode.
_PLACE = re.compile(r"[^\W\d_a-zà-öø-ÿ]|\d{3}")
_WORD = re.compile(r"[^\W\d_][\w’'.-]*")
_WORD_OF_ADDRESS = (
    r"(?:[#(]?\d[\w/.ºª°-]*|[^\W\d_a-zà-öø-ÿ][^\s,;]*|['’][\w-]+|(?:de|la|las|los|du|des|del|della|di|da|do|dos|das|van|den|der|von|the|of|le|el|y|e|am|an|im|bis|ter"
    r"|rue|avenue|boulevard|place|chemin|plac|ul\.?|al\.?|os\.?|pl\.?|calle|via|rua|n[º°o]|nr\.?|apt\.?|piso|top|kw|m\.|/|-)(?=[\s,]))[)]?"
)
_ADDRESS = re.compile(rf"{_WORD_OF_ADDRESS}(?:(?: ?, ?| |/| / ){_WORD_OF_ADDRESS})*")
_DIGIT = re.compile(r"\d")
_ANNOUNCING = SIGNS.keys() - {"told_before_people"}
_LABELS = frozenset({"name_labels", "changed_names", "weak_name_labels"})


def find_announced(page: PageText, others: Iterable[Span] = ()) -> Iterator[Span]:
    """What a page says itself to be a name or an address.

    Args:
        others: What else is private on it: the name of whose it is may stand before it.
    """
    others = list(others)
    text = page.joined
    page.private_from = sorted(span.start for span in others)
    hits = list(find_around(page, others))
    for phrase, start in phrases_on(page):
        end = start + len(phrase.words)
        if phrase.kind in ADDRESSES:
            if is_at(text, start, _BEFORE_LABEL):
                yield from _address(text, end, weak=phrase.kind != "address_labels")
        elif phrase.kind in _ANNOUNCING and (hit := _announced(page, phrase, start, end)):
            hits.append(hit)
    hits += find_people(page, others, [hit.name for hit in hits if hit.signs >= TO_REMOVE])
    ways: dict[str, set[str]] = defaultdict(set)
    for hit in hits:
        ways[_without_title(hit.name)].add(hit.words)
    for hit in hits:
        signs = hit.signs + len(ways[_without_title(hit.name)]) - 1
        end = hit.start + len(hit.name)
        if signs >= TO_REMOVE and not is_company(text, end):
            title = _TITLE.search(text, max(0, hit.start - _LONGEST_TITLE), hit.start)
            is_titled = title is not None and title[1].lower() in word_set("titles")
            yield Span(title.start() if title and is_titled else hit.start, end, "name", "label", signs)


def _without_title(name: str) -> str:
    first, _, rest = name.partition(" ")
    return rest if rest and first.lower().rstrip(".") in word_set("titles") else name


def find_spoken(page: PageText) -> Iterator[Span]:
    """Names and addresses that the words before them announce."""
    text = page.joined
    for match in _announcing_addresses().finditer(text):
        address = _SMALL_ADDRESS.match(text, match.end()) or _ADDRESS.match(text, match.end())
        if address and _DIGIT.search(written := address[0].rstrip(".,;:!? ")):
            yield Span(match.end(), match.end() + len(written), "address")
    for phrase, start in [found for found in phrases_on(page) if found[0].kind in SPOKEN]:
        joint = _SPOKEN_JOINT.match(text, start + len(phrase.words))
        begin = joint.end() if joint else start + len(phrase.words)
        piece = text[begin : begin + LONGEST_NAME]
        signs = SIGNS[phrase.kind]
        name = leading_name(piece)
        if not name and phrase.kind not in ("kin", "told_before_people"):
            name, signs = small_name(piece, is_sure=phrase.kind == "introductions"), TO_REMOVE
        is_full = phrase.kind != "told_before_people" and AFTER.match(piece, len(name)) is not None
        is_full = is_full and not _AFTER_CAPITAL.search(text, 0, start)
        if name and (signs >= TO_REMOVE or is_person(name) or (is_full and signs_of(page, name) > 0)):
            yield Span(begin, begin + len(name), "name")
        elif phrase.kind == "kin" and (before := _BEFORE_KIN.search(text, 0, start)):
            yield Span(before.start(), before.end(1), "name")


@functools.cache
def _announcing_addresses() -> re.Pattern[str]:
    alternatives = "|".join(map(re.escape, sorted(word_list("told_before_addresses"), key=len, reverse=True)))
    return re.compile(rf"(?<!\w)(?i:{alternatives})(?: ?:)? +")


def _announced(page: PageText, phrase: Phrase, start: int, end: int) -> Hit | None:
    """The name that words announce, if one follows them."""
    text = page.joined
    joint = (_FILLED_JOINT if phrase.kind == "greetings" else _JOINT).match(text, end)
    between = joint[0] if joint else ""
    begin = end + len(between)
    is_apart, is_marked = SEPARATOR in between, not _PUNCTUATION.isdisjoint(between)
    is_label = phrase.kind in _LABELS
    if (not between and not is_unspaced(text[begin : begin + 1])) or (is_label and not is_apart and not is_marked):
        return None
    is_sentence_case = text[start + 1 : end].islower() or text[start:end] == phrase.words
    is_plain = is_label or is_marked or phrase.kind == "closings" or (phrase.kind in SPOKEN and is_sentence_case)
    if is_apart and not (is_plain and is_at(text, start, _BEFORE_TEXT)):
        return None
    following = bisect_left(page.private_from, begin)
    until = min([begin + LONGEST_NAME, *page.private_from[following : following + 1]])
    name = _name_at(text[begin:until].partition(SEPARATOR)[0], phrase)
    after = AFTER.match(text, begin + len(name)) if name else None
    if not name or (after is None and (not name[0].isupper() or (is_label and is_apart))):
        return None  # in small letters, or without capitals: a sentence's
    if name.islower() and name[0].upper() != name[0]:
        return Hit(begin, name, SIGNS[phrase.kind] + 1, phrase.words)
    signs = _signs_around(page, _Place(phrase, start, end, name, is_marked, is_apart, is_sentence_case), after)
    return Hit(begin, name, signs + signs_of(page, name), phrase.words) if signs >= 0 else None


class _Place(NamedTuple):
    """Where words announce a name, and how."""

    phrase: Phrase
    start: int
    end: int
    name: str
    is_marked: bool
    is_apart: bool
    is_sentence_case: bool


def _name_at(piece: str, phrase: Phrase) -> str:
    name = leading_name(piece)
    if not name and phrase.kind in SPOKEN:
        return small_name(piece, is_sure=phrase.kind == "introductions")
    given = _GIVEN_NAME_LAST.match(piece, len(name)) if name and phrase.kind in _LABELS else None
    return piece[: given.end()] if given else name


def _signs_around(page: PageText, place: _Place, after: re.Match[str] | None) -> int:
    """How many signs there are in the words that announce a name and around them; -1 where they announce none."""
    text, kind, name = page.joined, place.phrase.kind, place.name
    signs = SIGNS[kind]
    is_clause, is_text = is_at(text, place.start, _BEFORE_CLAUSE), is_at(text, place.start, _BEFORE_TEXT)
    is_known = is_person(name)
    match kind:
        case "exits" | "accounts":
            is_menu = is_text and after is not None and not place.is_apart and (place.is_marked or kind == "accounts")
            may_be_asked = kind == "accounts" and not is_known and not says_who_it_is(page)
            return signs + place.is_marked if is_menu and not may_be_asked else -1
        case "denials":
            return signs + 1 if is_clause and after is not None and after["mark"] in _QUESTIONS else -1
        case "greetings" | "letter_greetings":
            is_end = after is not None and (place.is_marked or after["mark"] is not None)
            is_bare = not is_end and (kind == "letter_greetings" or not is_known or name >= EAST_ASIAN)
            # Not of "Hey Google Smart Speaker" and "Dear Evan Hansen".
            return signs + place.is_marked + (is_end and is_text) if is_clause and not is_bare else -1
        case "weak_name_labels":  # not of "Name: Classic Leather Belt"
            return signs if is_clause and (is_known or len(name.split()) <= _MOST_AFTER_WEAK) else -1
        case "name_labels" | "changed_names":
            return signs if is_clause else -1
        case "titled":
            return signs if name.count(" ") == 1 and text[place.start].isupper() else -1
        case "prepositions":
            is_lower = text[place.start : place.end].islower() and not place.is_apart
            ends = after is not None or _GOES_ON.match(text, place.end + len(name) + 1)
            is_full = name.count(" ") == 1 or (is_known and " " in name)
            return signs if is_lower and ends and is_full and _is_of_order(page, place.start) else -1
    is_heading = not (place.is_marked or is_text or place.is_sentence_case)  # "Ask For Help"
    in_product = kind == "maybe_person_phrases" and not is_clause and _AFTER_CAPITAL.search(text, 0, place.start)
    return signs - bool(is_heading or in_product)


def _is_of_order(page: PageText, end: int) -> bool:
    """Whether the text before a place tells of an order, a parcel, an account, in a sentence."""
    text = page.joined
    words = text[max(page.piece_around(end)[0], end - LONGEST_NAME) : end].split()
    return bool(words) and (words[-1].islower() or len(words) == 1) and any(is_role(word.lower()) for word in words)


def _address(text: str, end: int, *, weak: bool) -> Iterator[Span]:
    start = _value_start(text, end, blank_enough=not weak)
    match = _PIECE.match(text, start) if start >= 0 else None
    piece = re.split(r" [·•|]|\[|\. ", match[0])[0].rstrip() if match else ""  # [address] stands there already
    words = piece.split()
    if not piece or piece[0].islower() or len(words) > _SENTENCE_WORDS:
        return
    if weak and SEPARATOR in text[end:start] and not any(map(str.isdigit, piece)):
        return
    is_sentence = 2 * sum(word[0].islower() for word in words) > len(words)
    first = _WORD.match(piece)
    if not is_sentence and _PLACE.search(piece) and (first is None or first[0].lower() not in word_set("not_private")):
        yield Span(start, start + len(piece), "address", "label")


def _value_start(text: str, end: int, *, blank_enough: bool) -> int:
    """Where what a label announces begins; -1 where the label only begins a sentence."""
    match = _COLON.match(text, end)
    if match:
        return match.end()
    if blank_enough and end < len(text):
        return end + 1 if text[end] == " " else end
    return -1
