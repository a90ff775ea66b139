"""Private data in addresses of pages: parameters that are called after it, and whatever looks private in their values.

    https://shop.example/login?email=anna%40example.org&next=/cart   ->   https://shop.example/login?email=[email]&next=/cart

Only what is private changes; all else stays as it was written, escapes included.
"""

import re
from collections.abc import Callable
from urllib.parse import unquote_plus

from replay_sessions.private_data.people import is_person, leading_name

# Parameters by what their names hold, the first that fits; with small letters and without punctuation.
_KINDS = (
    ("email", re.compile(r"e?mail(?:addr.*)?|.*email")),
    ("card", re.compile(r"(?:credit|debit|bank)?card(?:no|nr|num|number)?|ccn?|ccnum.*|pan|iban")),
    ("phone", re.compile(r".*(?:phone|mobile|msisdn|whatsapp)(?:no|nr|number)?|tel|cell|fax|handy|telefon")),
    ("address", re.compile(r".*(?:address|addr|street|zipcode|postcode|postalcode|plz)[12]?|zip|(?:deliver|ship)to")),
    ("name", re.compile(
        r"(?:full|first|last|given|family|middle|sur|user|customer|recipient|buyer|holder|contact|card|member)+name|[fl]name"
        r"|recipient|customer|buyer|cardholder|payer|addressee|vorname|nachname|prenom|nombre|apellidos?"
    )),
)  # fmt: skip
_MAYBE_NAME = re.compile(r"name|user|from|to|for|author|account|profile|u|login")
_PART = re.compile(r"([?&;#/])(?:([\w.\[\]%~-]+)=)?([^?&;#/=]*)")
_USER_FOLDER = frozenset(
    {"user", "users", "u", "profile", "profiles", "member", "members", "customer", "customers", "people"}
)
_NOT_WORD = re.compile(r"[\W_]+")


def without_private_parts(url: str, clean: Callable[[str], str]) -> str:
    """An address of a page without what is private in it.

    Args:
        clean: Takes out of a value, its escapes undone, what looks private.
    """
    folder = ""

    def cleaned(match: re.Match[str]) -> str:
        nonlocal folder
        mark, name, value = match[1], match[2], match[3]
        before, folder = folder, value.lower() if mark == "/" else ""
        kind = _kind_of(name, unquote_plus(value)) if name else ""
        if not kind and not name and mark == "/" and before in _USER_FOLDER and _is_named(value):
            kind = "name"
        if not value or not (kind or (decoded := unquote_plus(value)) != (after := clean(decoded))):
            return match[0]
        return mark + (f"{name}=" if name else "") + (f"[{kind}]" if kind else after.replace(" ", "+"))

    start = url.find("://") + 3 if "://" in url else 0
    return url[:start] + _PART.sub(cleaned, url[start:])


def _kind_of(name: str, value: str) -> str:
    """The kind of private data that a parameter holds by its name; "" where it holds none."""
    plain = _NOT_WORD.sub("", unquote_plus(name).lower())
    if len(value.strip()) > 1 or value.isdigit():
        for kind, pattern in _KINDS:
            if pattern.fullmatch(plain):
                return kind if any(map(str.isalnum, value)) else ""
    if _MAYBE_NAME.fullmatch(plain):
        leading = leading_name(value)
        if leading and leading == value and (is_person(value) or len(value.split()) > 1):
            return "name"
    return ""


def _is_named(value: str) -> bool:
    """Whether the part after /users/ is somebody, not a page of the shop: "anna-lindqvist", "annika_77"."""
    words = [word for word in re.split(r"[\W_\d]+", unquote_plus(value)) if word]
    return any(map(str.isdigit, value)) or any(is_person(word.capitalize()) for word in words)
