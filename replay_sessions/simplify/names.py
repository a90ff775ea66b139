"""Derives the names of elements: unique, deterministic, and stable when other parts of the page change.

A name is a path of scopes and a leaf, `search_results.kettle_1_7_l.view_product` (Shop-R1, section 3.1). A scope is a
recipe's word for a part of the page, or a card named by its title. Names leave out prices and counts, because these
change while the element stays. Names that are taken already are numbered in the order of the page.

`tidy` normalizes all texts and labels: single blanks, and no invisible characters.
"""

import functools
import re
import unicodedata

_MAX_LENGTH = 60
_MAX_SCOPES = 3
_REST = 24
_LEAVES_KEPT = 30_000  # the pages of a shop repeat menus and products; a single page has a few thousand leaves
_LOOKED_AT = 300  # characters behind these are never part of a slug
_JOINERS = "\u200c\u200d"  # invisible, but they shape the letters of some scripts

_NUMBER = r"\d+(?:[.,’' \u00a0\u202f]\d{2,3})*(?:[.,]-{1,2})?"
_SIGNS = "[$€£¥₹₽₩₪₺₫₴₦฿]"
_CODES = "USD|EUR|GBP|JPY|CHF|CLP|PLN|SEK|NOK|DKK|RON|CZK|INR|RUB|Rs|kr|zł|Kč|[lL]ei|лв|грн|руб"
_MONEY = re.compile(f"{_SIGNS}|{_CODES}|[.,]-")  # a quick test, because most texts have no price
_CURRENCY = rf"(?:US|CA|AU?|NZ|HK|NT|R|S|C)?{_SIGNS}|(?<![^\W\d_])(?:{_CODES})(?![^\W\d_])\.?"
_PRICE = re.compile(rf"(?:{_CURRENCY})\s*{_NUMBER}|{_NUMBER}\s*(?:{_CURRENCY})|{_NUMBER}(?<=-)")
_CENTS = re.compile(r"[.,](?!00)\d\d(?!\d)")  # a price range with cents is the price of a product, not a filter
_DIGIT = re.compile(r"\d")
_COUNT = re.compile(r"\(\s*[\d.,]+\s*[kKmM]?\+?\s*\)")
_DATE = re.compile(
    r"\b(?:(?:mon|tues?|wednes|thurs?|fri|satur|sun)day,?\s+)?(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|"
    r"aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)\.?\s+\d{1,2}\b(?:\s+-\s+\d{1,2}\b)?",
    re.IGNORECASE,
)
_CARRIED = re.compile(
    r"\b(cart|basket|bag|trolley|wish ?list|favou?rites|compare|notifications|messages|warenkorb|merkzettel|panier|"
    r"carrito|cesta|carrello|carrinho|koszyk|winkelwagen|корзина)\W+\d+\W*$",
    re.IGNORECASE,
)
_CONTENTS = re.compile(
    r"[,(]?\s*\b\d[\d.,]*[kK]?\+?\s+(?:items?|products?|reviews?|ratings?|results?)\b\)?", re.IGNORECASE
)
_NUMBER_AT_END = re.compile(r"\d\W*$")
_LETTER = re.compile(r"[^\W\d_]")
# The rest of "$25 - $50" without its prices, and the words that remain of filters such as "$25 to $50".
_RANGE = re.compile(r"\s*[-–—~]\s*$|\s*[-–—+<>]\s*$")
_BOUND_WORDS = """
a ab above and bis by de des desde do from hasta less mehr meno menos moins more og oltre or over plus to under
unter up upto über à до от и"""
_BOUNDS = frozenset(_BOUND_WORDS.split())


class Scope:
    """A part of the page that gives a prefix to the names in it.

    Attributes:
        parent: The scope around it; None for the page.
        word: The recipe's word; "" for a card, which is named by its title, and for the page.
        repeat: For a card, the leaf of links that repeat its title; None if the scope is no card.
        title: Title of a card; a card with "" as its title adds nothing to names.
        apart: Words that distinguish a card from others with its title in the same scope.
    """

    def __init__(self, parent: "Scope | None", word: str, repeat: str | None = None, title: str = "") -> None:
        self.parent = parent
        self.word = word
        self.repeat = repeat
        self.title = title
        self.apart = ""
        self._prefix: str | None = None

    @property
    def card(self) -> "Scope | None":
        """The scope itself if it is a card, otherwise the nearest card around it; None if it is in no card."""
        scope: Scope | None = self
        while scope is not None and scope.repeat is None:
            scope = scope.parent
        return scope

    @property
    def named(self) -> "Scope":
        """The scope itself, or the nearest scope around it that is not a card without a title."""
        scope = self
        while scope.repeat is not None and not scope.title and scope.parent is not None:
            scope = scope.parent
        return scope

    def pin(self, name: str) -> None:
        """Makes a target's name the prefix of the names in this scope."""
        self._prefix = f"{name}."

    def prefix(self, namer: "Namer") -> str:
        """Returns the prefix of names in this scope, "" or ending with a dot. Call it when all titles are known."""
        if self._prefix is None:
            chain: list[Scope] = []
            scope: Scope | None = self
            while scope is not None and scope._prefix is None:
                chain.append(scope)
                scope = scope.parent
            prefix = scope._prefix or "" if scope is not None else ""
            for scope in reversed(chain):
                prefix = scope._prefix = namer.extend(prefix, scope)
        return self._prefix or ""


class Namer:
    """Assigns the names of one page."""

    def __init__(self) -> None:
        self._next: dict[str, int] = {}  # taken names, and the number to try next for each

    def name(self, scope: Scope, last: str) -> str:
        """Returns a new unique name in a scope."""
        return self._unique(scope.prefix(self) + last, "")

    def container(self, scope: Scope) -> str:
        """Returns the name of a scope itself; "" if it has none, or if the name is taken already."""
        name = scope.prefix(self)[:-1]
        return "" if not name or name in self._next else self._unique(name, "")

    def extend(self, prefix: str, scope: Scope) -> str:
        """Returns the prefix of a scope inside `prefix`; cards of equal titles are numbered, long paths shortened."""
        if scope.word:
            if not prefix.endswith(f"{scope.word}."):
                prefix = f"{prefix}{scope.word}."
        elif word := leaf(scope.title):
            prefix = self._unique(f"{prefix}{word}_{scope.apart}" if scope.apart else prefix + word, ".")
        if prefix.count(".") > _MAX_SCOPES:
            first, *_, before, last, _ = prefix.split(".")
            prefix = f"{first}.{before}.{last}."
        return prefix

    def _unique(self, name: str, end: str) -> str:
        """Returns `name` + `end`, with a number between them if that is taken."""
        full_name = name + end
        number = self._next.get(full_name)
        if number is None:
            self._next[full_name] = 2
            return full_name
        while (numbered := f"{name}_{number}{end}") in self._next:
            number += 1
        self._next[full_name] = number + 1
        self._next[numbered] = 2
        return numbered


@functools.lru_cache(_LEAVES_KEPT)  # titles and links repeat each other's words
def leaf(text: str) -> str:
    """Returns the last part of a name for the text of an element, without prices and counts; "" if it has no words.

    >>> leaf("Add to cart - $29.99"), leaf("$29.99"), leaf("$25 to $50"), leaf("Nike (1,204)")
    ('add_to_cart', 'price', '25_to_50', 'nike')
    """
    return slug(_steady(text) if _DIGIT.search(text) else text)


def has_words(text: str) -> bool:
    """Returns whether a text has words for a name, and is no mere price or count."""
    return leaf(text) not in ("", "price", "count")


def _steady(text: str) -> str:
    """Returns the beginning of a text without prices, counts and dates, which change while the element stays."""
    text = text[:_LOOKED_AT]
    if "(" in text:
        if _COUNT.fullmatch(text):
            return "count"
        text = _COUNT.sub(" ", text).strip() or text
    if _NUMBER_AT_END.search(text):
        text = _CARRIED.sub(r"\1", text)
    text = _DATE.sub(" ", text).strip() or text
    if _LETTER.search(without_counts := _CONTENTS.sub(" ", text)):
        text = without_counts
    if not _MONEY.search(text):
        return text
    without = _PRICE.sub(" ", text)
    if without == text:
        return text
    words = re.findall(r"[^\W\d]+", without)
    if not words:
        return text if _RANGE.match(without) and not _CENTS.search(text) else "price"
    return text if all(word.lower() in _BOUNDS for word in words) else without


def slug(text: str) -> str:
    """Returns a text as a part of a name: lower case, `_` between words, at most 60 characters; "" without letters.

    >>> slug("4 Stars & Up"), slug("電気ケトル 1.7L"), slug("!!!")
    ('4_stars_up', '電気ケトル_1_7l', '')
    """
    words = "_".join(text.lower().translate(_LETTERS).split())
    return words if len(words) <= _MAX_LENGTH else _cut(words, _MAX_LENGTH)


def _cut(words: str, length: int) -> str:
    if len(words) <= length:
        return words
    end = words.rfind("_", length // 2, length + 1)
    return words[: end if end > 0 else length].rstrip("_")


def rest(text: str) -> str:
    """Returns the slug of the words behind those of a text's leaf, at most 24 characters; "" if the text is short."""
    if len(text) <= _MAX_LENGTH:
        return ""
    first = leaf(text)
    start = text.lower().find(first.rpartition("_")[2], len(first) // 2)
    return _cut(leaf(text[start:]).partition("_")[2], _REST)


class _Letters(dict[int, int]):
    """A table for `str.translate` that replaces characters not allowed in names by a blank, filled on demand.

    The vowel signs of Indic and other scripts are allowed, although Unicode does not call them letters.
    """

    def __missing__(self, code: int) -> int:
        letter = chr(code)
        is_part = letter.isalnum() or (code <= _LAST_MARK and unicodedata.category(letter) in _MARKS)
        self[code] = code if is_part else ord(" ")
        return self[code]


_LAST_MARK = 0xFFFF
_MARKS = frozenset({"Mn", "Mc"})
_LETTERS = _Letters()


def quoted(words: str) -> str:
    """Returns a text escaped for the quotes of an attribute."""
    if "&" in words or '"' in words or "<" in words or ">" in words:
        return words.replace("&", "&amp;").replace('"', "&quot;").replace("<", "&lt;").replace(">", "&gt;")
    return words


def tidy(raw: str | None) -> str:
    r"""Returns a text with single blanks and without control, formatting and unassigned characters.

    >>> tidy("  Red\n kettle\x01 "), tidy(None)
    ('Red kettle', '')
    """
    if not raw:
        return ""
    words = " ".join(raw.split())
    if words.isprintable():
        return words
    return " ".join("".join([letter for letter in words if letter.isprintable() or letter in _JOINERS]).split())
