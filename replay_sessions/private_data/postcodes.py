"""Postal addresses by their shape, whatever a country calls its streets: the line of a house and its number beside that
of a postcode and a town, in lines of their own or apart by commas; and towns behind what is private already.

A number before a word is a postcode only in such company: "12000 Lumen" and "2021 Edition" are written like a town.
"""

import re
from collections.abc import Iterator

from replay_sessions.private_data.spans import GAP, SEPARATOR, PageText, Span, word_set

_WORD = r"[^\W\d_][^\s\d,;:|()/]*"
_TOWN = rf"(?P<town>{_WORD}(?:[ /-]{_WORD}){{0,4}})"
_LONG = r"\d{5}-\d{3,4}|\d{3} \d{2}|\d{2}-\d{3}|\d{5,6}|[A-Z]{1,2}\d[A-Z\d]? \d[A-Z]{2}|[A-Z]\d[A-Z] \d[A-Z]\d"
_CODE = rf"(?P<code>(?:[A-Z]{{1,2}}[ -])?(?:{_LONG}|\d{{4}}(?: ?[A-Z]{{2}})?)(?!\w))"
_CODE_FIRST = re.compile(rf"{_CODE},? {_TOWN}(?: ?\([A-Z]{{2}}\)| ?- ?[A-Z]{{2}})?")
_TOWN_FIRST = re.compile(rf"{_TOWN}[ –-]+(?P<code>{_LONG})(?!\w)")
_ONLY_CODE = re.compile(_LONG)
_ISRAELI = re.compile(r"[\u05d0-\u05ea]+(?: [\u05d0-\u05ea]+){0,2} \d{7}")
_YEAR = re.compile(r"(?:19|20)\d\d")
_CLUE = re.compile(r"\n(\d{3,6}|\d{5}-\d{3,4}|\d{2}-\d{3}|\d{4}[A-Z]{2}|[A-Z]{1,2}-\d{4,6}|\d[A-Z]{2}|\d[A-Z]\d)(?=\n)")
_ENDS = f"{GAP},;|•·()，、：:—"
_SEGMENT = re.compile(rf"[^{_ENDS}]{{1,80}}")
_FIRST_OF_TWO = 3  # digits of a Swedish or Czech postcode, or half of a British one
_HEAD = re.compile(rf"[^{_ENDS}]*\Z")
_NEXT_TO_TOWN = re.compile(r"[^\W\d_][ –-]|\d,? ?[^\W\d_]")
_BETWEEN = re.compile(rf"[ ,，–—-]{{0,3}}(?:{SEPARATOR}[ ,]{{0,2}})?")
_NO_STREET = re.compile(r"[$€£¥₹₪₩₽฿₺₴₫%*=+@×…]|\d[.,]\d\d\b|\d ?x ?\d|,-|\.\.")
_HOUSE = re.compile(
    r"[A-Z]-?\d{1,4}\Z|\d{1,5}[-/]?\w?,? \S+ \S"
    r"|\S.* (?:\S{1,4}\.? ?)?(?<!\d)\d{1,4}(?!\d)[\w./ºª°-]*(?: \S{1,4}){0,2}\Z"
)
_LONG_CODE = 5  # digits of codes that fewer other numbers have
_MOST_WORDS = 8
_MOST_LINES = 3  # between a house and its town
_FLOOR = re.compile(r"[.]?[ºª°](?: ?,? \d{1,3}[.]?[ºª°]?[A-Za-z]?)?")
_FLAT = re.compile(r"[^\W\d_]{0,6}\.?[ º°]?\d{1,4}[\w./ºª°-]*(?: ?[\wºª°.]{1,5})?")


def find_places(page: PageText) -> Iterator[Span]:
    """Houses with their towns."""
    text = page.joined
    for offset, word in page.offsets_of(page.clues(_CLUE)):
        if (
            len(word) > _FIRST_OF_TWO
            and word.isdigit()
            and not _NEXT_TO_TOWN.search(text, max(0, offset - 3), offset + len(word) + 3)
        ):
            continue
        town = _segment_at(text, offset)
        if not _is_town(text[slice(*town)]):
            continue
        if (start := _house_before(text, town[0])) >= 0:
            yield Span(start, town[1], "address")
        elif (after := _segment_after(text, town[1])) and _is_house(text[slice(*after)]):
            yield Span(town[0], after[1], "address")


def end_of_address(text: str, end: int) -> int:
    """Where an address ends that goes on behind a place with a flat, a postcode, a town."""
    floor = _FLOOR.match(text, end)
    at = end = floor.end() if floor else end
    for _ in range(_MOST_LINES):
        segment = _segment_after(text, at)
        if segment is None:
            break
        written = text[slice(*segment)]
        if _is_town(written) or _ONLY_CODE.fullmatch(written) or _ISRAELI.fullmatch(written):
            return segment[1]
        if not _FLAT.fullmatch(written) and len(written.split()) > _MOST_LINES:
            break
        at = segment[1]
    return end


def _segment_at(text: str, offset: int) -> tuple[int, int]:
    head = _HEAD.search(text, max(0, offset - 80), offset)
    start = head.start() if head else offset
    match = _SEGMENT.match(text, start)
    return _stripped(text, start, match.end() if match else offset)


def _segment_after(text: str, end: int) -> tuple[int, int] | None:
    between = _BETWEEN.match(text, end)
    match = _SEGMENT.match(text, between.end() if between else end)
    return _stripped(text, *match.span()) if match and match.start() > end else None


def _stripped(text: str, start: int, end: int) -> tuple[int, int]:
    piece = text[start:end]
    return start + len(piece) - len(piece.lstrip(" –-")), end - len(piece) + len(piece.rstrip(" –-."))


def _house_before(text: str, start: int) -> int:
    """Where the address begins whose town begins at a place; -1 if there is no house before it."""
    at = start
    for _ in range(_MOST_LINES):
        end = len(text[:at].rstrip(f" ,，–-{SEPARATOR}"))
        if end == 0 or not 0 < at - end <= _MOST_LINES:
            return -1
        segment = _segment_at(text, end - 1)
        written = text[slice(*segment)]
        if _is_house(written):
            return segment[0]
        if len(written.split()) > _MOST_LINES:
            return -1
        at = segment[0]
    return -1


def _is_town(written: str) -> bool:
    match = _CODE_FIRST.fullmatch(written) or _TOWN_FIRST.fullmatch(written)
    if match is None or match["town"][0].islower() or _YEAR.fullmatch(match["code"]):
        return False
    if len(match["code"]) < _LONG_CODE and match["town"].isupper():
        return False
    return word_set("units").isdisjoint(match["town"].lower().split())


def _is_house(written: str) -> bool:
    is_written_so = _HOUSE.match(written) is not None and len(written.split()) <= _MOST_WORDS
    return is_written_so and not _NO_STREET.search(written) and not written[0].islower()
