"""Recognizes by their names the form fields and URL parameters that hold private data."""

import re
from collections.abc import Mapping

# Matched against names in lower case and without punctuation; the first match decides.
_KINDS = (
    ("email", re.compile(r"e?mail(?:addr.*)?|.*email|correo|courriel")),
    ("card", re.compile(r"(?:credit|debit|bank)?card(?:no|nr|num|number)?|ccn?|cc(?:num|csc|exp).*|pan|iban")),
    (
        "phone",
        re.compile(
            r".*(?:phone|mobile|msisdn|whatsapp)(?:no|nr|number)?|tel(?:national|local)?|cell|fax|handy|telefon"
        ),
    ),
    (
        "address",
        re.compile(
            r".*(?:address|addr|street|zipcode|postcode|postalcode|plz)(?:(?:line|level)?\d)?|zip|city"
            r"|(?:deliver|ship)to"
        ),
    ),
    ("birth_date", re.compile(r"bday.*|(?:date)?(?:of)?birth(?:date|day)?|dob|geburtsdatum|fechanacimiento")),
    (
        "name",
        re.compile(
            r"(?:cc|full|first|last|given|family|additional|middle|sur|user|customer|recipient|buyer|holder|contact|card"
            r"|member)+name|[fl]name|recipient|cardholder|payer|addressee|vorname|nachname|prenom|apellidos?|cognome"
        ),
    ),
)
_NOT_WORD = re.compile(r"[\W_]+")
_LEAST_PHONE = 5
_NOT_TYPED = frozenset({"button", "checkbox", "image", "password", "radio", "reset", "submit"})


def kind_by_name(name: str) -> str:
    """Returns the kind of private data that the name of a field or parameter stands for; "" if none.

    >>> kind_by_name("customer[first_name]"), kind_by_name("q")
    ('name', '')
    """
    normalized = _NOT_WORD.sub("", name.lower())
    return next((kind for kind, pattern in _KINDS if pattern.fullmatch(normalized)), "")


def kind_of_field(attributes: Mapping[str, str | None]) -> str:
    """Returns the kind of private data that is typed into a form field with these attributes; "" if none."""
    kind = (attributes.get("type") or "").lower()
    if kind in _NOT_TYPED:
        return ""
    autocomplete = (attributes.get("autocomplete") or "").split()
    if "name" in autocomplete:
        return "name"
    names = [*autocomplete, kind, attributes.get("name"), attributes.get("id")]
    kind = next((kind for name in names if name and (kind := kind_by_name(name))), "")
    value = attributes.get("value")
    return kind if value is None or _is_possible(kind, value) else ""


def _is_possible(kind: str, value: str) -> bool:
    """Returns False if a value cannot be of the kind, such as the shop's own hint in an untouched field."""
    if kind == "email":
        return "@" in value.strip("@")
    least = _LEAST_PHONE if kind == "phone" else 1  # amounts have fields of type "tel" too, for the keypad of phones
    return kind in ("name", "address") or sum(map(str.isdigit, value)) >= least
