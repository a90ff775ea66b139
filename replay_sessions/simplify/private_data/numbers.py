"""E-mail addresses, and phone, card and order numbers by their digits, their grouping and their label."""

import functools
import re
from collections.abc import Iterator

import phonenumbers
from phonenumbers import PhoneNumberType

from replay_sessions.simplify.private_data.labels import word_list
from replay_sessions.simplify.private_data.spans import AROUND_WORDS, SEPARATOR, PageText, Span

__all__ = ["find_numbers"]

_MAILBOX = re.compile(r"[\w.+%'-]++\Z")  # what stands before an @, and after it
_MAX_MAILBOX = 64
_MAIL_DOMAIN = re.compile(r"(?:[^\W_](?:[\w-]{0,61}[^\W_])?\.){1,4}[^\W\d_]{2,24}")
_DIGITS = re.compile(r"[0-9](?<![0-9]{2})(?:[ ().‑–/-]{0,3}[0-9]){6,22}(?![\w@]|[.,][0-9])")
_NOT_BEFORE = frozenset(".,/#=$€£¥₹-–_+")
_CARD = re.compile(
    r"[3-6]\d{3}([ -])\d{4}\1\d{4}\1\d{4}|3[47]\d\d([ -])\d{6}\2\d{5}"
    r"|(?:4|5[1-5]|2[2-7]|6)\d{14,15}|3[47]\d{13}"
)
# What is left of a card number that is shown in part: four digits after at least two dots or stars, or four x.
_LAST_FOUR = re.compile(r"[•*·∙●xX][. -]{0,3}[0-9]{4}(?![\w.,%])")
_MASKS = dict.fromkeys("•*·∙●", ("•*·∙●", 2)) | dict.fromkeys("xX", ("xX", 4))
_MASK_CLUES = (*"•*·∙●", "xxxx", "XXXX")
_LONGEST_MASK = 40
_ENDING = re.compile(
    r"(?i:\b(?:ending|ends) (?:in|with)|Endziffern?|\bendet auf|\bse terminant par|\bterminada en|\btermina en"
    r"|\bque termina em|\bcom final|\bche termina con|\beindigend op|\bslutar på|\bkończąca się na|末尾|尾号)"
    r"[ :]{0,2}\d{4}(?![\w.,%])"
)
_BEFORE_ENDING, _AFTER_ENDING = 15, 30  # how far it reaches around its word
_ENDING_WORDS = frozenset({
    "ending", "ends", "Ending", "endet", "Endziffer", "Endziffern", "terminant", "terminada", "termina", "final",
    "beindigend", "slutar", "kończąca",
})  # fmt: skip
_IBAN = re.compile(r"[A-Z](?<!\w[A-Z])[A-Z][0-9]{2}(?: ?[A-Z0-9]{4}){2,7}(?: ?[A-Z0-9]{1,3})?(?!\w)")
_IBAN_START = re.compile(r"\n([A-Z]{2}[0-9]{2}[0-9A-Z]*)(?=\n)")
_AFTER_LABEL = re.compile(
    rf"[ .:：#№°º{SEPARATOR}]{{0,6}}([A-Z0-9]{{1,40}}+(?:[-/ ](?=[A-Z]{{0,20}}[0-9])[A-Z0-9]{{1,40}}+){{0,8}})(?!\w)"
)
_KNOWN_ORDER = re.compile(r"(?:\d{3}|D\d\d)-\d{7}-\d{7}|\d{2}-\d{5}-\d{5}")  # Amazon's and eBay's
_MIN_ORDER_DIGITS = 5
_AMOUNT = re.compile(r"\d{1,3}(?: \d{3})+")  # as in "Place order 131 990 €"
_NORTH_AMERICAN = re.compile(r"(?:1[ .-])?(?:\(\d{3}\) ?|\d{3}([.-]))\d{3}[.-]\d{4}")
_DATE = re.compile(
    r"\d{1,2}[./ -]\d{1,2}[./ -](?:19|20)?\d\d|(?:19|20)\d\d[./-]\d{1,2}[./-]\d{1,2}"
    r"|(?:19|20)\d\d ?[–/-] ?(?:19|20)\d\d"
)
_FREE_PHONE = re.compile(r"\(?0?[89]00\D")
_PUBLIC = frozenset(
    {PhoneNumberType.TOLL_FREE, PhoneNumberType.PREMIUM_RATE, PhoneNumberType.SHARED_COST, PhoneNumberType.UAN}
)
# Where shops are; a number written without its country is tried in each.
_REGIONS = (
    "US", "GB", "DE", "FR", "IT", "ES", "NL", "BE", "AT", "CH", "SE", "DK", "NO", "FI", "PL", "CZ", "PT", "IE", "RO",
    "GR",
    "JP", "KR", "CN", "TW", "HK", "SG", "IN", "AE", "IL", "AU", "NZ", "ZA", "BR", "MX", "CL", "AR", "TR", "RU", "UA",
)  # fmt: skip

# How many different numbers of a page libphonenumber is asked about, which takes up to a millisecond for each. On a
# page with more of them they all count as phone numbers.
_MAX_JUDGED = 1_000

# A label stands at most so far before its number, with nothing but these between them.
_LOOK_BACK = 60
_BETWEEN = f" \n:：#№.°º{SEPARATOR}"


def find_numbers(page: PageText) -> Iterator[Span]:
    """E-mail addresses, card, order and phone numbers on a page."""
    text = page.joined
    yield from _emails(text)
    judged: set[str] = set()
    for match in _DIGITS.finditer(text):
        start = _number_start(text, match.start())
        if start >= 0 and (kind := _kind(text[start : match.end()], text, start, judged)):
            yield Span(start, match.end(), kind)
    yield from _orders(page)
    yield from _shortened_cards(page)
    yield from _bank_accounts(page)


def _emails(text: str) -> Iterator[Span]:
    place = text.find("@")
    while place >= 0:
        if domain := _MAIL_DOMAIN.match(text, place + 1):
            mailbox = _MAILBOX.search(text, max(0, place - _MAX_MAILBOX), place)
            if mailbox is not None:
                yield Span(mailbox.start(), domain.end(), "email")
        place = text.find("@", place + 1)


def _number_start(text: str, start: int) -> int:
    """Where a number begins whose first digit is at `start`, with its + or bracket; -1 if it goes on before that."""
    if text[max(0, start - 2) : start] == "+ ":
        start -= 2
    elif text[start - 1 : start] in ("+", "("):
        start -= 1
    before = text[start - 1 : start] if start else ""
    return -1 if before.isalnum() or before in _NOT_BEFORE else start


def _shortened_cards(page: PageText) -> Iterator[Span]:
    """What is left of card numbers that are shown in part."""
    text = page.joined
    if any(clue in text for clue in _MASK_CLUES):
        for match in _LAST_FOUR.finditer(text):
            marks, least = _MASKS[match[0][0]]
            before = text[max(0, match.start() - _LONGEST_MASK) : match.start() + 1]
            mask = before[len(before.rstrip(f"{marks}. -")) :].lstrip(". -")
            if sum(map(mask.count, marks)) >= least:
                yield Span(match.start() + 1 - len(mask), match.end(), "card")
    for word in (*_ENDING_WORDS, "末尾", "尾号") if page.is_east_asian else page.words & _ENDING_WORDS:
        for place in page.places(word):
            if ending := _ENDING.search(text, max(0, place - _BEFORE_ENDING), place + _AFTER_ENDING):
                yield Span(*ending.span(), "card")


def _bank_accounts(page: PageText) -> Iterator[Span]:
    if page.clues(_IBAN_START):
        for match in _IBAN.finditer(page.joined):
            if _is_iban(match[0].replace(" ", "")):
                yield Span(*match.span(), "card")


def _kind(written: str, text: str, start: int, judged: set[str]) -> str:
    """What a run of digits is: "order", "card", "phone" or "".

    Args:
        judged: The numbers of the page that libphonenumber was asked about.
    """
    if _KNOWN_ORDER.fullmatch(written):
        return "order"
    if _CARD.fullmatch(written) and ("-" in written or " " in written or _has_check_digit(written)):
        return "card"
    is_international = written.startswith("+")
    if not is_international and _is_labelled(text, start, "code_labels"):
        return ""
    is_written_as_phone = is_international or _NORTH_AMERICAN.fullmatch(written) is not None
    if not is_written_as_phone and (written.count("(") != written.count(")") or _DATE.fullmatch(written)):
        return ""
    looks_like_phone = is_written_as_phone or (written.startswith(("0", "(")) and not written.isdigit())
    if not looks_like_phone and not _is_labelled(text, start, "phone_labels"):
        return ""
    judged.add(written)
    if len(judged) > _MAX_JUDGED:
        return "phone"
    if is_written_as_phone:
        return "phone" if _is_phone(written, "ZZ" if is_international else "US") else ""
    if looks_like_phone and _is_phone_somewhere(written, valid=True):
        return "phone"
    return "phone" if _is_labelled(text, start, "phone_labels") and _is_phone_somewhere(written, valid=False) else ""


@functools.lru_cache(4096)  # a shop's own numbers are on all of its pages
def _is_phone_somewhere(written: str, *, valid: bool) -> bool:
    return not _FREE_PHONE.match(written) and any(_is_phone(written, region, valid=valid) for region in _REGIONS)


def _is_phone(written: str, region: str, *, valid: bool = False) -> bool:
    """Whether a number is one of a person: possible there (or, more strictly, in use), and no free-phone line."""
    try:
        number = phonenumbers.parse(written, region)
    except phonenumbers.NumberParseException:
        return False
    fits = phonenumbers.is_valid_number(number) if valid else phonenumbers.is_possible_number(number)
    return fits and phonenumbers.number_type(number) not in _PUBLIC


def _orders(page: PageText) -> Iterator[Span]:
    """Numbers of five digits and more that a label calls an order, an invoice, a delivery."""
    text = page.joined
    for word in _order_words() if page.is_east_asian else page.words & _order_words():
        for place in page.places(word):
            code = _AFTER_LABEL.match(text, place + len(word))
            if code is None or sum(map(str.isdigit, code[1])) < _MIN_ORDER_DIGITS or _AMOUNT.fullmatch(code[1]):
                continue
            if _is_labelled(text, code.start(1), "order_labels"):
                yield Span(*code.span(1), "order")


@functools.cache
def _order_words() -> frozenset[str]:
    """The last words of the labels of orders, in each way to write them."""
    last = {label.split()[-1].lower() for label in word_list("order_labels")}
    last |= {word.strip(AROUND_WORDS) for word in last} - {""}
    return frozenset(written for word in last for written in (word, word.capitalize(), word.upper()))


@functools.cache
def _labels(name: str) -> tuple[str, ...]:
    return tuple(label.rstrip(_BETWEEN).lower() for label in word_list(name))


def _is_labelled(text: str, start: int, labels: str) -> bool:
    """Whether one of the labels stands before a place, in the same text or in the one before it."""
    before = text[max(0, start - _LOOK_BACK) : start].rstrip(_BETWEEN).lower()
    if not before.endswith(_labels(labels)):
        return False
    return any(before.endswith(label) and not before[: -len(label)][-1:].isalnum() for label in _labels(labels))


def _has_check_digit(written: str) -> bool:
    """Luhn's check, which every card number passes and one in ten other numbers."""
    digits = [int(digit) for digit in reversed(written) if digit.isdigit()]
    return sum(digits[0::2] + [sum(divmod(2 * digit, 10)) for digit in digits[1::2]]) % 10 == 0


def _is_iban(written: str) -> bool:
    return int("".join(str(int(letter, 36)) for letter in written[4:] + written[:4])) % 97 == 1
