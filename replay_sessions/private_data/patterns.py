"""Finds values that are private by their form: e-mail addresses, phone, card, bank account and tax numbers.

The patterns are strict, because the pages of shops are full of numbers. A phone number has a country code or is written
as in North America. A card number has an issuer's prefix and length, and all numbers except phone numbers have valid
check digits. Any ten digits are a tax number in some country, so tax numbers are found only behind a word for them.
"""

import functools
import pkgutil
import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

import phonenumbers
from phonenumbers import PhoneNumberType
from stdnum import iban, luhn

_EMAIL = re.compile(r"(?<![\w.+%'-])[\w.+%'-]{1,64}@(?:[^\W_][\w-]{0,61}\.){1,4}[^\W\d_]{2,24}(?!\w)")
# Names of shops' mailboxes. They are whole names, because officer.jane@ and hello.kitty@ are people's.
_MAILBOX = re.compile(
    r"(?:info|contact|kontakt|support|(?:customer|kunden)[._-]?(?:care|dienst|service|support)|service|hello|sales|shop"
    r"|office|mail|help|no-?reply|orders?|returns?)@(?!(?:gmail|googlemail|yahoo|ymail|hotmail|outlook|live|msn|icloud"
    r"|me|aol|gmx|web|t-online|mail|yandex|ya|proton(?:mail)?|zoho|qq|163|126|naver|daum|hanmail|orange|free|libero|wp"
    r"|o2|seznam|rediffmail)\.[a-z.]{2,6}\Z)",  # where anybody may have a mailbox of any name
    re.IGNORECASE,
)
# The lookbehind follows the digit, because `re` is faster at a pattern that begins with a plain character class.
_NUMBER = re.compile(r"[0-9](?<![\w.,/#=$€£¥₹–-][0-9])(?:[ ().‑–/-]{0,3}[0-9]){6,22}(?!\w|@|[.,][0-9])")
_NORTH_AMERICAN = re.compile(r"(?:1[ .-])?(?:[2-9]\d\d\) ?|[2-9]\d\d([.-]))[2-9]\d\d[.-]\d{4}")
_NOBODYS_PHONES = frozenset(
    {PhoneNumberType.TOLL_FREE, PhoneNumberType.PREMIUM_RATE, PhoneNumberType.SHARED_COST, PhoneNumberType.UAN}
)
_CARD_GROUPS = re.compile(r"\d{15,19}|\d{4}([ -])\d{4}\1\d{4}\1\d{4,7}|\d{4}([ -])\d{6}\2\d{4,5}")
# Visa, Mastercard, American Express, Diners Club, Discover, JCB, UnionPay.
_ISSUERS = re.compile(
    r"4\d{15}|(?:5[1-5]|2[2-7])\d{14}|3[47]\d{13}|3(?:0[0-5]|[68]\d)\d{11}|6(?:011|5\d\d)\d{12}|35\d{14}|62\d{14,17}"
)
_ACCOUNT = re.compile(r"[A-Z](?<!\w[A-Z])[A-Z][0-9]{2}(?: ?[A-Z0-9]{4}){2,7}(?: ?[A-Z0-9]{1,3})?(?!\w)")
# The words for tax and social security numbers, with the module of python-stdnum that checks the number.
_TAX_WORDS = {
    "aadhaar": "in_.aadhaar",
    "bsn": "nl.bsn",
    "codice fiscale": "it.codicefiscale",
    "cpf": "br.cpf",
    "curp": "mx.curp",
    "dni": "es.nif",
    "nie": "es.nif",
    "nif": "es.nif",
    "personnummer": "se.personnummer",
    "pesel": "pl.pesel",
    "social security": "us.ssn",
    "ssn": "us.ssn",
    "steuer-id": "de.idnr",
    "sécurité sociale": "fr.nir",
    "tax file number": "au.tfn",
}
_TAX_NUMBER = (
    r"(?<!\w)(?:{})(?:\W{{1,3}}[^\W\d]{{1,12}}){{0,2}}\W{{1,3}}((?=[A-Z]{{0,6}}\d)\w{{1,18}}(?:[ ./-]\w{{1,9}}){{0,6}})"
)


class Span(NamedTuple):
    """A private value and its position in a text."""

    start: int
    end: int
    kind: str
    text: str


def find_private_data(text: str, *, mailboxes: bool = False) -> list[Span]:
    """Returns the values in a text that are private by their form, in order and without overlaps.

    Args:
        mailboxes: Whether e-mail addresses with the name of a shop's mailbox (info@) count, with the kind "mailbox".

    >>> tuple((span.kind, span.text) for span in find_private_data("SSN 536-90-4399 or +49 30 901820"))
    (('id_number', '536-90-4399'), ('phone', '+49 30 901820'))
    """
    spans: list[Span] = []
    for span in sorted([*_emails(text), *_numbers(text), *_accounts(text), *_tax_numbers(text)]):
        if (not spans or span.start >= spans[-1].end) and (mailboxes or span.kind != "mailbox"):
            spans.append(span)
    return spans


def _emails(text: str) -> Iterator[Span]:
    for match in _EMAIL.finditer(text) if "@" in text else ():
        yield Span(match.start(), match.end(), "mailbox" if _MAILBOX.match(match[0]) else "email", match[0])


def _numbers(text: str) -> Iterator[Span]:
    for match in _NUMBER.finditer(text):
        before = text[match.start() - 1 : match.start()]
        start = match.start() - (before == "+" or (before == "(" and ")" in match[0]))
        written = text[start : match.end()]
        if kind := _kind_of_number(written):
            yield Span(start, match.end(), kind, written)


def _accounts(text: str) -> Iterator[Span]:
    for match in _ACCOUNT.finditer(text):
        if account := _valid_beginning(match[0], iban.is_valid):
            yield Span(match.start(), match.start() + len(account), "card", account)


def _tax_numbers(text: str) -> Iterator[Span]:
    """Yields every occurrence of each tax number that at least once follows a word for it."""
    lowered = text.lower()
    numbers = {
        number
        for word, module in _TAX_WORDS.items()
        if word in lowered
        for match in re.finditer(_TAX_NUMBER.format(word), text, re.IGNORECASE)
        if (number := _valid_beginning(match[1], pkgutil.resolve_name(f"stdnum.{module}:is_valid")))
    }
    for number in numbers:
        for match in re.finditer(rf"(?<!\w){re.escape(number)}(?!\w)", text):
            yield Span(*match.span(), "id_number", number)


@functools.lru_cache(4096)  # the same numbers stand on many pages of a shop
def _kind_of_number(written: str) -> str:
    """Returns "card" or "phone" if a number, as it is written, is private; otherwise ""."""
    if _CARD_GROUPS.fullmatch(written):
        digits = written.replace(" ", "").replace("-", "")
        if _ISSUERS.fullmatch(digits) and luhn.is_valid(digits):
            return "card"
    is_international = written.startswith("+")
    if not is_international and not _NORTH_AMERICAN.fullmatch(written.removeprefix("(")):
        return ""
    try:
        number = phonenumbers.parse(written, None if is_international else "US")
    except phonenumbers.NumberParseException:
        return ""
    # A leading + or ( marks a phone number, so a possible one is enough; 415-212-0134 may be a part number.
    is_phone = (phonenumbers.is_valid_number if written[0].isdigit() else phonenumbers.is_possible_number)(number)
    return "phone" if is_phone and phonenumbers.number_type(number) not in _NOBODYS_PHONES else ""


def _valid_beginning(written: str, is_valid: Callable[[str], bool]) -> str:
    """Returns the longest valid prefix of whole words, because the text behind a number may look like a part of it."""
    while written and not is_valid(written):
        written = written.rpartition(" ")[0]
    return written
