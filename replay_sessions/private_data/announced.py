"""Private data that words announce, on a page and in what a shopper says or types.

Greetings, labels and phrases stand before a name ("Hello, Anna", "Recipient: …", "signed for by …"), what somebody owns
or a form of address behind it ("Anna's wish list", "アンナさん"), an address or a member's number beside it. None of them
is sure: shops greet products too, and brands are named like people. So signs are counted: the words that announce, the
comma or colon between, whether a text says no more, whether people are called so, whether it has the shape of a full
name. Two signs take a name out where it stands, three wherever the session repeats it.

Rationales, goals and searches have no labels and cells; there weaker words do before what people are called ("for",
"to", "with").
"""

import functools
import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from replay_sessions.private_data.clauses import CAPITAL as _CAPITAL
from replay_sessions.private_data.clauses import find_roles, find_spoken_to
from replay_sessions.private_data.people import PARTICLES, is_brand, is_given as _is_given, is_person, leading_name, small_name
from replay_sessions.private_data.phrases import ADDRESSES, OWNED, SIGNS, SPOKEN, Phrase, is_at, phrases_on
from replay_sessions.private_data.postcodes import end_of_address
from replay_sessions.private_data.spans import (
    AROUND_WORDS,
    EAST_ASIAN,
    GAP,
    SEPARATOR,
    SURE,
    VOWEL_SIGNS,
    PageText,
    Span,
    is_unspaced,
    lower,
    word_list,
    word_set,
)

# Between words that announce and a name: "Hello, ", "Recipient: ", "Log out (", or the end of a text.
_JOINT = re.compile(rf"(?: ?[,，、:：–—(·•-]){{0,2}}[ \u200f]*(?:{SEPARATOR} *)?")
# A greeting may say more before the name: "Hi there Anna".
_FILLED_JOINT = re.compile(rf"(?: [a-zà-öø-ÿœžščřěýů]{{2,10}}){{0,2}}{_JOINT.pattern}")
_GIVEN_NAME_LAST = re.compile(rf", ?({_CAPITAL}[\w'’-]+)(?=[{GAP}]|$)")
_SPOKEN_JOINT = re.compile("[ :,(]{0,2}")
_BEFORE_KIN = re.compile(r"(?<![\w-])([^\W\d_a-z][^\W\d_]{2,20}), \Z")
_AFTER_CAPITAL = re.compile(r"(?<=\S )[^\W\d_a-zà-öø-ÿ][\w-]* \Z")
_SMALL_ADDRESS = re.compile(r"\d{1,5}\w? [^\W\d_]{3,}(?: [^\W\d_]{4,})")
_PUNCTUATION = frozenset(",，、:：–—(")
# What ends a name: the punctuation after it, or the end of its text.
_AFTER = re.compile(rf" ?(?:(?P<mark>[!！?？;，。、।\U0001f300-\U0001faff\u2600-\u27bf]|[,.،](?!\w))|[)–—·|(…:：-]|(?=[{GAP}])|$)")
_ENDS = re.compile(rf" ?(?:$|[^\w ]| [^\WA-Z])| [a-zà-ÿ]")
_BEFORE_CLAUSE = f"{GAP}.!?;:,·•|–—(¿¡…！。、-"
_BEFORE_LABEL = f"{GAP}·•|.;–—¿"
_BEFORE_TEXT = f"{GAP}¿¡"
_COLON = re.compile(rf"\s*+(?:[:：]\s*+)?{SEPARATOR}\s*+|\s*+[:：]\s*+")
_SENTENCE_WORDS = 14
_LONGEST_NAME = 80
_TO_REMOVE = 2  # signs
_MOST_AFTER_WEAK = 2  # words
_FULL_NAME = range(2, 5)  # words of one
# What may follow a name in a text of its own: a degree, or which of several of the name.
_SUFFIX = re.compile(r"[ ,]*(?:Jr|Sr|II|III|IV|MD|PhD|Ph\.D|DDS|DVM|B\.?\s?Sc|M\.?\s?Sc|B\.?A|M\.?A|MBA)?\W*")
_PHONE = re.compile(r"[+(]*\d(?:[ ().‑–/-]{0,3}\d){6,14}(?: ?(?:x|ext\.? ?)\d{1,6})?")
_PIECE = re.compile(rf"[^{GAP}]+")
# What says where something goes: a word that is no small one, or a postcode.
_PLACE = re.compile(r"[^\W\d_a-zà-öø-ÿ]|\d{3}")
_WORD = re.compile(rf"[^\W\d_][\w’'.{VOWEL_SIGNS}-]*|&")
_OWNER = re.compile(r"((?:[^\W\d_a-z][\w-]+ ){0,2}[^\W\d_a-z][\w-]+)['’]s? (?:[\w’'-]+ ){0,2}\Z")
_POSSESSIVE = re.compile(r"['’]s?\Z")
_MOST_BETWEEN = 2  # words between an owner and what is owned
_FORM_OF_ADDRESS = re.compile("[ 　]?(?:さん|様|さま|ちゃん|くん|(?:고객|회원)?님|씨|先生|女士|小姐)")
_SURE_FORMS = ("さん", "様", "さま", "ちゃん", "くん", "님")
_NOBODYS = re.compile("[お御皆客]|고객|회원|손님|선생")
_UNSPACED_NAME = re.compile(r"[^\W\d_a-zA-Z]{1,6}(?:[ 　・·][^\W\d_a-zA-Z]{1,6})?\Z")
_LONGEST_UNSPACED = 12
# Beside these somebody's name may stand; beside the others only what people are called.
_BESIDE_NAMES = frozenset({"address", "order", "birth_date", "id_number"})
_MOST_LINES = 2  # between it and the name
_WORD_OF_ADDRESS = (
    r"(?:[#(]?\d[\w/.ºª°-]*|[^\W\d_a-zà-öø-ÿ][^\s,;]*|['’][\w-]+|(?:de|la|las|los|du|des|del|della|di|da|do|dos|das|van|den|der|von|the|of|le|el|y|e|am|an|im|bis|ter"
    r"|rue|avenue|boulevard|place|chemin|plac|ul\.?|al\.?|os\.?|pl\.?|calle|via|rua|n[º°o]|nr\.?|apt\.?|piso|top|kw|m\.|/|-)(?=[\s,]))[)]?"
)
_ADDRESS = re.compile(rf"{_WORD_OF_ADDRESS}(?:(?: ?, ?| |/| / ){_WORD_OF_ADDRESS})*")
_TO_TOWN = re.compile(rf"[ ,，–{SEPARATOR}-]*")
_DIGIT = re.compile(r"\d")
_LABELS = frozenset({"name_labels", "changed_names", "weak_name_labels"})


class _Hit(NamedTuple):
    """A name, how many signs there are of it, and the words that announce it."""

    start: int
    name: str
    signs: int
    words: str


def find_announced(page: PageText, others: Iterable[Span] = ()) -> Iterator[Span]:
    """What a page says itself to be a name or an address.

    Args:
        others: What else is private on it: the name of whose it is may stand before it.
    """
    hits: list[_Hit] = []
    others = list(others)
    page.private_from = sorted(span.start for span in others)
    for phrase, start in phrases_on(page):
        end = start + len(phrase.words)
        if phrase.kind in OWNED:
            if _ENDS.match(page.joined, end):
                hits += _owner(page, start, phrase)
        elif phrase.kind in ADDRESSES:
            if is_at(page.joined, start, _BEFORE_LABEL):
                yield from _address(page.joined, end, weak=phrase.kind != "address_labels")
        elif phrase.kind in SIGNS and phrase.kind != "told_before_people" and (hit := _announced(page, phrase, start, end)):
            hits.append(hit)
    hits += _addressed(page)
    hits += _beside(page, others)
    hits += _of_mailboxes(page, others)
    for start, name in find_roles(page):
        is_long = len(name.split()) > _MOST_AFTER_WEAK and not is_person(name)
        if not is_long and _AFTER.match(page.joined, start + len(name)):
            has_capitals = name[0].lower() != name[0]
            hits.append(_Hit(start, name, 1 + (not has_capitals) + _signs_of(page, name), "role"))
    hits += [_Hit(start, name, 2 + _signs_of(page, name), "spoken to") for start, name in find_spoken_to(page)]
    ways: dict[str, set[str]] = defaultdict(set)
    for hit in hits:
        ways[hit.name].add(hit.words)
    for hit in hits:
        signs = hit.signs + len(ways[hit.name]) - 1
        if signs >= _TO_REMOVE:
            end = hit.start + len(hit.name)
            yield Span(hit.start, end, "name", "label", signs)
            if (town := end_of_address(page.joined, end)) > end:
                yield Span(end + len(_TO_TOWN.match(page.joined, end)[0]), town, "address", "label")


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
        piece = text[begin : begin + _LONGEST_NAME]
        signs = SIGNS[phrase.kind]
        name = leading_name(piece)
        if not name and phrase.kind not in ("kin", "told_before_people"):
            name, signs = small_name(piece, is_sure=phrase.kind == "introductions"), _TO_REMOVE
        is_full = phrase.kind != "told_before_people" and _AFTER.match(piece, len(name)) is not None
        is_full = is_full and not _AFTER_CAPITAL.search(text, 0, start)
        if name and (signs >= _TO_REMOVE or is_person(name) or (is_full and _signs_of(page, name) > 0)):
            yield Span(begin, begin + len(name), "name")
        elif phrase.kind == "kin" and (before := _BEFORE_KIN.search(text, 0, start)):
            yield Span(before.start(), before.end(1), "name")


@functools.cache
def _announcing_addresses() -> re.Pattern[str]:
    alternatives = "|".join(map(re.escape, sorted(word_list("told_before_addresses"), key=len, reverse=True)))
    return re.compile(rf"(?<!\w)(?i:{alternatives})(?: ?:)? +")


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
                elif _signs_of(page, name) > 0:
                    likely.setdefault(name, []).append(span)
            elif _PHONE.fullmatch(piece):
                yield Span(begin, begin + len(piece), "phone", "label")
    if len(likely) == 1 and _says_who_it_is(page):
        yield from likely.popitem()[1]


def _says_who_it_is(page: PageText) -> bool:
    """Whether a page asks nobody to sign in, so that it may show who did."""
    return not any(phrase.kind == "entries" for phrase, _ in phrases_on(page))


def _announced(page: PageText, phrase: Phrase, start: int, end: int) -> _Hit | None:
    """The name that words announce, if one follows them."""
    text = page.joined
    joint = (_FILLED_JOINT if "greetings" in phrase.kind else _JOINT).match(text, end)
    between = joint[0] if joint else ""
    begin = end + len(between)
    if not between and not is_unspaced(text[begin : begin + 1]):
        return None
    is_apart, is_marked = SEPARATOR in between, not _PUNCTUATION.isdisjoint(between)
    is_clause, is_text = is_at(text, start, _BEFORE_CLAUSE), is_at(text, start, _BEFORE_TEXT)
    is_label = phrase.kind in _LABELS
    if is_label and not (is_clause and (is_marked or is_apart)):
        return None
    is_sentence_case = text[start + 1 : end].islower() or text[start:end] == phrase.words
    is_plain = phrase.kind == "closings" or (phrase.kind in SPOKEN and is_sentence_case)
    if is_apart and not (is_text and (is_label or is_marked or is_plain)):
        return None
    following = bisect_left(page.private_from, begin)
    until = min([begin + _LONGEST_NAME, *page.private_from[following : following + 1]])
    piece = text[begin:until].partition(SEPARATOR)[0]
    name = leading_name(piece)
    signs = SIGNS[phrase.kind]
    if not name and phrase.kind in SPOKEN:
        name = small_name(piece, is_sure=phrase.kind == "introductions")
    if name and is_label and (given := _GIVEN_NAME_LAST.match(text, begin + len(name))):
        name = text[begin : given.end()]
    after = _AFTER.match(text, begin + len(name)) if name else None
    if name.islower() and after is not None:
        return _Hit(begin, name, signs + 1, phrase.words)
    if not name or (after is None and not name[0].isupper()):  # a script without capitals: words of a sentence
        return None
    if phrase.kind in ("exits", "accounts"):
        if not is_text or after is None or is_apart or not (is_marked or phrase.kind == "accounts"):
            return None
        signs += is_marked
        if phrase.kind == "accounts" and signs + _signs_of(page, name) < SURE:
            return _Hit(begin, name, signs + _signs_of(page, name), phrase.words) if _says_who_it_is(page) else None
    elif phrase.kind == "denials":
        if not is_clause or after is None or after["mark"] not in ("?", "？", ";"):
            return None
        signs += 1
    elif phrase.kind in ("greetings", "letter_greetings"):
        is_end = after is not None and (is_marked or after["mark"] is not None)
        is_bare = not is_end and (phrase.kind == "letter_greetings" or not is_person(name) or name >= EAST_ASIAN)
        if not is_clause or is_bare:  # "Hey Google Smart Speaker", "Dear Evan Hansen"
            return None
        signs += is_marked + (is_end and is_text)
    elif not (is_label or is_marked or is_text or is_sentence_case):
        signs -= 1  # in a heading: "Ask For Help"
    elif phrase.kind == "maybe_person_phrases" and not is_clause and _AFTER_CAPITAL.search(text, 0, start):
        signs -= 1  # in one of a product: "Toy Gift for Boys Girls Camping"
    if phrase.kind == "weak_name_labels" and len(name.split()) > _MOST_AFTER_WEAK and not is_person(name):
        return None  # "Name: Classic Leather Belt"
    return _Hit(begin, name, signs + _signs_of(page, name), phrase.words)


def _signs_of(page: PageText, name: str) -> int:
    """How many signs are in a name itself: that people are called so, and that it has the shape of a full one."""
    is_full = len(name.split()) in _FULL_NAME
    if is_brand(name):
        return -2
    words = [word.strip(".") for word in name.split() if word.lower() not in PARTICLES]
    lowered = [word.lower() for word in words]
    if is_person(name) and not word_set("not_private").issuperset(lowered):
        return 1 + is_full
    bare = {_POSSESSIVE.sub("", word) for word in lowered if len(word) > 1}
    if not _interface_words().isdisjoint(bare):
        return -2
    if name[0].lower() == name[0]:
        return 0  # a script without capitals
    is_ordinary = any(word in page.words for word in lowered)  # the page has it with a small letter too
    return -1 if is_ordinary else int(is_full and not (name.isupper() or any(map(str.isdigit, name))))


@functools.cache
def _interface_words() -> frozenset[str]:
    """Words of shops' own language, which are no names though they are written like them."""
    labels = word_list(
        "name_labels", "weak_name_labels", "address_labels", "weak_address_labels", "order_labels", "phone_labels",
        "card_labels", "code_labels", "owned", "owned_after_s", "accounts", "entries", "exits", "closings",
        "greetings",
    )  # fmt: skip
    words = {lower(word.strip(AROUND_WORDS)) for label in labels for word in label.split()}
    names = word_set("menu_words", "not_private", "after_names", "and_words", "name_fields", "address_fields")
    return frozenset(word for word in words | names if len(word) > 1 and not _is_given(word))


def _addressed(page: PageText) -> Iterator[_Hit]:
    """Names before a form of address."""
    text = page.joined
    for match in _FORM_OF_ADDRESS.finditer(text) if page.is_unspaced else ():
        name = _UNSPACED_NAME.search(text, max(0, match.start() - _LONGEST_UNSPACED), match.start())
        if name and not _NOBODYS.search(name[0]):
            names = [name[0][-length:] for length in range(4, 1, -1)] if len(name[0]) > 4 and " " not in name[0] else [name[0]]
            person = next(filter(is_person, names), "")
            if person or (match[0].strip(" \u3000") in _SURE_FORMS and len(name[0]) <= 6):
                person = person or name[0]
                yield _Hit(name.end() - len(person), person, SURE, match[0])


def _owner(page: PageText, end: int, owned: Phrase) -> Iterator[_Hit]:
    """The name before what is owned: at the beginning of a text, or with an apostrophe anywhere."""
    text = page.joined
    start, _ = page.piece_around(end)
    piece = text[start:end]
    if len(piece) > _LONGEST_NAME or (owned.kind != "owned" and "'" not in piece and "’" not in piece):
        return
    possessive = _OWNER.search(piece)
    if possessive and (possessive.start() == len(piece) - len(piece.lstrip()) or text[end].islower()):
        name = possessive[1]
        yield _Hit(start + possessive.start(1), name, 2 + _signs_of(page, name), owned.words)
        return
    start += len(piece) - len(piece.lstrip())
    name = leading_name(piece.strip())
    if name and text[start + len(name) : end] in (" ", " – ", " — ", " - ") and owned.kind == "owned":
        yield _Hit(start, name, 1 + _signs_of(page, name), owned.words)


def _beside(page: PageText, others: Iterable[Span]) -> Iterator[_Hit]:
    """Names that are all that is said before an address, or in the lines before what else is somebody's."""
    text = page.joined
    for span in others:
        start, _ = page.piece_around(span.start)
        lines = [(start, span.start)] if span.kind == "address" else []
        for _ in range(_MOST_LINES):
            if start > 1:
                end = start - 1
                start, _ = page.piece_around(end - 1)
                lines.append((start, end))
        for line_start, line_end in lines:
            line = re.sub(r" ?\([^()]*\)\Z", "", text[line_start:line_end].strip(" ,:–—-"))
            name = leading_name(line.title() if line.isupper() else line)
            if not line or len(name) != len(line):
                continue
            begin = text.index(line, line_start)
            signs = 1 + _signs_of(page, name)
            if is_person(name) or (span.kind in _BESIDE_NAMES and signs >= _TO_REMOVE):
                yield _Hit(begin, line, signs, span.kind)
            break


def _of_mailboxes(page: PageText, others: Iterable[Span]) -> Iterator[_Hit]:
    """Full names that an e-mail address on the page is made of."""
    text = page.joined
    for span in others:
        mailbox = text[span.start : span.end].partition("@")[0].lower() if span.kind == "email" else ""
        words = [word for word in re.split(r"[\W\d_]+", mailbox) if word]
        if len(words) == len(("given", "family")) and len(words[1]) > len("li"):
            for match in re.finditer(rf"\b{words[0]}{'' if words[0][1:] else '[^ ]{1,15}'} {words[1]}\b", text, re.IGNORECASE):
                yield _Hit(match.start(), match[0], SURE, mailbox)


def find_companions(page: PageText, names: Iterable[Span]) -> Iterator[Span]:
    """The rest of a name that is repeated in part, and who is named with somebody: "Anna and Bo"."""
    text = page.joined
    for span in names:
        if span.kind != "name":
            continue
        end = span.end
        full = leading_name(text[span.start : span.start + _LONGEST_NAME].partition(SEPARATOR)[0])
        if len(full) > end - span.start and full[0].isupper() and _signs_of(page, full) > 0:
            end = span.start + len(full)
            yield Span(span.start, end, "name", "label", span.signs)
        conjunction = _WORD.match(text, end + 1)
        if conjunction and conjunction[0] in word_set("and_words"):
            start = conjunction.end() + 1
            name = leading_name(text[start : start + _LONGEST_NAME].partition(SEPARATOR)[0])
            if name and name[0].lower() != name[0] and _signs_of(page, name) >= 0:
                yield Span(start, start + len(name), "name", "label", span.signs)


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
