"""Numbers and dates that only a label tells from others: of orders and customers, identity cards, dates of birth."""

import re
from collections.abc import Iterator

from replay_sessions.private_data.phrases import NUMBERS, phrases_on
from replay_sessions.private_data.spans import SEPARATOR, VOWEL_SIGNS, PageText, Span

_AFTER_LABEL = re.compile(
    rf"[ .:：#№°º({SEPARATOR}]{{0,6}}(?:(?:is|ist|est|es|è|é|no|nr|n)[ :.°º]{{1,3}})?"
    rf"([A-Z0-9]{{1,40}}+"
    rf"(?:[-/ ](?=[A-Z]{{0,20}}[0-9]|[A-Z]{{1,4}}[-/])[A-Z0-9]{{1,40}}+){{0,8}}(?:[-/][A-Z])?)(?!\w)"
)
_AFTER_ID_LABEL = re.compile(
    rf"[ .:：#№°º\"'>{SEPARATOR}]{{0,6}}(?:(?:is|ist|est|es|è|é|no|nr|n)[ :.°º]{{1,3}}(?:(?:o|a|el|la|le|il) )?)?"
    r"((?=[A-Z]{0,6}[. ]?[0-9])[A-Z0-9]{1,20}+(?:[-/. ](?=[A-Z]{0,2}[0-9])[A-Z0-9]{1,20}+){0,8}"
    r"(?:-?[A-Z](?!\w))?)(?!\w)"
)
_MONTH = rf"[^\W\d_](?:[^\W\d_]|[{VOWEL_SIGNS}]){{2,15}}\.?"
_BIRTH_YEAR = r"(?:(?:19|20|25)\d\d)"
_BIRTH_DATE = re.compile(
    rf"[ .:：>{SEPARATOR}]{{0,6}}(?:(?:on|am|le|el|il|em|op|la|den|dnia) )?"
    rf"({_BIRTH_YEAR}[.,]? ?[./年년-]? ?(?:\d{{1,2}}|{_MONTH}) ?[./月월-]? ?\d{{1,2}}[日일]?"
    rf"|\d{{1,2}}(?:st|nd|rd|th|er|º)?[., /-]{{1,2}}(?:de )?(?:\d{{1,2}}|{_MONTH})[., /-]{{1,2}}(?:de )?"
    rf"(?:{_BIRTH_YEAR}|\d\d)"
    rf"|{_MONTH} \d{{1,2}},? {_BIRTH_YEAR})(?!\w)"
)
_AMOUNT = re.compile(r"\d{1,3}(?: \d{3})+")  # as in "Place order 131 990 €"
_MIN_DIGITS = 5
_PRICE = re.compile(r"\d+[.,]\d\d")
_LONGEST_BEFORE = 12  # characters of such words
_AFTER_LABELS = {"order": _AFTER_LABEL, "id_number": _AFTER_ID_LABEL, "birth_date": _BIRTH_DATE}


def find_labelled(page: PageText) -> Iterator[Span]:
    """Numbers of five digits and more that a label calls an order, an identity card or the like, and dates of birth."""
    text = page.joined
    for phrase, start in phrases_on(page):
        kind = NUMBERS.get(phrase.kind)
        code = _AFTER_LABELS[kind].match(text, start + len(phrase.words)) if kind else None
        if not kind or not code or (_AMOUNT if kind == "order" else _PRICE).fullmatch(code[1]):
            continue
        is_long = sum(map(str.isdigit, code[1])) >= _MIN_DIGITS - (not code[1].isdigit())
        # In a cell of its own a label has few words before it.
        is_cell = SEPARATOR not in text[start : code.start(1)] or start - page.piece_around(start)[0] <= _LONGEST_BEFORE
        if is_long and is_cell:
            yield Span(*code.span(1), kind)
