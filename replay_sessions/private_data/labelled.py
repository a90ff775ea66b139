"""Numbers and dates that only a word near them tells from others: of orders and customers, identity cards, births.

A word that begins as orders are called in some language is enough, with at most three others between: "Order no.",
"Ihre Bestellung mit der Nummer", "Numéro de suivi". Product codes have words of their own.
"""

import functools
import re
from collections.abc import Iterator

from replay_sessions.private_data.spans import (
    AROUND_WORDS,
    EAST_ASIAN,
    SEPARATOR,
    VOWEL_SIGNS,
    PageText,
    Span,
    is_unspaced,
    lower,
    word_list,
    word_set,
)

# Groups behind a blank are digits only: "2024 1105 8831", not "800W 23L".
_CODE = re.compile(
    r"(?<![^\W\u0e00-\u0e7f\u3000-\uffef])(?<![.,$€£/-])((?=[A-Z/-]{0,12}[0-9])[A-Z0-9]{1,40}+"
    r"(?:[-/](?=[A-Z]{0,20}[0-9]|[A-Z]{1,4}[-/])[A-Z0-9]{1,40}+|[ .][0-9]{2,40}+){0,8}(?:[-/][A-Z])?)(?![\w])"
)
_ID = re.compile(
    r"(?<![\w.,$€£/-])((?=[A-Z]{0,6}[. ]?[0-9])[A-Z0-9]{1,20}+(?:[-/. ](?=[A-Z]{0,2}[0-9])[A-Z0-9]{1,20}+){0,8}"
    r"(?:[ -]?[A-Z](?!\w))?)(?!\w)"
)
# What says that a number follows: a sign, or a word that is one or ends as one.
_MARK = re.compile(
    r"[#№:：º°(]|(?<![^\W_])(?:no|nr|nro|num|id|kod|code|cod|is|ist|est|es|är|er)(?![^\W_])\.?"
    r"|n[uúů]m+[eé]r|nombor|nomor|n[uo]m[aă]r|szám|numara|αριθμ|номер|číslo|broj|štev|numură|numer"
    r"|[^\W\d_](?:nr|nro|nummer|numero)(?![^\W_])|số|mã|नंबर|संख्या|रقم|مسر|رقم|מספר|מס׳|หมายเลข|เลข|รหัส|番号|號|号|번호"
)
_MONTH = rf"[^\W\d_](?:[^\W\d_]|[{VOWEL_SIGNS}]){{2,15}}\.?"
_YEAR = r"(?:(?:19|20|25)\d\d)"
_DATE = re.compile(
    rf"(?<![\w.,])({_YEAR}[.,]? ?[./年년-]? ?(?:\d{{1,2}}|{_MONTH}) ?[./月월-]? ?\d{{1,2}}[日일]?"
    rf"|\d{{1,2}}(?:st|nd|rd|th|er|º)?[., /-]{{1,2}}(?:de )?(?:\d{{1,2}}|{_MONTH})[., /-]{{1,2}}(?:de )?"
    rf"(?:{_YEAR}|\d\d)"
    rf"|{_MONTH} \d{{1,2}},? {_YEAR})(?!\w)"
)
_BEFORE = re.compile(r"(?<!\S)([A-Z0-9]{1,20}(?:[-/][A-Z0-9]{1,20}){0,4})(?: \w+)? \Z")
_ANY_DATE = re.compile(r"\d{1,2}([./-])\d{1,2}\1(?:\d\d){1,2}|(?:19|20)\d\d([./-])\d{1,2}\2\d{1,2}")
_FREE_PHONE = re.compile(r"0\d{1,3}[ .-]|[01]?-?800[ .-]")
_AMOUNT = re.compile(r"\d{1,3}(?: \d{3})+")  # as in "Place order 131 990 €"
_PRICE = re.compile(r"\d+[.,]\d\d")
_MONEY = re.compile(r" ?(?:[%$€£¥₹₪₩₽฿₺₴₫×]|[A-Z]{3}(?!\w)|kr|zł|Kč|Ft|lei|TL)")
_SENTENCE_END = re.compile(rf"[!?;|]|\. [^\W\d_a-z]|{SEPARATOR}.*{SEPARATOR}")
_QUESTION = re.compile(rf"[?？]{SEPARATOR}(?:[^\W\d_]+ )?")  # what is asked for is the first in the next text
_ELISION = re.compile(r"^\w{1,4}['’]")
_WHOLE = 4  # letters of a stem that is a word of its own
_BEGINNING = 4  # letters
_MIN_DIGITS = 5
_REACH = 60
_MOST_BETWEEN = 3  # words
_LONGEST_LABEL = 5  # words of a text whose number stands in the next one
_KINDS = {"order": ("order_stems", _CODE), "id_number": ("id_stems", _ID), "birth_date": ("birth_stems", _DATE)}


def find_labelled(page: PageText) -> Iterator[Span]:
    """Numbers of five digits and more beside a word for an order, an identity card or the like, and dates of birth."""
    text = page.joined
    beginnings = _beginnings()
    likely = [
        (written, bare)
        for written, word in page.small.items()
        for bare in (_ELISION.sub("", word) if "'" in word or "’" in word else word,)
        if bare[:_BEGINNING] in beginnings
    ]
    for kind, (stems, pattern) in _KINDS.items():
        words = [written for written, bare in likely if _begins(bare, stems)]
        for start, end in _stems_on(page, words, stems):
            after = _value_after(page, start, end, pattern, needs_mark=kind == "order")
            if after:
                if kind == "birth_date" or _is_number(after, kind):
                    yield Span(*after.span(1), kind)
                continue
            before = _BEFORE.search(text, max(0, start - _REACH), start) if kind == "order" else None
            if before and not before[1].isdigit() and _is_number(before, kind):
                yield Span(*before.span(1), kind)


def is_called(words: str, stems: str) -> bool:
    """Whether any of some words, in small letters and apart by blanks, begins as one of a list does."""
    _, unspaced = _stems(stems)
    return any(_begins(word, stems) for word in words.split()) or any(stem in words for stem in unspaced)


def is_heading(words: str) -> bool:
    """Whether the heading of a column says whose name or what number stands below: "Recipient", "Requested by"."""
    lowered = lower(words).split()
    lists = ("roles", *(stems for stems, _ in _KINDS.values()))
    is_short = 0 < len(lowered) <= _LONGEST_LABEL and not any(map(str.isdigit, words))
    is_short = is_short and word_set("no_name_fields", "makers").isdisjoint(lowered)
    return is_short and (lowered[-1] in word_set("agents") or any(is_called(" ".join(lowered), name) for name in lists))


def is_number_heading(words: str) -> bool:
    """Whether the heading of a column only says that there are numbers below it: "No.", "Number"."""
    return 0 < len(words.split()) <= 2 and _MARK.match(lower(words)) is not None


def _begins(word: str, stems: str) -> bool:
    spaced, _ = _stems(stems)
    return word.startswith(spaced) or word in word_set(stems)


def _stems_on(page: PageText, words: list[str], stems: str) -> Iterator[tuple[int, int]]:
    """Where some words of a page stand, and those of a list that are not apart by blanks."""
    _, unspaced = _stems(stems)
    for offset, word in page.offsets_of(words):
        yield offset, offset + len(word)
    for stem in unspaced if page.is_unspaced else ():
        for match in re.finditer(stem, page.joined):
            yield match.span()


def _value_after(
    page: PageText, start: int, end: int, pattern: re.Pattern[str], *, needs_mark: bool
) -> re.Match[str] | None:
    """The first value behind a word, if little stands between them."""
    text = page.joined
    match = pattern.search(text, end, end + _REACH)
    while match and pattern is not _DATE and not any(map(str.isdigit, match[1])):
        match = pattern.search(text, match.end(), end + _REACH)
    if match is None:
        return None
    between, questions = _QUESTION.subn(" ", text[end : match.start(1)], 1)
    words = [lower(word.strip(AROUND_WORDS)) for word in between.split() if any(map(str.isalpha, word))]
    if len(words) > _MOST_BETWEEN or _SENTENCE_END.search(between) or any(map(str.isdigit, between)):
        return None
    piece = page.piece_around(start)[0]
    label = text[piece:end].split()
    own = {lower(word.strip(AROUND_WORDS)) for word in label[-2:]}
    if not word_set("code_words").isdisjoint(own.union(words)):
        return None
    if not questions and SEPARATOR in between and len(label) + len(words) > _LONGEST_LABEL:
        return None
    is_marked = _MARK.search(lower(text[max(piece, start - _REACH // 3) : match.start(1)])) is not None
    return match if is_marked or not needs_mark or _is_long(match[1]) else None


def _is_long(written: str) -> bool:
    """Whether a number that nothing says to be one has the form of one."""
    digits = sum(map(str.isdigit, written))
    is_split = not written.isalnum() and not written[0].isdigit()
    return " " not in written and "." not in written and digits + is_split > _MIN_DIGITS


def _is_number(match: re.Match[str], kind: str) -> bool:
    written = match[1]
    is_amount = kind == "order" and _AMOUNT.fullmatch(written)
    is_money = is_amount or _PRICE.fullmatch(written) or _MONEY.match(match.string, match.end())
    is_other = is_money or _ANY_DATE.fullmatch(written) or (kind == "order" and _FREE_PHONE.match(written))
    return sum(map(str.isdigit, written)) >= _MIN_DIGITS - (kind == "order" and not written.isdigit()) and not is_other


@functools.cache
def _beginnings() -> frozenset[str]:
    """The first letters of the words of all lists: one look rules most of a page's words out."""
    lists = [stems for stems, _ in _KINDS.values()]
    return frozenset(word[:_BEGINNING] for name in lists for word in (*_stems(name)[0], *word_set(name)))


@functools.cache
def _stems(name: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    stems = [stem.lower() for stem in word_list(name)]
    return (
        tuple(stem for stem in stems if len(stem) > _WHOLE and not is_unspaced(stem[0])),
        tuple(stem for stem in stems if is_unspaced(stem[0]) or stem >= EAST_ASIAN),
    )
