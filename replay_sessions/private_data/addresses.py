"""Postal addresses by their pattern: a street and its number in the manner of a country, with the town that follows.

Streets whose word means other things too ("4 Wheel Drive", "Dichtring 12") need a postcode or a town behind them. The
patterns are tried only around the words of a street or a region: trying them everywhere would cost ten times as much.
Words are matched whole (`*+`) or bounded, so that no text makes a pattern try one word in all its parts. Each is
compiled when a page first needs it: all of them together take a tenth of a second.
"""

import functools
import re
from collections.abc import Callable, Iterator

from replay_sessions.private_data.postcodes import end_of_address, find_places
from replay_sessions.private_data.spans import GAP, SEPARATOR, PageText, Span, word_list

_REACH = 120


def _any_of(*lists: str) -> str:
    """A pattern of the words of lists of words.toml."""
    return "|".join(map(re.escape, word_list(*lists)))


_CAPITAL = "A-ZÀ-ÖØ-ÞĀĂĄĆĈĊČĎĐĒĖĘĚĞĠĢĦĪİĮĶŁĻĽŃŅŇŌŐŒŘŚŞŠŢŤŪŮŰŲŹŻŽ"
_WORD = rf"[{_CAPITAL}][\w’'.-]*+"
_PART = rf"[{_CAPITAL}][\w’'.]*+"  # of a word with hyphens
_SMALL = (
    "de la|de los|de las|de l['’]|della|dei|del|des|dos|das|de|du|di|da|do|d['’]|las|los|la|le|les|el|van|den|der|von"
    "|am|an|im|zu"
)
_NAME = rf"{_WORD}(?: (?:{_WORD}|{_SMALL})){{0,4}}"
_TOWN = rf"{_WORD}(?: {_WORD}){{0,3}}"
_HOUSE = r"\d{1,5}(?:[ -]?[a-zA-Z](?!\w))?(?:[/-]\d{1,4})?(?!\w|[.,]\d)"
_STATES = (
    "AL AK AZ AR CA CO CT DE FL GA HI ID IL IN IA KS KY LA ME MD MA MI MN MS MO MT NE NV NH NJ NM NY NC ND OH OK OR PA "
    "RI SC SD TN TX UT VT VA WA WV WI WY DC PR AA AE AP"
)
_AUSTRALIAN = "NSW VIC QLD SA WA TAS ACT NT"
_CANADIAN = "AB|BC|MB|NB|NL|NS|NT|NU|ON|PE|QC|SK|YT"
_REGION = f"{_STATES} {_AUSTRALIAN} {_CANADIAN}".replace(" ", "|")
_UK_AREAS = (
    "AB|AL|B|BA|BB|BD|BH|BL|BN|BR|BS|BT|CA|CB|CF|CH|CM|CO|CR|CT|CV|CW|DA|DD|DE|DG|DH|DL|DN|DT|DY|E|EC|EH|EN"
    "|EX|FK|FY|G|GL|GU|GY|HA|HD|HG|HP|HR|HS|HU|HX|IG|IM|IP|IV|JE|KA|KT|KW|KY|L|LA|LD|LE|LL|LN|LS|LU|M|ME|MK"
    "|ML|N|NE|NG|NN|NP|NR|NW|OL|OX|PA|PE|PH|PL|PO|PR|RG|RH|RM|S|SA|SE|SG|SK|SL|SM|SN|SO|SP|SR|SS|ST|SW|SY|TA"
    "|TD|TF|TN|TQ|TR|TS|TW|UB|W|WA|WC|WD|WF|WN|WR|WS|WV|YO|ZE"
)
# The second half of a British postcode, but for what is a number of gigabytes or the like.
_UK_POSTCODE = rf"(?:{_UK_AREAS})\d[A-Z\d]? \d(?!GB|TB|HZ|MB|PC|ST)[ABD-HJLNP-UW-Z]{{2}}"
_CANADIAN_POSTCODE = r"[ABCEGHJ-NPRSTVXY]\d[A-Z] \d[A-Z]\d"
# What makes a street an address: a postcode with its town, in either order, or a town with a region.
_PLACE = (
    rf"(?:(?:[A-Z]{{1,2}}-)?\d{{4,6}}(?:-\d{{3}})? {_TOWN}|\d{{2}}-\d{{3}} {_TOWN}|\d{{3}} ?\d{{2}} {_TOWN}"
    rf"|\d{{4}} ?[A-Z]{{2}}(?: {_TOWN})?|{_TOWN},? (?:{_REGION})(?:,? (?:\d{{4,5}}(?:-\d{{4}})?|{_CANADIAN_POSTCODE}))?"
    rf"|(?:{_TOWN},? )?(?:{_UK_POSTCODE}|{_CANADIAN_POSTCODE})|{_TOWN}[ ,–-]+\d{{5,6}}(?:-\d{{3}})?)(?!\w)"
)
_REST = rf"(?:(?:,? (?:[–-] )?|,?{SEPARATOR}){_PLACE})"
_UNIT = (
    r"(?:,? (?:Apt|Apartment|Suite|Ste|Unit|Flat|Floor|Fl|Room|Rm|#|Bldg|Building|Top|Stiege|Wohnung|appt|piso|planta"
    r"|int|m)\.? ?#?[\w-]{1,6})?"
)
_NOT_IN_NUMBER = r"(?<![\w.,#$€£/-])"


_STREET_NOUNS = "|".join(word.capitalize() for word in word_list("street_endings"))


Pattern = Callable[[], re.Pattern[str]]


def _pattern(*alternatives: str) -> Pattern:
    return functools.cache(lambda: re.compile("|".join(alternatives)))


_NUMBER_FIRST = _pattern(
    rf"{_NOT_IN_NUMBER}\d{{1,6}}[A-Za-z]?(?:-\d{{1,4}})?,? (?:[NSEW]\.? |North |South |East |West )?"
    rf"(?:{_WORD} |\d{{1,3}}(?:st|nd|rd|th) ){{1,4}}?"
    rf"(?:(?P<sure>{_any_of('sure_street_words_after_number')})\b\.?{_UNIT}(?P<rest>{_REST})?"
    rf"|(?:{_any_of('street_words_after_number')})\b\.?{_UNIT}{_REST})",
    rf"{_NOT_IN_NUMBER}\d{{1,4}}(?: ?(?:bis|ter))?,? (?:{_any_of('french_street_words')})\.? (?:(?:{_SMALL}) ?)?"
    rf"{_NAME}{_REST}?",
)
_WORD_FIRST = _pattern(
    rf"(?<!\w)(?:{_any_of('street_words_before_name')})\.? ?(?:(?:{_SMALL}) )?{_NAME},? "
    rf"(?:n[º°.o]{{0,2}} ?|nr\.? ?|No:? ?)?{_HOUSE}(?:,? \d{{1,2}}[º°ª]? ?[A-Za-z0-9]{{0,3}}\b(?!-\d))?{_REST}?",
    rf"(?<!\w)(?:{_any_of('street_words_before_name_and_town')})\.? ?(?:(?:{_SMALL}) )?{_NAME},? {_HOUSE}{_REST}",
    rf"(?<!\w)(?:{_any_of('russian_street_words')})\.? ?[А-ЯЁІЇЄҐ][\w.-]*(?: [А-ЯЁ][\w.-]*){{0,3}},? "
    r"(?:д\.? ?|буд\. ?|дом )?\d{1,4}[а-я]?(?:/\d{1,3})?(?:,? (?:кв|корп|стр)\.? ?\d{1,4}){0,2}",
    rf"(?<!\w)(?:{_WORD} ){{1,3}}(?:{_any_of('turkish_street_words')})\.?,? ?(?:No ?[:.]? ?)?\d{{0,4}}"
    rf"(?:[/-]\d{{1,3}})?{_REST}?",
    r"(?:شارع|طريق) (?:[^\W\d_]++ ?){1,4}[،,]? ?\d{1,4}",
    r"(?:רחוב|שדרות) [^\W\d_]++(?: [^\W\d_]++){0,2} \d{1,4}",
)
_ENDING = _pattern(
    rf"(?<!\w)(?:{_PART}[ -]){{0,3}}[{_CAPITAL}]\w{{0,40}}(?:{_any_of('sure_street_endings')})\.? {_HOUSE}{_REST}?",
    rf"(?<!\w)(?:{_PART}[ -]){{0,3}}(?:Straße|Strasse|Str\.|Allee|Gasse) {_HOUSE}{_REST}?",
    rf"(?<!\w)(?:{_PART}[ -]){{1,4}}(?:{_STREET_NOUNS}) {_HOUSE}{_REST}",
    rf"(?<!\w)(?:{_PART}[ -]){{0,3}}[{_CAPITAL}]\w{{0,40}}(?:{_any_of('street_endings')}) {_HOUSE}{_REST}",
)
_TOWN_CODE = _pattern(
    rf"(?<!\w){_TOWN},? (?:{_STATES.replace(' ', '|')}) \d{{5}}(?:-\d{{4}})?(?!\w)",
    rf"(?<!\w){_TOWN},? (?:{_AUSTRALIAN.replace(' ', '|')}) \d{{4}}(?!\w)",
    rf"(?<!\w)(?:{_TOWN},? )?(?:(?:{_CANADIAN}),? )?{_CANADIAN_POSTCODE}(?!\w)",
    rf"(?<!\w)(?:{_TOWN},? )?{_UK_POSTCODE}(?!\w)",
)
_LINE = (
    rf"(?>(?:(?:{_WORD}|{_SMALL}|[a-zà-ÿ]{{2,8}}\.?|\d{{1,4}}[ºª°]?) ){{0,6}}"
    rf"(?:{_WORD}|\d{{1,5}}(?:[/-]\d{{1,5}})?[a-zA-Z]?))"
)
_LONGEST_ADDRESS = 150
# What may stand before a town with its region: lines with at most one number each, the first of them with one.
_LINE_BEFORE = re.compile(rf"(?:#?{_LINE}|#?\d+)\Z")
_MOST_LINES_BEFORE = 3
_LONGEST_SAYING = 8
_SAYS_WHERE = re.compile(r"(?:\b(?:at|to|in|on|near|from|is)|[,:]) \Z", re.IGNORECASE)
_EAST_ASIAN = _pattern(
    r"[一-鿿]{2,8}(?:路|街|道|巷|胡同) ?\d{1,5} ?[号號](?: ?\d{1,4} ?[幢栋室楼层单元]+)*",
    r"(?:〒 ?\d{3}-?\d{4}\s*)?(?:東京都|北海道|(?:京都|大阪)府|[一-鿿]{2,3}県)"
    rf"[^\s{GAP}、。，]{{1,30}}\d[\d丁目番地号−ー-]*(?:[ 　][^\s{GAP}、。]{{1,20}})?",
    r"〒 ?\d{3}-?\d{4}",
    r"(?>[一-鿿]{2,6}?(?:省|市|自治区|縣))(?>[一-鿿]{1,12}?(?:路|街|道|巷|弄|胡同|段))"
    rf"[^\s{GAP}，。、]{{0,14}}? ?\d++ ?[号號弄栋幢]?[^\s{GAP}，。、]{{0,12}}(?: ?\d{{1,4}} ?[幢栋室楼层单元]+)*",
    r"(?:[가-힣]{2,7}(?:시|도) )?(?:[가-힣]{1,5}[시군구] ){1,2}[가-힣\d]{1,12}(?:로|길|동) ?\d{1,4}(?:-\d{1,4})?"
    r"(?:번지|번길)?(?:,? ?[\d가-힣]{1,6}(?:동|호|층))*",
)


# The districts that they name.
_EAST_ASIAN_CLUE = re.compile("[〒県都府省市区縣]|[路街道巷] ?[0-9]|北海道|[시군구](?= )")


_AFTER_NUMBER = ("sure_street_words_after_number", "street_words_after_number", "french_street_words")
_BEFORE_NAME = (
    "street_words_before_name", "russian_street_words", "street_words_before_name_and_town", "turkish_street_words",
)  # fmt: skip
_CLUES = {
    word.split()[-1]: pattern
    for pattern, words in (
        (_NUMBER_FIRST, word_list(*_AFTER_NUMBER)),
        (_WORD_FIRST, [*word_list(*_BEFORE_NAME), "شارع", "طريق", "רחוב", "שדרות"]),
        (_ENDING, ["Straße", "Strasse", "Allee", "Gasse", *_STREET_NOUNS.split("|")]),
        (_TOWN_CODE, f"{_STATES} {_AUSTRALIAN}".split()),
    )
    for word in words
}
_STREET_ENDINGS = tuple(
    written
    for word in word_list("sure_street_endings", "street_endings")
    for written in (word, f"-{word.capitalize()}")
)
_ENDING_LENGTH = min(map(len, _STREET_ENDINGS))
_ENDING_LETTERS = frozenset(ending[-_ENDING_LENGTH:] for ending in _STREET_ENDINGS)  # one look rules most words out
_POSTCODE_END = re.compile(r"\n([0-9][A-Z][A-Z0-9])(?=\n)")  # British and Canadian
_POSTCODE_BEGIN = re.compile(r"(?:.*\W)?[A-Z]{1,2}\d[A-Z\d]? ?$")
# What must stand near a clue, so that most of them cost no more than a look.
_DIGIT = re.compile(r"[0-9]")
_HOUSE_NEAR = re.compile(r"[^0-9]{0,40}[0-9]")
_NUMBER_NEXT = re.compile(r"[.,]? [0-9]{1,5}")


def find_addresses(page: PageText) -> Iterator[Span]:
    """Postal addresses on a page."""
    return (span._replace(end=end_of_address(page.joined, span.end)) for span in _find(page))


def _find(page: PageText) -> Iterator[Span]:
    text = page.joined
    clues = {word: _CLUES[word] for word in _CLUES.keys() & page.words}
    clues |= dict.fromkeys(page.clues(_POSTCODE_END), _TOWN_CODE)
    likely = [word for word in page.capitalised if word[-_ENDING_LENGTH:] in _ENDING_LETTERS]
    clues |= dict.fromkeys([word for word in likely if word.endswith(_STREET_ENDINGS)], _ENDING)
    promising: dict[Pattern, list[int]] = {}
    for offset, word in page.offsets_of(clues):
        pattern = clues[word]
        if _is_promising(text, offset, offset + len(word), pattern):
            promising.setdefault(pattern, []).append(offset)
    for pattern, offsets in promising.items():
        yield from _matches(text, pattern, offsets)
    yield from find_places(page)
    if page.is_east_asian:
        yield from _matches(text, _EAST_ASIAN, [clue.start() for clue in _EAST_ASIAN_CLUE.finditer(text)])


def _matches(text: str, pattern: Pattern, offsets: list[int]) -> Iterator[Span]:
    """The addresses of a pattern around places."""
    for start, end in _surroundings(offsets):
        for match in pattern().finditer(text, start, end):
            if pattern is _TOWN_CODE:
                yield Span(_first_line(text, match.start()), match.end(), "address")
            elif pattern is not _NUMBER_FIRST or _is_somewhere(match):
                yield Span(*match.span(), "address")


def _first_line(text: str, end: int) -> int:
    """Where an address begins whose town and region stand at a place: lines up to that with the number of a house."""
    start = end
    for _ in range(_MOST_LINES_BEFORE):
        head = text[max(0, start - _LONGEST_ADDRESS) : start].rstrip(f", {SEPARATOR}")
        line = max(head.rfind(mark) for mark in (",", ":", *GAP)) + 1
        words = head[line:].strip()
        if not words or not _LINE_BEFORE.match(words):
            return end
        start -= len(text[max(0, start - _LONGEST_ADDRESS) : start]) - head.rfind(words)
        if any(map(str.isdigit, words)):
            return start
    return end


def _is_somewhere(match: re.Match[str]) -> bool:
    """Whether a street is said to be one by what is around it: films and games are called "21 Jump Street" too."""
    if not match["sure"] or match["rest"]:
        return True
    before = match.string[max(0, match.start() - _LONGEST_SAYING) : match.start()]
    return _SAYS_WHERE.search(before) is not None


def _surroundings(offsets: list[int]) -> Iterator[tuple[int, int]]:
    """The stretches of text around places; what is around several of them is one stretch."""
    if not offsets:
        return
    offsets.sort()
    start = offsets[0]
    for offset, following in zip(offsets, (*offsets[1:], None), strict=True):
        if following is None or following - offset > 2 * _REACH:
            yield max(0, start - _REACH), offset + _REACH
            start = following or 0


def _is_promising(text: str, start: int, end: int, pattern: Pattern) -> bool:
    """Whether the number that a pattern asks for is there, before or after its clue."""
    if pattern is _NUMBER_FIRST:
        return _DIGIT.search(text, max(0, start - 60), start) is not None
    if pattern is _TOWN_CODE and text[start].isdigit():
        return _POSTCODE_BEGIN.match(text[max(0, start - 6) : start]) is not None
    if end - start == 2 and pattern is _WORD_FIRST and text[end : end + 1] != ".":
        return False  # "al" and the like are words of their own
    return (_HOUSE_NEAR if pattern is _WORD_FIRST else _NUMBER_NEXT).match(text, end) is not None
