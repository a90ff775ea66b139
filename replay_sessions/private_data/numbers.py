"""E-mail addresses, birth dates, and phone, card, order and identity numbers: by digits, grouping, label, check digit.

Identity numbers of a state are taken by their label in any form. Without one only those go whose form and check digits
no other number has: the French and Brazilian ones and Italy's tax code.
"""

import functools
import re
from collections.abc import Iterable, Iterator

import phonenumbers
from phonenumbers import PhoneNumberType

from replay_sessions.private_data.check_digits import (
    is_card_number,
    is_gtin,
    is_identity_number,
)
from replay_sessions.private_data.labelled import find_labelled
from replay_sessions.private_data.people import is_person, leading_name
from replay_sessions.private_data.spans import GAP, SEPARATOR, PageText, Span, is_unspaced, word_list, word_set

_MAILBOX = re.compile(r"[\w.+%'-]++\Z")  # what stands before an @, and after it
_SHOPS_MAILBOXES = (
    "info",
    "contact",
    "kontakt",
    "support",
    "service",
    "hello",
    "sales",
    "shop",
    "office",
    "mail",
    "help",
)
_MAX_MAILBOX = 64
_MAIL_DOMAIN = re.compile(r"(?:[^\W_](?:[\w-]{0,61}[^\W_])?\.){1,4}[^\W\d_]{2,24}")
_DIGITS = re.compile(
    r"[0-9](?<![0-9]{2})(?:[ ().‑–/-]{0,3}[0-9]){6,22}(?: ?(?:x|ext\.? ?)[0-9]{1,6})?"
    r"(?![^\W\u0e00-\u0e7f\u3000-\uffef]|@|[.,][0-9])"
)
_EXTENSION = re.compile(r" ?(?:x|ext\.? ?)[0-9]+\Z")
_NOT_BEFORE = frozenset(".,/#=$€£¥₹-–_+")
# The beginnings and groups of card numbers: Visa, Mastercard, Maestro, Amex, Diners Club, JCB, UnionPay, Discover.
_CARD = re.compile(r"(?:4|5|6|2[2-7]|3[04-9]|1800|2131)\d{11,18}")
_CARD_GROUPS = re.compile(r"\d{12,19}|\d{4}([ -])\d{4}\1\d{4}\1\d{1,7}|\d{4}([ -])\d{6}\2\d{4,5}")
_GTIN_LENGTHS = (12, 13, 14)  # of bar codes: a card number of such a length must stand alone or be labelled
# What is left of a card number that is shown in part: four digits after at least two dots or stars, or four x.
_LAST_FOUR = (
    re.compile(r"[•*·∙●][. -]{0,3}(?:[•*·∙●][. -]{0,3}){1,39}+[0-9]{4}(?![\w.,%])"),
    re.compile(r"[xX][. -]{0,3}(?:[xX][. -]{0,3}){3,39}+[0-9]{4}(?![\w.,%])"),
)
_ENDING = re.compile(
    r"(?i:\b(?:ending|ends)(?: in| with)?|Endziffern?|\bendet auf|\bse terminant par|\bterminada en|\btermina en"
    r"|\bque termina em|\bcom final|\bche termina con|\beindigend op|\bslutar på|\bkończąca się na)"
    r"[ :]{0,2}\d{4}(?![\w.,%])"
)
_EAST_ASIAN_ENDING = re.compile(r"(?:末尾|尾号)[ :：]{0,2}\d{4}(?![\w.,%])")
_LONGEST_ENDING = 40  # with what stands before its longest word
_ENDING_WORDS = frozenset({
    "ending", "ends", "Ending", "endet", "Endziffer", "Endziffern", "terminant", "terminada", "termina", "final",
    "beindigend", "slutar", "kończąca",
})  # fmt: skip
_IBAN = re.compile(r"[A-Z](?<!\w[A-Z])[A-Z][0-9]{2}(?: ?[A-Z0-9]{4}){2,7}(?: ?[A-Z0-9]{1,3})?(?!\w)")
_SHORTEST_IBAN = 15
_IBAN_START = re.compile(r"\n([A-Z]{2}[0-9]{2}[0-9A-Z]*)(?=\n)")
# Identity numbers that need no label: Brazil's and France's, with their check digits, and Italy's by its form.
_ITALIAN_ID = re.compile(r"\n([A-Z]{6}\d\d[A-EHLMPR-T]\d\d[A-Z]\d{3}[A-Z])(?=\n)")
_KNOWN_ORDER = re.compile(r"(?:\d{3}|D\d\d)-\d{7}-\d{7}|\d{2}-\d{5}-\d{5}")  # Amazon's and eBay's
_NORTH_AMERICAN = re.compile(r"(?:(?:00)?1[ .-])?(?:\(\d{3}\) ?|\d{3}([.-]))\d{3}[.-]\d{4}")
_DATE = re.compile(
    r"\d{1,2}[./ -]\d{1,2}[./ -](?:19|20)?\d\d|(?:19|20)\d\d[./-]\d{1,2}[./-]\d{1,2}"
    r"|(?:19|20)\d\d ?[–/-] ?(?:19|20)\d\d|\d{5}-\d{3}"  # and postcodes
)
_FREE_PHONE = re.compile(r"\(?0?[89]00\D")
_PUBLIC = frozenset(
    {PhoneNumberType.TOLL_FREE, PhoneNumberType.PREMIUM_RATE, PhoneNumberType.SHARED_COST, PhoneNumberType.UAN}
)
# Where shops are; a number written without its country is tried in each, where something says that it is one.
_REGIONS = (
    "US", "GB", "DE", "FR", "IT", "ES", "NL", "BE", "AT", "CH", "SE", "DK", "NO", "FI", "PL", "CZ", "PT", "IE", "RO",
    "GR",
    "JP", "KR", "CN", "TW", "HK", "SG", "IN", "AE", "IL", "AU", "NZ", "ZA", "BR", "MX", "CL", "AR", "TR", "RU", "UA",
)  # fmt: skip

_ANY_REGION = "ZZ"  # libphonenumber's word for a number that names its country

# How many different numbers of a page libphonenumber is asked about, which takes up to a millisecond for each. On a
# page with more of them they all count as phone numbers.
_MAX_JUDGED = 1_000

# A label stands at most so far before its number, with nothing but these between them.
_LOOK_BACK = 60
_SPEECH_REACH = 60
_NEAR_PHONE = 60
_LONGEST_TEXT = 300  # characters of one that speaks to somebody
_LONGEST_NAME = 40
_WORDS = re.compile(r"\w+")
_MOST_BEFORE_LABEL = 2  # words before a label in a cell of its own: "Your phone", not "3.7 V lithium cell"
_BETWEEN = f" \n:：#№.°º{SEPARATOR}"


def find_numbers(page: PageText, addresses: Iterable[Span] = (), *, is_speech: bool = False) -> Iterator[Span]:
    """E-mail addresses, card, order and phone numbers on a page.

    Args:
        addresses: The postal addresses on it.
        is_speech: The text is what a shopper said: "call" and the like need not stand right before their number.
    """
    text = page.joined
    emails = list(_emails(text))
    yield from emails
    yield from find_labelled(page)
    yield from (Span(start, start + len(code), "id_number") for start, code in page.offsets_of(page.clues(_ITALIAN_ID)))
    personal = _with_somebodys(page, emails).union(page.text_at(span.end - 1) for span in addresses)
    judge = _Judge(page, _SPEECH_REACH if is_speech else 0, personal)
    for match in _DIGITS.finditer(text):
        start = _number_start(text, match.start())
        if start >= 0 and (kind := judge.kind(start, match.end())):
            yield Span(start, match.end(), kind)
    yield from _shortened_cards(page)
    yield from _bank_accounts(page)


def _emails(text: str) -> Iterator[Span]:
    at = text.find("@")
    while at >= 0:
        if domain := _MAIL_DOMAIN.match(text, at + 1):
            mailbox = _MAILBOX.search(text, max(0, at - _MAX_MAILBOX), at)
            if mailbox is not None:
                yield Span(mailbox.start(), domain.end(), "email")
        at = text.find("@", at + 1)


def _with_somebodys(page: PageText, emails: list[Span]) -> set[int]:
    """The texts that hold an e-mail address that is not a shop's."""
    mailboxes = {page.text_at(span.start): page.joined[span.start : span.end].partition("@")[0] for span in emails}
    return {position for position, mailbox in mailboxes.items() if mailbox.lower() not in _SHOPS_MAILBOXES}


def _number_start(text: str, start: int) -> int:
    """Where a number begins whose first digit is at `start`, with its + or bracket; -1 if it goes on before that."""
    if text[max(0, start - 2) : start] == "+ ":
        start -= 2
    elif text[start - 1 : start] in ("+", "("):
        start -= 1
    before = text[start - 1 : start] if start else ""
    return -1 if (before.isalnum() and not is_unspaced(before)) or before in _NOT_BEFORE else start


def _shortened_cards(page: PageText) -> Iterator[Span]:
    """What is left of card numbers that are shown in part."""
    text = page.joined
    matches = [match for pattern in _LAST_FOUR for match in pattern.finditer(text)]
    for word in _ENDING_WORDS & page.words:
        for start in page.offsets(word):
            matches += _ENDING.finditer(text, max(0, start - _LONGEST_ENDING), start + _LONGEST_ENDING)
    if page.is_east_asian:
        matches += _EAST_ASIAN_ENDING.finditer(text)
    return (Span(*match.span(), "card") for match in matches)


def _bank_accounts(page: PageText) -> Iterator[Span]:
    """Account numbers with their check digits; what stands behind one may be written like its end."""
    for match in _IBAN.finditer(page.joined) if page.clues(_IBAN_START) else ():
        written = match[0]
        while len(written) >= _SHORTEST_IBAN:
            moved = written[4:].replace(" ", "") + written[:4]
            if int("".join(str(int(letter, 36)) for letter in moved)) % 97 == 1:
                yield Span(match.start(), match.start() + len(written), "card")
                break
            written = written.rpartition(" ")[0]


class _Judge:
    """Says of the runs of digits of a page what they are."""

    def __init__(self, page: PageText, reach: int, personal: set[int]) -> None:
        self._page = page
        self._text = page.joined
        self._personal = personal  # texts with an e-mail address or a postal one
        self._reach = reach  # how far before a number a word for phones may stand
        self._asked: set[str] = set()  # the numbers that libphonenumber was asked about

    def kind(self, start: int, end: int) -> str:
        """What a run of digits is: "order", "id_number", "card", "phone" or ""."""
        written = self._text[start:end]
        if _KNOWN_ORDER.fullmatch(written):
            return "order"
        if is_identity_number(written):
            return "id_number"
        if self._is_card(written, start, end):
            return "card"
        return "phone" if self._is_phone(written, start, end) else ""

    def _is_card(self, written: str, start: int, end: int) -> bool:
        if not _CARD_GROUPS.fullmatch(written):
            return False
        digits = written.replace(" ", "").replace("-", "")
        around = self._text[max(0, start - self._reach) : end + self._reach]
        if _is_labelled(self._text, start, "card_labels") or "card" in around:
            return True
        if not _CARD.fullmatch(digits) or not is_card_number(digits):
            return False
        return len(digits) not in _GTIN_LENGTHS or (not is_gtin(digits) and self._is_alone(start, end))

    def _is_phone(self, written: str, start: int, end: int) -> bool:
        """Whether it is a phone number: by the + or the brackets of its country, by a word before it, or because it
        stands alone and is written as somewhere. Everything else may be a part number or a row of sizes."""
        text = self._text
        is_international = written.startswith("+")
        is_labelled = _is_labelled(text, start, "phone_labels")
        if not is_international and not is_labelled and _is_labelled(text, start, "code_labels"):
            return False
        is_near = not written.isdigit() and (self._is_near_phone(start) or self._is_personal(start))
        is_written_as_phone = is_international or _NORTH_AMERICAN.fullmatch(_EXTENSION.sub("", written)) is not None
        before = text[max(0, start - self._reach) : start].lower()
        is_announced = is_labelled or not _phone_words().isdisjoint(_WORDS.findall(before))
        if not is_written_as_phone:
            if written.count("(") != written.count(")") or _DATE.fullmatch(written):
                return False
            is_split = written[0] in "0(" and not written.isdigit()
            if not (is_announced or is_near or (is_split and self._is_alone(start, end))):
                return False
        self._asked.add(written)
        if len(self._asked) > _MAX_JUDGED:
            return True
        if is_written_as_phone:
            return _fits(written, _ANY_REGION if is_international else "US")
        return _fits_somewhere(written, as_written=not (is_announced or (is_near and written[0] in "0(")))

    def _is_near_phone(self, start: int) -> bool:
        """Whether a word for phones stands before it in the same text, not right before."""
        text = self._text
        first = max(text.rfind(mark, max(0, start - _NEAR_PHONE), start) for mark in GAP) + 1
        before = text[max(first, start - _NEAR_PHONE) : start].lower()
        return _speaks_of_phone(before)

    def _is_personal(self, start: int) -> bool:
        """Whether its text speaks to somebody, is beside a name or an address, or answers who asked for a number."""
        position = self._page.text_at(start)
        text = self._page.texts[position]
        line, _ = self._page.piece_around(start)
        before = self._text[max(0, line - _LONGEST_TEXT) : max(0, line - 1)].rpartition(SEPARATOR)[2].strip()
        if not self._personal.isdisjoint(range(position - 1, position + 2)):
            return True
        if len(before) <= _LONGEST_TEXT and before.endswith(("?", "？")) and _speaks_of_phone(before.lower()):
            return True
        if len(before) <= _LONGEST_NAME and " " in before and leading_name(before) == before and is_person(before):
            return True
        return len(text) <= _LONGEST_TEXT and not word_set("second_person").isdisjoint(_WORDS.findall(text.lower()))

    def _is_alone(self, start: int, end: int) -> bool:
        """Whether nothing else stands in its text or attribute."""
        text = self._text
        return (start == 0 or text[start - 1] in GAP) and (end == len(text) or text[end] in GAP)


def _speaks_of_phone(lowered: str) -> bool:
    is_unspaced_word = not lowered.isascii() and any(label in lowered for label in _unspaced_phone_words())
    return is_unspaced_word or not _phone_words().isdisjoint(_WORDS.findall(lowered))


@functools.lru_cache(4096)  # a shop's own numbers are on all of its pages
def _fits_somewhere(written: str, *, as_written: bool) -> bool:
    """Whether a number without its country fits one: is possible there, or is in use and written as it is there."""
    return not _FREE_PHONE.match(written) and any(_fits(written, region, as_written=as_written) for region in _REGIONS)


def _fits(written: str, region: str, *, as_written: bool = False) -> bool:
    """Whether a number is one of a person in a region, and no free-phone line."""
    try:
        number = phonenumbers.parse(written, region)
    except phonenumbers.NumberParseException:
        return False
    # The quick looks first: the first number of a type in a region has libphonenumber compile its patterns.
    if not phonenumbers.is_possible_number(number) or (as_written and not phonenumbers.is_valid_number(number)):
        return False
    public = _PUBLIC if region != _ANY_REGION else {PhoneNumberType.TOLL_FREE}
    if phonenumbers.number_type(number) in public:
        return False
    if not as_written:
        return True
    usual = phonenumbers.format_number(number, phonenumbers.PhoneNumberFormat.NATIONAL)
    return _WORDS.findall(usual) == _WORDS.findall(written)


@functools.cache
def _unspaced_phone_words() -> tuple[str, ...]:
    return tuple(label for label in word_list("phone_labels", "phone_clues") if is_unspaced(label[0]))


@functools.cache
def _phone_words() -> frozenset[str]:
    return frozenset(
        label.lower().rstrip(".") for label in word_list("phone_labels", "phone_clues") if " " not in label
    )


@functools.cache
def _labels(name: str) -> tuple[str, ...]:
    return tuple(label.rstrip(_BETWEEN).lower() for label in word_list(name))


def _is_labelled(text: str, start: int, labels: str) -> bool:
    """Whether one of the labels stands before a place: in the same text, or at the end of a short one."""
    around = text[max(0, start - _LOOK_BACK) : start]
    before = around.rstrip(_BETWEEN).lower()
    if not before.endswith(_labels(labels)):
        return False
    is_cell_before = SEPARATOR in around[len(before) :]
    for label in _labels(labels):
        if before.endswith(label):
            rest = before[: -len(label)]
            own_words = rest[max(map(rest.rfind, GAP)) + 1 :].split()  # those in the same text
            if not rest[-1:].isalnum() and not (is_cell_before and len(own_words) > _MOST_BEFORE_LABEL):
                return True
    return False
