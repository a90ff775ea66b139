"""Names by what is around them: what somebody owns, forms of address, an address or a member's number, an e-mail
address that is made of them, the label of a role and a colon, a sentence in which somebody is spoken to.
"""

import functools
import re
from collections.abc import Iterable, Iterator

from replay_sessions.private_data.gazetteer import fold, read_gazetteer
from replay_sessions.private_data.people import is_person, leading_name
from replay_sessions.private_data.phrases import is_at, phrases_on
from replay_sessions.private_data.signs import (
    AFTER,
    CAPITAL,
    LONGEST_NAME,
    TO_REMOVE,
    Hit,
    interface_words,
    says_who_it_is,
    signs_of,
)
from replay_sessions.private_data.spans import (
    AROUND_WORDS,
    GAP,
    SEPARATOR,
    SURE,
    VOWEL_SIGNS,
    PageText,
    Span,
    lower,
    word_list,
    word_set,
)

# A date, or how long ago something was: beside it is who wrote it.
_DIGIT = re.compile(r"\d")
_WHEN = re.compile(
    r"(?<!\d)(?:\d{1,2}([./-])\d{1,2}\1(?:19|20)?\d\d|(?:19|20)\d\d([./-])\d{1,2}\2\d{1,2}"
    r"|\d{1,2}(?:\.|st|nd|rd|th|er)? (?:de )?[^\W\d_]{3,12}\.? (?:de )?(?:19|20)\d\d)(?!\d)"
    r"|[^\W\d_]{3,12}\.? \d{1,2}, (?:19|20)\d\d|(?:19|20)\d\d ?[年년] ?\d"
    r"|\b(?:vor|il y a|hace|há|για) (?:\d|\w+ \w+$)"
    r"|\d [^\W\d_]+ (?:ago|fa|geleden|temu|siden|sedan|sitten|назад|тому|önce|trước|lalu|atrás|zpátky|ezelőtt)"
    r"|\d ?(?:天前|日前|か月前|개월 전|일 전)"
)
_NEAR_MAILBOX = 3  # texts
_SHORTEST_IN_MAILBOX = 4  # letters
_LONGEST_MENU = 10  # texts
_LONGEST_ITEM = 4  # words of one
_MOST_INITIALS = 3
_SIGNATURE = re.compile(
    rf"{SEPARATOR} ?(?P<dash>[—–-] ?|~ ?)?"
    rf"(?P<name>{CAPITAL}[\w’'-]+ (?:{CAPITAL}\.|{CAPITAL}[\w’'-]+)|{CAPITAL}\. {CAPITAL}[\w’'-]+)"
    rf"(?=[{GAP}]|[ ,.]{{1,2}}(?:[^\W\d_]{{2,4}} )?{CAPITAL}[\w’'-]+[{GAP}])"
)
_ENDS = re.compile(r" ?(?:$|[^\w ])| [a-zà-ÿ]")
_PIECE = re.compile(rf"[^{GAP}]+")
# What may follow a name in a text of its own: a degree, or which of several of the name.
_SUFFIX = re.compile(r"[ ,]*(?:Jr|Sr|II|III|IV|MD|PhD|Ph\.D|DDS|DVM|B\.?\s?Sc|M\.?\s?Sc|B\.?A|M\.?A|MBA)?\W*")
_PHONE = re.compile(r"[+(]*\d(?:[ ().‑–/-]{0,3}\d){6,14}(?: ?(?:x|ext\.? ?)\d{1,6})?")
_CONJUNCTION = re.compile(rf"[^\W\d_][\w{VOWEL_SIGNS}]{{0,30}}|&")  # bounded: it is tried behind every name
_OWNER = re.compile(r"(?:[^\W\d_a-z][\w-]+ ){0,2}[^\W\d_a-z][\w-]+\Z")
_FORM_OF_ADDRESS = re.compile("[ 　]?(?:さん|様|さま|ちゃん|くん|(?:고객|회원)?님|씨|先生|女士|小姐)")
_SURE_FORMS = ("さん", "様", "さま", "ちゃん", "くん", "님")
_NOBODYS = re.compile("[お御皆客]|고객|회원|손님|선생")
_UNSPACED_NAME = re.compile(r"[^\W\d_a-zA-Z]{1,6}(?:[ 　・·][^\W\d_a-zA-Z]{1,6})?\Z")
_LONGEST_UNSPACED = 12
# Beside these somebody's name may stand; beside the others only what people are called.
_BESIDE_NAMES = frozenset({"address", "order", "birth_date", "id_number"})
_MOST_LINES = 2  # between it and the name
_BEFORE_NAME = re.compile(r" [–—|·] |: ")
_BRACKETS = re.compile(r"\([^()]{0,40}\)\Z")
# What stands between a role and a name: a colon, or "is".
_COLON = re.compile(r"(?:[:：] ?| (?:is|ist|est|es|è|é|är|er|on|jest|je) )(?=[^\W\d_a-z])")
_AROUND_LABEL = re.compile(rf"[{GAP}.·|;,()]")
_LONGEST_ROLE = 40
_MOST_ROLE_WORDS = 5
_MOST_NAME_WORDS = 2  # of a name that no people are called
_SPOKEN_TO = re.compile(
    rf", ({CAPITAL}[\w’'-]+(?: {CAPITAL}[\w’'-]+)?)(?: ?[!?.…]*(?=[{GAP}]|$)|(?=, [a-zà-ÿ])|(?=[!?] ))"
)
_SPEAKING_TO = re.compile(rf"[{GAP}] ?[¡¿]?({CAPITAL}[\w’'{VOWEL_SIGNS}-]+(?: {CAPITAL}[\w’'-]+)?)[,，،] ?(?=[^\d ])")
_MOST_WORDS = 14
# A street behind a name: a house's number before or behind words with capitals.
_STREET = re.compile(
    rf",? ?[,،，—–-] ?(\d{{1,4}}\w?,? {CAPITAL}\w+(?: {CAPITAL}\w+){{1,3}}"
    rf"|(?:{CAPITAL}[\w’'.-]+ |(?:de|la|du|des|van|der|del|via|rua|calle|ul\.) ){{1,4}}"
    rf"\d{{1,4}}(?!\w|[.,]\d)(?:/\d+| ?[a-z](?!\w))?)"
)


def find_around(page: PageText, others: Iterable[Span]) -> Iterator[Hit]:
    """Names that something around them announces.

    Args:
        others: What else is private on the page.
    """
    for phrase, start in phrases_on(page):
        if phrase.kind == "owned" and _ENDS.match(page.joined, start + len(phrase.words)):
            yield from _owner(page, start, phrase.words)
    yield from _owners(page)
    for span in others:
        yield from _beside(page, span)
        if span.kind == "email":
            yield from _of_mailbox(page, span)
    yield from _owners_of_menu(page)
    yield from _signatures(page)
    yield from _addressed(page)
    yield from _roles(page)
    yield from _spoken_to(page)


def _owners(page: PageText) -> Iterator[Hit]:
    """Names with an apostrophe before what is owned, at the beginning of a text or anywhere in a sentence."""
    text = page.joined
    for match in _possessions().finditer(text):
        owner = _OWNER.search(text, max(0, match.start() - LONGEST_NAME), match.start())
        if owner and (is_at(text, owner.start(), f"{GAP}¿¡") or match[1][0].islower()):
            yield Hit(owner.start(), owner[0], TO_REMOVE + signs_of(page, owner[0]), match[1])


@functools.cache
def _possessions() -> re.Pattern[str]:
    owned = "|".join(sorted(word_list("owned_after_s", "owned"), key=len, reverse=True))
    return re.compile(rf"['’]s? (?:[\w’'-]+ ){{0,2}}?((?i:{owned}))(?!\w| [A-Z])")


def _owner(page: PageText, end: int, owned: str) -> Iterator[Hit]:
    """The name with which a text begins, before what is owned or done."""
    text = page.joined
    start, _ = page.piece_around(end)
    piece = text[start:end]
    if len(piece) <= LONGEST_NAME and (name := leading_name(piece.strip())):
        start += len(piece) - len(piece.lstrip())
        if text[start + len(name) : end] in (" ", " – ", " — ", " - "):
            yield Hit(start, name, 1 + signs_of(page, name), owned)


def _beside(page: PageText, span: Span) -> Iterator[Hit]:
    """The name that is all that is said before an address, or in the lines before what else is somebody's."""
    text = page.joined
    start, _ = page.piece_around(span.start)
    lines = [(start, span.start)] if span.kind == "address" else []
    while len(lines) <= _MOST_LINES and start > 1:
        end = start - 1
        start, _ = page.piece_around(end - 1)
        lines.append((start, end))
    for begin, end in lines:
        near = text[max(begin, end - 2 * LONGEST_NAME) : end].strip(" ,:–—-")
        line = _BEFORE_NAME.split(_BRACKETS.sub("", near).rstrip())[-1]
        name = leading_name(line.title() if line.isupper() else line)
        if line and len(name) == len(line):
            signs = 1 + signs_of(page, name)
            if is_person(name) or (span.kind in _BESIDE_NAMES and signs >= TO_REMOVE):
                yield Hit(text.rindex(line, begin, end), line, signs, span.kind)
            return


def _of_mailbox(page: PageText, span: Span) -> Iterator[Hit]:
    """The name that is all of a text near an e-mail address that is made of it."""
    mailbox = page.joined[span.start : span.end].partition("@")[0].lower()
    position = page.text_at(span.start)
    for near in range(max(0, position - _NEAR_MAILBOX), min(position + _NEAR_MAILBOX + 1, len(page.texts))):
        name = _only_name(page.texts[near])
        words = [fold(word) for word in re.split("[ -]", name) if len(word) >= _SHORTEST_IN_MAILBOX]
        if any(word in mailbox for word in words):
            yield Hit(page.joined.index(name, page.starts[near]), name, SURE, mailbox)


def _owners_of_menu(page: PageText) -> Iterator[Hit]:
    """The name that is all of the first text of an account's menu: what stands between it and "Log out" is a menu's."""
    for phrase, start in phrases_on(page):
        if phrase.kind != "exits":
            continue
        position = page.text_at(start)
        for near in range(position - 1, max(-1, position - _LONGEST_MENU), -1):
            if _is_of_menu(page.texts[near]):
                continue
            name = _only_name(page.texts[near])
            if name and (is_person(name) or (" " in name and read_gazetteer().words.isdisjoint(fold(name).split()))):
                yield Hit(page.joined.index(name, page.starts[near]), name, 1 + signs_of(page, name), "menu")
            break


@functools.lru_cache(4096)
def _is_of_menu(text: str) -> bool:
    """Whether a text is one of an account's menu: says no more than words of an interface, a mailbox, initials."""
    words = [word.strip(AROUND_WORDS) for word in lower(text).split()]
    is_short = len(words) <= _LONGEST_ITEM and len(text.strip()) > _MOST_INITIALS
    return not is_short or "@" in text or any(word in interface_words() or is_role(word) for word in words if word)


def _only_name(text: str) -> str:
    """The name that is all that a text says; "" where it says more."""
    name = leading_name(text.strip())
    return name if name and _SUFFIX.fullmatch(text.strip(), len(name)) else ""


def _signatures(page: PageText) -> Iterator[Hit]:
    """Names behind a dash or before a date with which a text begins: "— Anna L., Leeds"."""
    for match in _SIGNATURE.finditer(page.joined):
        name = match["name"]
        is_short = "." in name
        is_dashed = bool(match["dash"])
        following = page.text_at(match.start("name")) + 1
        is_signed = is_dashed or (following < len(page.texts) and is_remark(page.texts[following]))
        is_word = not read_gazetteer().words.isdisjoint(fold(name).split())
        if is_signed and (is_person(name) or (is_short and (is_dashed or not is_word))):  # not brands in a list
            yield Hit(match.start("name"), name, is_short + is_signed + signs_of(page, name), "dash")


@functools.lru_cache(4096)
def is_remark(text: str) -> bool:
    """Whether a text says when something was written, or that its writer is a buyer."""
    words = lower(text).split()
    is_short = len(words) <= _MOST_ROLE_WORDS
    return is_short and (is_dated(text) or any(word.startswith(_verified()) for word in words))


def is_dated(text: str) -> bool:
    """Whether a text says on which day, or how long ago, something was."""
    return _DIGIT.search(text) is not None and _WHEN.search(text) is not None


@functools.cache
def _verified() -> tuple[str, ...]:
    return tuple(word_list("verified_stems"))


def _addressed(page: PageText) -> Iterator[Hit]:
    """Names before a form of address."""
    text = page.joined
    for match in _FORM_OF_ADDRESS.finditer(text) if page.is_unspaced else ():
        name = _UNSPACED_NAME.search(text, max(0, match.start() - _LONGEST_UNSPACED), match.start())
        if name and not _NOBODYS.search(name[0]):
            person = next((name[0][at:] for at in range(len(name[0]) - 1) if is_person(name[0][at:])), "")
            if not person and match[0].strip(" \u3000") in _SURE_FORMS:
                person = name[0]
            if person:
                yield Hit(name.end() - len(person), person, SURE, match[0])


def _roles(page: PageText) -> Iterator[Hit]:
    """Names behind the label of a role and a colon: "Pickup person: …"."""
    text = page.joined
    for match in _COLON.finditer(text):
        before = text[max(0, match.start() - _LONGEST_ROLE) : match.start()]
        label = _AROUND_LABEL.split(before)[-1].lower().split()
        ends = label and ((len(label) > 1 and label[-1] in word_set("agents")) or label[-1][-1] in "者人名氏")
        is_role = ends or (label and (label[-1].startswith(_role_words()) or label[0].startswith(_role_words())))
        if not is_role or len(label) > _MOST_ROLE_WORDS:
            continue
        name = leading_name(text[match.end() : match.end() + LONGEST_NAME].partition(SEPARATOR)[0])
        is_short = len(name.split()) <= _MOST_NAME_WORDS or is_person(name)
        if name and is_short and AFTER.match(text, match.end() + len(name)):
            has_capitals = name[0].lower() != name[0]
            yield Hit(match.end(), name, 1 + (not has_capitals) + signs_of(page, name), "role")


def is_role(word: str) -> bool:
    """Whether a word, or the label that it ends, says what somebody does in an order."""
    return word.startswith(_role_words()) or word[-1] in "者人名氏"


@functools.cache
def _role_words() -> tuple[str, ...]:
    return tuple(word_list("roles"))


def _spoken_to(page: PageText) -> Iterator[Hit]:
    """Who is spoken to: a name before or behind a comma in a sentence to a shopper."""
    text = page.joined
    spoken = word_set("second_person")
    if spoken.isdisjoint(page.lowered) and not page.is_east_asian:
        return
    names = []
    for match in _SPEAKING_TO.finditer(text):
        rest = text[match.end() : page.piece_around(match.end())[1]].lower().split()
        is_spoken = not spoken.isdisjoint(word.strip(".,!?") for word in rest) or text[match.end()] in "您你"
        if is_spoken and len(rest) <= _MOST_WORDS and match[1].lower() not in word_set("openers"):
            names.append(match)
    for match in _SPOKEN_TO.finditer(text):
        words = [word.strip(".,!?¡¿") for word in text[slice(*page.piece_around(match.start(1)))].split()]
        is_titled = match[1].split()[0].lower().rstrip(".") in word_set("titles")
        is_sentence = is_titled or sum(word[:1].isupper() for word in words) <= 2 + len(match[1].split())
        is_sentence = is_sentence and spoken.isdisjoint(match[1].lower().split())
        if is_sentence and len(words) <= _MOST_WORDS and not spoken.isdisjoint(map(str.lower, words)):
            names.append(match)
    for match in names:
        yield Hit(match.start(1), match[1], TO_REMOVE + signs_of(page, match[1]), "spoken to")


def find_companions(page: PageText, names: Iterable[Span]) -> Iterator[Span]:
    """The rest of a name that is repeated in part, and who is named with somebody: "Anna and Bo"."""
    text = page.joined
    for span in names:
        if span.kind != "name":
            continue
        end = span.end
        full = leading_name(text[span.start : span.start + LONGEST_NAME].partition(SEPARATOR)[0])
        if len(full) > end - span.start and full[0].isupper() and signs_of(page, full) > 0:
            end = span.start + len(full)
            yield Span(span.start, end, "name", "label", span.signs)
        if street := _STREET.match(text, end):
            yield Span(street.start(1), street.end(1), "address", "label")
        conjunction = _CONJUNCTION.match(text, end + 1)
        if conjunction and conjunction[0] in word_set("and_words"):
            start = conjunction.end() + 1
            name = leading_name(text[start : start + LONGEST_NAME].partition(SEPARATOR)[0])
            if name and name[0].lower() != name[0] and signs_of(page, name) >= 0:
                yield Span(start, start + len(name), "name", "label", span.signs)


def find_shopper(page: PageText, positions: Iterable[int]) -> Iterator[Span]:
    """Names and phone numbers that stand alone in a text or attribute where a shop shows whose account it is."""
    likely: dict[str, list[Span]] = {}  # names by their shape alone: the shopper's only if there is one of them
    for position in positions:
        start = page.starts[position]
        for match in _PIECE.finditer(page.joined, start, start + len(page.texts[position])):
            piece = match[0].strip()
            begin = match.start() + match[0].index(piece)
            name = leading_name(piece)
            is_code = name.isupper() and " " not in name
            if name and not is_code and _SUFFIX.fullmatch(piece, len(name)):
                span = Span(begin, begin + len(name), "name", "label")
                if is_person(name):
                    yield span
                elif signs_of(page, name) > 0:
                    likely.setdefault(name, []).append(span)
            elif _PHONE.fullmatch(piece):
                yield Span(begin, begin + len(piece), "phone", "label")
    if len(likely) == 1 and says_who_it_is(page):
        yield from likely.popitem()[1]
