"""Finds words for elements without words: by a sign (`×`), the classes of an icon, or the site of a link."""

import itertools
import re
from typing import Any

_SIGNS = {
    "plus": "+＋➕", "minus": "-−–—➖", "close": "×✕✖✗✘╳x", "next": "›»→>❯▶►▸⟩", "previous": "‹«←<❮◀◄◂⟨",
    "menu": "☰≡⋮", "more": "…⋯", "down": "▼▾↓⌄˅", "up": "▲▴↑⌃˄", "favorite": "♡♥❤🤍⭐★☆", "search": "🔍🔎⌕",
    "cart": "🛒🛍", "done": "✓✔", "info": "ⓘℹ", "help": "?？", "account": "👤", "delete": "🗑", "edit": "✎✏",
    "phone": "☎📞", "mail": "✉📧", "refresh": "↻⟳🔄", "settings": "⚙", "language": "🌐", "home": "⌂🏠",
}  # fmt: skip
_WORD_OF_SIGN = {sign: word for word, signs in _SIGNS.items() for sign in signs}
# Words in the classes of controls and icons that name a function, not a look (`left`, `round`).
_ACTION_WORDS = (
    "account add apply back bag basket bookmark calendar call camera cancel cart chat check checkout chevron clear "
    "close collapse compare confirm contact copy currency decrease decrement delete dismiss download dropdown edit "
    "email expand facebook favorite favorites favourite favourites filter forward fullscreen gift google hamburger "
    "heart help home increase increment info instagram language like linkedin location login logo logout magnifier "
    "mail map menu message minus more next notification notifications open pause phone pinterest play plus pr prev "
    "previous print profile quantity rate refresh register remove reset save search send settings share shuffle sort "
    "star store submit subscribe tiktok toggle trash twitter undo upload user video whatsapp wishlist youtube zoom"
)
_ACTIONS = frozenset(_ACTION_WORDS.split())
_NAMING = ("class", "data-icon", "data-action", "data-qa", "data-testid", "href", "xlink:href", "name", "title")
_WORDS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+")
_HOST = re.compile(r"\s*(?:https?:)?//(?:www\.|m\.)?([\w-]+)\.[\w.-]+", re.IGNORECASE)
_MOST_NODES = 30
_MOST_WORDS = 3


def words_of_sign(text: str) -> str:
    """Returns the word for a sign; "" if the text is no known sign.

    >>> words_of_sign("−"), words_of_sign("›"), words_of_sign("12")
    ('minus', 'next', '')
    """
    return _WORD_OF_SIGN.get(text.replace("\N{VARIATION SELECTOR-16}", ""), "")


def words_of_icon(node: Any) -> str:
    """Returns the function of an icon by its classes and similar attributes, or by those of an element in it."""
    for part in itertools.islice(node.traverse(), _MOST_NODES) if node is not None else ():
        attributes = part.attributes or {}
        for name in _NAMING if part.tag != "a" else _NAMING[:1]:
            for token in (attributes.get(name) or "").split():
                words = [word.lower() for word in _WORDS.findall(token) if word.lower() in _ACTIONS]
                if words:
                    return " ".join(dict.fromkeys(words[-_MOST_WORDS:]))
    return ""


def host_of(address: str | None) -> str:
    """Returns the name of the site to which a URL leads if it is well known, otherwise "".

    >>> host_of("https://www.youtube.com/channel/UC7?a=1"), host_of("https://ads.shop.example/")
    ('youtube', '')
    """
    match = _HOST.match(address or "")
    return match[1].lower() if match and match[1].lower() in _ACTIONS else ""
