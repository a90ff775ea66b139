"""Private data in addresses of pages: parameters that are called after it, and whatever looks private in their values.

Credentials go wherever an address has them: tokens, passwords and keys by their parameter's name, JSON web tokens by
their form, a session's id behind a semicolon, and a user's name and password before the host. Form fields are called
as parameters are, so `kind_by_name` is asked of both.

    https://shop.example/login?email=anna%40example.org&next=/cart   ->   https://shop.example/login?email=[email]&next=/cart

Only what is private changes; all else stays as it was written, escapes included.
"""

import re
from collections.abc import Callable, Iterator
from urllib.parse import unquote_plus

from replay_sessions.private_data.people import is_person, leading_name
from replay_sessions.private_data.spans import GAP, Span

# Parameters by what their names hold, the first that fits; with small letters and without punctuation.
_KINDS = (
    ("email", re.compile(r"e?mail(?:addr.*)?|.*email|correo|courriel")),
    ("card", re.compile(r"(?:credit|debit|bank)?card(?:no|nr|num|number)?|ccn?|ccnum.*|pan|iban")),
    ("phone", re.compile(r".*(?:phone|mobile|msisdn|whatsapp)(?:no|nr|number)?|tel|cell|fax|handy|telefon")),
    ("address", re.compile(r".*(?:address|addr|street|zipcode|postcode|postalcode|plz)[12]?|zip|(?:deliver|ship)to")),
    ("order", re.compile(
        r"(?:order|bestell(?:ung|ing)?|ordre|commande|pedido|ordine|zamowieni[ea]|objednavk[ay]|rendeles|tilaus|siparis|comanda)"
        r"(?:s?no|nr|num|number|id|nummer|numero|numer)?|(?:num(?:ero|er)?|nr|no)(?:order|commande|pedido|ordine|zamowienia)"
    )),
    ("name", re.compile(
        r"(?:full|first|last|given|family|middle|sur|user|customer|recipient|buyer|holder|contact|card|member)+name|[fl]name"
        r"|recipient|customer|buyer|cardholder|ccowner|payer|addressee|vorname|nachname|prenom|nombre|apellidos?|cognome|sobrenome|voornaam|achternaam|fornavn|efternavn|etternavn"
        r"|fornamn|efternamn|imie|nazwisko|jmeno|prijmeni"
    )),
)  # fmt: skip
_SECRET_NAMES = (
    r"[\w.-]*(?:token|jwt|secret|signature|api[_-]?key|access[_-]?key|auth[_-]?key|private[_-]?key|password|passwd"
    r"|pass[_-]?(?:code|phrase)|sess(?:ion)?[_-]?id|credential)|sig|sid|pwd|pass|otp|pin|clave|passwort|mot_?de_?passe|contrase[nñ]a|cv[cv]2?|authorization|key-pair-id"
)
# Under these names only what is long and looks drawn by lot.
_MAYBE_SECRET = r"code|ticket|key|hash|auth|state|nonce|session|sess|magic|invite|otk|[ckhts]"
_DRAWN = r"(?=[^&;#]{0,40}\d)(?=[^&;#]{0,40}[A-Za-z])[\w.~%-]{14,}"
# What hints at each; the secret is what comes after its group. They are looked for one by one, which is quicker by far.
_SECRETS = (
    ("=", re.compile(rf"([?&;#](?i:{_SECRET_NAMES})=)[^&;#?\s{GAP}]+")),
    ("=", re.compile(rf"([?&;#](?i:{_MAYBE_SECRET})=){_DRAWN}")),
    ("//", re.compile(rf"(//)[^/?#@:\s{GAP}]+:[^/?#@\s{GAP}]*(?=@)")),
    ("eyJ", re.compile(r"(\b)eyJ[\w-]{8,}\.[\w-]{4,}(?:\.[\w-]*)?")),
)
_MAYBE_NAME = re.compile(r"name|user|from|to|for|author|account|profile|u|login")
_PART = re.compile(r"([?&;#/])(?:([\w.\[\]%~-]+)=)?([^?&;#/=]*)")
_USER_FOLDER = frozenset(
    {"user", "users", "u", "profile", "profiles", "member", "members", "customer", "customers", "people"}
)
_FEWEST_DIGITS = 5  # of an order's number
_NOT_WORD = re.compile(r"[\W_]+")


def without_private_parts(url: str, clean: Callable[[str], str]) -> str:
    """An address of a page without what is private in it.

    Args:
        clean: Takes out of a value, its escapes undone, what looks private.
    """
    folder = ""
    url = without_credentials(url)

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


def find_credentials(text: str) -> Iterator[Span]:
    """Credentials in the addresses that stand in a text."""
    for clue, pattern in _SECRETS:
        if clue in text:
            yield from (Span(match.end(1), match.end(), "secret") for match in pattern.finditer(text))


def without_credentials(url: str) -> str:
    """An address without what would let its reader in.

    >>> without_credentials("https://shop.example/in?user=u4&password=open+it&next=/")
    'https://shop.example/in?user=u4&password=[secret]&next=/'
    """
    for _, pattern in _SECRETS:
        url = pattern.sub(r"\1[secret]", url)
    return url


def kind_by_name(name: str) -> str:
    """The kind of private data that a parameter or a field holds by its name; "" where it holds none."""
    plain = _NOT_WORD.sub("", name.lower())
    return next((kind for kind, pattern in _KINDS if pattern.fullmatch(plain)), "")


def _kind_of(name: str, value: str) -> str:
    name = unquote_plus(name)
    kind = kind_by_name(name) if len(value.strip()) > 1 or value.isdigit() else ""
    if kind:
        is_number = sum(map(str.isdigit, value)) >= _FEWEST_DIGITS or kind != "order"  # not order=price
        return kind if any(map(str.isalnum, value)) and is_number else ""
    if _MAYBE_NAME.fullmatch(_NOT_WORD.sub("", name.lower())):
        leading = leading_name(value)
        if leading and leading == value and (is_person(value) or len(value.split()) > 1):
            return "name"
    return ""


def _is_named(value: str) -> bool:
    """Whether the part after /users/ is somebody, not a page of the shop: "anna-lindqvist", "annika_77"."""
    words = [word for word in re.split(r"[\W_\d]+", unquote_plus(value)) if word]
    return any(map(str.isdigit, value)) or any(is_person(word.capitalize()) for word in words)
