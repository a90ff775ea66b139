"""Parses the prices of a log in any notation, and formats them for pages."""

import re
from functools import lru_cache

_SYMBOLS = {"USD": "$", "EUR": "€", "GBP": "£", "JPY": "¥", "INR": "₹", "KRW": "₩", "TRY": "₺", "ILS": "₪", "UAH": "₴"}
_WITHOUT_CENTS = ("JPY", "KRW", "¥", "₩")
_NOT_SIGN = re.compile(r"[-\d.,\s]")
_NUMBER = re.compile(r"-?\d(?:[\d.,'’\s]*\d)?")
_THOUSANDS = re.compile(r"\d{1,3}(?:,\d{2,3})*,\d{3}")  # India's groups of two digits too


def parse_price(text: str, *, decimal_comma: bool = False) -> tuple[float, str] | None:
    """Returns the number in a text and the currency beside it; None if the text has no number or several.

    If points and commas both occur, the last of them precedes the decimals. So does a single point or comma, except a
    comma before three digits.

    Args:
        text: The text of a price.
        decimal_comma: Whether points always separate thousands and a comma precedes the decimals.

    >>> parse_price("1.299,00 €"), parse_price("$1,299"), parse_price("12,90"), parse_price("9.5")
    ((1299.0, '€'), (1299.0, '$'), (12.9, ''), (9.5, ''))
    >>> parse_price("1.299 zł", decimal_comma=True), parse_price("₹1,23,456"), parse_price("cheap")
    ((1299.0, 'zł'), (123456.0, '₹'), None)
    """
    numbers = _NUMBER.findall(text)
    if len(numbers) != 1:
        return None
    digits = re.sub(r"['’\s]", "", numbers[0])
    if decimal_comma or (digits.rfind(",") > digits.rfind(".") and not _THOUSANDS.fullmatch(digits)):
        digits = digits.replace(".", "").replace(",", ".")
    elif digits.count(".") > 1:
        digits = digits.replace(".", "")
    try:
        return float(digits.replace(",", "")), text.replace(numbers[0], "").strip()
    except ValueError:
        return None


def format_price(number: float, currency: str) -> str:
    """Formats a price with the symbol of its currency.

    >>> format_price(1299.5, "EUR"), format_price(13620, "JPY"), format_price(3, "$"), format_price(12, "PLN")
    ('€1,299.50', '¥13,620', '$3.00', 'PLN 12.00')
    """
    decimals = 0 if currency.upper() in _WITHOUT_CENTS else 2
    symbol = currency_symbol(currency)
    return f"{symbol}{' ' if len(symbol) > 1 else ''}{number:,.{decimals}f}"


def currency_symbol(currency: str) -> str:
    """Returns the symbol of a currency, or its code if it has none.

    >>> currency_symbol("eur"), currency_symbol("PLN"), currency_symbol("$")
    ('€', 'PLN', '$')
    """
    return _SYMBOLS.get(currency.upper(), currency)


@lru_cache(10_000)
def currency_of(price: str) -> str:
    """Returns the currency in a price of `format_price`; "" if it has none."""
    return _NOT_SIGN.sub("", price)


def with_currency(price: str, currency: str) -> str:
    """Returns a price of `format_price` with a currency, unless it has one.

    >>> with_currency("1,299.50", "EUR"), with_currency("$3.00", "EUR"), with_currency("3.00", "")
    ('€1,299.50', '$3.00', '3.00')
    """
    return price if currency_of(price) else format_price(float(price.replace(",", "")), currency)
