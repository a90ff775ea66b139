"""Postal addresses by their pattern: a street and its number in the manner of a country, with the town that follows.

Streets whose word means other things too ("4 Wheel Drive", "Dichtring 12") need a postcode or a town behind them.
"""

import re
from collections.abc import Iterator

from replay_sessions.simplify.private_data.spans import GAP, PageText, Span

__all__ = ["find_addresses"]

_CAPITAL = "A-ZÀ-ÖØ-ÞĀĂĄĆĈĊČĎĐĒĖĘĚĞĠĢĦĪİĮĶŁĻĽŃŅŇŌŐŒŘŚŞŠŢŤŪŮŰŲŹŻŽ"
_WORD = rf"[{_CAPITAL}][\w’'.-]*"
_NAME = rf"{_WORD}(?:[ -](?:{_WORD}|de|del|de la|la|las|los|el|da|do|dos|das|di|du|des|d'|van|den|der|von|am|an|im|zu)){{0,4}}"
_HOUSE = r"\d{1,5}(?:[ -]?[a-zA-Z](?!\w))?(?:[/-]\d{1,4})?(?!\w|[.,]\d)"
_STATES = (
    "AL|AK|AZ|AR|CA|CO|CT|DE|FL|GA|HI|ID|IL|IN|IA|KS|KY|LA|ME|MD|MA|MI|MN|MS|MO|MT|NE|NV|NH|NJ|NM|NY|NC|ND|OH|OK|OR|PA|RI|SC|SD|TN|TX|UT|VT|VA"
    "|WA|WV|WI|WY|DC|PR"
)
_AUSTRALIAN = "NSW|VIC|QLD|SA|WA|TAS|ACT|NT"
_CANADIAN = "AB|BC|MB|NB|NL|NS|NT|NU|ON|PE|QC|SK|YT"
_UK_AREAS = (
    "AB|AL|B|BA|BB|BD|BH|BL|BN|BR|BS|BT|CA|CB|CF|CH|CM|CO|CR|CT|CV|CW|DA|DD|DE|DG|DH|DL|DN|DT|DY|E|EC|EH|EN|EX|FK|FY|G|GL|GU|GY|HA|HD|HG|HP|HR"
    "|HS|HU|HX|IG|IM|IP|IV|JE|KA|KT|KW|KY|L|LA|LD|LE|LL|LN|LS|LU|M|ME|MK|ML|N|NE|NG|NN|NP|NR|NW|OL|OX|PA|PE|PH|PL|PO|PR|RG|RH|RM|S|SA|SE|SG|SK|SL"
    "|SM|SN|SO|SP|SR|SS|ST|SW|SY|TA|TD|TF|TN|TQ|TR|TS|TW|UB|W|WA|WC|WD|WF|WN|WR|WS|WV|YO|ZE"
)
_UK_POSTCODE = rf"(?:{_UK_AREAS})\d[A-Z\d]? \d(?!GB|TB|HZ|MB|PC|ST)[ABD-HJLNP-UW-Z]{{2}}"
_CANADIAN_POSTCODE = r"[ABCEGHJ-NPRSTVXY]\d[A-Z] ?\d[A-Z]\d"
_TOWN = rf"{_WORD}(?:[ -]{_WORD}){{0,3}}"
# A postcode with its town, in either order, or a town with a region: what makes a street an address.
_PLACE = (
    rf"(?:(?:[A-Z]{{1,2}}-)?\d{{4,6}}(?:-\d{{3}})? {_TOWN}|\d{{2}}-\d{{3}} {_TOWN}|\d{{3}} ?\d{{2}} {_TOWN}|\d{{4}} ?[A-Z]{{2}}(?: {_TOWN})?"
    rf"|{_TOWN},? (?:{_STATES}|{_AUSTRALIAN}|{_CANADIAN})(?:,? \d{{4,5}}(?:-\d{{4}})?|,? {_CANADIAN_POSTCODE})?"
    rf"|(?:{_TOWN},? )?(?:{_UK_POSTCODE}|{_CANADIAN_POSTCODE})|{_TOWN}[ ,–-]+\d{{5,6}}(?:-\d{{3}})?)(?!\w)"
)
_SEP = r"(?:,? (?:– |- )?|, )"
_UNIT = r"(?:,? (?:Apt|Apartment|Suite|Ste|Unit|Flat|Floor|Fl|Room|Rm|#|Bldg|Building|Top|Stiege|Wohnung|appt|piso|planta|int|m)\.? ?#?[\w-]{1,6})?"
_REST = rf"(?:{_SEP}{_PLACE})"


def _compile(*alternatives: str) -> re.Pattern[str]:
    return re.compile("|".join(alternatives))


# A number first: English and French streets. The words of the second group are no streets without a town.
_NUMBER_FIRST = _compile(
    rf"(?<![\w.,#$€£/-])\d{{1,6}}[A-Za-z]?(?:-\d{{1,4}})?,? (?:[NSEW]\.? |North |South |East |West )?(?:{_WORD} |\d{{1,3}}(?:st|nd|rd|th) ){{1,4}}?"
    rf"(?:(?:Street|Avenue|Ave|Road|Boulevard|Blvd|Lane|Parkway|Pkwy|Terrace|Crescent|Gardens|Mews|St|Rd)\b\.?{_UNIT}{_REST}?"
    rf"|(?:Drive|Dr|Court|Ct|Way|Place|Pl|Circle|Cir|Square|Sq|Trail|Trl|Close|Grove|Row|Hill|Park|Ln|Highway|Hwy|Walk|View|Green|Loop|Quay)"
    rf"\b\.?{_UNIT}{_REST})",
    rf"(?<![\w.,#$€£/-])\d{{1,4}}(?: ?(?:bis|ter))?,? (?:rue|avenue|av\.|boulevard|bd|place|chemin|allée|impasse|quai|cours|route|square|passage|Rue|Avenue"
    rf"|Boulevard|Place|Chemin|Allée|Impasse|Quai|Cours|Route) (?:de la |de l['’]|du |des |de |d['’]|la |le |les )?{_NAME}{_REST}?",
)
# A street word first, then its name and the number: Romance, Slavic and Turkish streets.
_WORD_FIRST = _compile(
    rf"(?<!\w)(?:Calle|C/|Avenida|Avda\.?|Av\.|Paseo|Plaza|Carrer|Camino|Ronda|Travesía|Rúa|Via|Viale|Piazza|Corso|Largo|Vicolo|Rua|Praça|Travessa|Alameda"
    rf"|Estrada|Rodovia|Strada|Str\.|Bulevardul|Calea|ul\.|al\.|os\.|Ulica|Aleja) ?(?:de la |de los |de las |del |de |da |do |dos |das |di |della |dei )?"
    rf"{_NAME},? (?:n[º°.o]{{0,2}} ?|nr\.? ?|No:? ?)?{_HOUSE}(?:,? \d{{1,2}}[º°ª]? ?[A-Za-z0-9]{{0,3}}\b)?{_REST}?",
    r"(?<!\w)(?:ул\.|улица|пр\.|пр-т|просп\.|проспект|пер\.|переулок|б-р|бульвар|наб\.|вул\.|вулиця|бул\.) ?[А-ЯЁІЇЄҐ][\w.-]*(?: [А-ЯЁ][\w.-]*){0,3},? "
    r"(?:д\.? ?|буд\. ?|дом )?\d{1,4}[а-я]?(?:/\d{1,3})?(?:,? (?:кв|корп|стр)\.? ?\d{1,4}){0,2}",
    rf"(?<!\w)(?:{_WORD} ){{1,3}}(?:Caddesi|Cad\.|Sokak|Sokağı|Sok\.|Mahallesi|Mah\.|Bulvarı),? ?(?:No ?[:.]? ?)?\d{{0,4}}(?:[/-]\d{{1,3}})?{_REST}?",
    r"(?:شارع|طريق) (?:[^\W\d_]+ ?){1,4}[،,]? ?\d{0,4}",
    r"(?:רחוב|רח'|שדרות|שד') [^\W\d_]+(?: [^\W\d_]+){0,2} \d{1,4}",
)
# A street whose word is the end of its name: Germanic and Nordic streets.
_SUFFIXED = _compile(
    rf"(?<!\w)(?:{_WORD}[ -]){{0,2}}[{_CAPITAL}][\w-]*(?:straße|strasse|str\.|gasse|allee|gatan|vägen|gränd|gade|gata|veien|straat|gracht|katu|tie)"
    rf" {_HOUSE}{_REST}?",
    rf"(?<!\w)(?:{_WORD}[ -]){{0,3}}(?:Straße|Strasse|Str\.|Allee|Gasse) {_HOUSE}{_REST}?",
    rf"(?<!\w)(?:{_WORD}[ -]){{0,2}}[{_CAPITAL}][\w-]*(?:weg|platz|ring|damm|ufer|hof|markt|torget|vej|laan|plein|kade|dijk|singel|steeg|berg|chaussee)"
    rf" {_HOUSE}{_REST}",
)
_PLACES = _compile(
    rf"(?<!\w){_TOWN},? (?:{_STATES}) \d{{5}}(?:-\d{{4}})?(?!\w)",
    rf"(?<!\w){_TOWN},? (?:{_AUSTRALIAN}) \d{{4}}(?!\w)",
    rf"(?<!\w)(?:{_TOWN},? )?(?:(?:{_CANADIAN}),? )?{_CANADIAN_POSTCODE.replace(' ?', ' ')}(?!\w)",
    rf"(?<!\w)(?:{_TOWN},? )?{_UK_POSTCODE}(?!\w)",
)
_BOX = re.compile(
    rf"(?<!\w)(?:P\.? ?O\.? ?Box|Postfach|Apartado(?: de correos)?|Casella postale|Postbus|Caixa Postal|BP) ?\d{{2,6}}{_REST}?"
)
_EAST_ASIAN = _compile(
    rf"(?:〒 ?\d{{3}}-?\d{{4}}\s*)?(?:東京都|北海道|(?:京都|大阪)府|[一-鿿]{{2,3}}県)[^\s{GAP}、。，]{{1,30}}\d[\d丁目番地号−ー-]*(?:[ 　][^\s{GAP}、。]{{1,20}})?",
    r"〒 ?\d{3}-?\d{4}",
    rf"[一-鿿]{{2,6}}(?:省|市|自治区|縣)[一-鿿]{{1,12}}?(?:路|街|道|巷|弄|胡同|大道|段)[^\s{GAP}，。、]{{0,14}}?\d+ ?[号號弄栋幢]?[^\s{GAP}，。、]{{0,12}}",
    r"(?:[가-힣]{2,7}(?:시|도) )?(?:[가-힣]{1,5}[시군구] ){1,2}[가-힣\d]{1,12}(?:로|길|동) ?\d{1,4}(?:-\d{1,4})?(?:번지|번길)?(?:,? ?[\d가-힣]{1,6}(?:동|호|층))*",
)


# The words that make it worth while to look for a pattern around them: looking everywhere would cost ten times as much.
_CLUES: dict[str, re.Pattern[str]] = {
    **dict.fromkeys(
        "Street Avenue Ave Road Boulevard Blvd Lane Parkway Pkwy Terrace Crescent Gardens Mews St Rd Drive Dr Court Ct Way Place Pl Circle Cir "
        "Square Sq Trail Trl Close Grove Row Hill Park Ln Highway Hwy Walk View Green Loop Quay rue avenue av boulevard bd place chemin allée "
        "impasse quai cours route square passage Rue Chemin Allée Impasse Quai Cours Route".split(),
        _NUMBER_FIRST,
    ),
    **dict.fromkeys(
        "Calle C/ Avenida Avda Av Paseo Plaza Carrer Camino Ronda Travesía Rúa Via Viale Piazza Corso Largo Vicolo Rua Praça Travessa Alameda "
        "Estrada Rodovia Strada Bulevardul Calea ul al os Ulica Aleja ул улица пр пр-т просп проспект пер переулок б-р бульвар наб вул "
        "вулиця бул Caddesi Cad Sokak Sokağı Sok Mahallesi Mah Bulvarı شارع طريق רחוב שדרות".split(),
        _WORD_FIRST,
    ),
    **dict.fromkeys("Straße Strasse Allee Gasse".split(), _SUFFIXED),
    **dict.fromkeys((*_STATES.split("|"), *_AUSTRALIAN.split("|")), _PLACES),
    **dict.fromkeys("Box Postfach Apartado postale Postbus Postal BP".split(), _BOX),
}
_SUFFIXES = (
    "straße", "strasse", "str", "gasse", "allee", "gatan", "vägen", "gränd", "gade", "gata", "veien", "straat", "gracht", "katu", "tie", "weg",
    "platz", "ring", "damm", "ufer", "hof", "markt", "torget", "vej", "laan", "plein", "kade", "dijk", "singel", "steeg", "berg", "chaussee",
)  # fmt: skip
_POSTCODE_END = re.compile(r"\d[A-Z]{2}|\d[A-Z]\d")  # British and Canadian
_EAST_ASIAN_CLUES = re.compile("[県都道府〒路街巷弄號号로길동]")
_REACH = 120


def find_addresses(page: PageText) -> Iterator[Span]:
    """Postal addresses on a page."""
    for word in page.words:
        if (pattern := _CLUES.get(word)) is None:
            if word.endswith(_SUFFIXES) and word[0].isupper():
                pattern = _SUFFIXED
            elif len(word) == 3 and _POSTCODE_END.fullmatch(word):
                pattern = _PLACES
            else:
                continue
        for start, end in page.around(word, _REACH):
            for match in pattern.finditer(page.joined, start, end):
                yield Span(*match.span(), "address")
    if not page.joined.isascii() and _EAST_ASIAN_CLUES.search(page.joined):
        for match in _EAST_ASIAN.finditer(page.joined):
            yield Span(*match.span(), "address")
