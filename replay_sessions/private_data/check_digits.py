"""Numbers that prove themselves by their check digits: cards, bar codes, identity numbers of Brazil and France."""

import re

BRAZILIAN_ID = re.compile(r"\d{3}\.\d{3}\.\d{3}-\d\d")
FRENCH_ID = re.compile(r"([12] ?\d\d ?(?:0[1-9]|1[0-2]) ?\d\d ?\d{3} ?\d{3}) ?(\d\d)")


def is_identity_number(written: str) -> bool:
    if BRAZILIAN_ID.fullmatch(written):
        digits = [int(digit) for digit in written if digit.isdigit()]
        sums = [sum(digit * (count + 1 - at) for at, digit in enumerate(digits[:count])) for count in (9, 10)]
        return [total * 10 % 11 % 10 for total in sums] == digits[9:]
    french = FRENCH_ID.fullmatch(written)
    return french is not None and int(french[1].replace(" ", "")) % 97 == 97 - int(french[2])


def is_gtin(digits: str) -> bool:
    """Whether the last digit is the check digit of a bar code."""
    return (sum(map(int, digits[::-2])) + 3 * sum(map(int, digits[-2::-2]))) % 10 == 0


def is_card_number(digits: str) -> bool:
    """Luhn's check, which every card number passes and one in ten other numbers."""
    doubled = [sum(divmod(2 * int(digit), 10)) for digit in digits[-2::-2]]
    return (sum(map(int, digits[::-2])) + sum(doubled)) % 10 == 0
