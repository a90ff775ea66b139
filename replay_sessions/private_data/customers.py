"""Reads a table of customers and derives the forms in which their values may appear on pages.

Texts are compared in lower case and without accents, as words: the punctuation between words does not matter. `fold`
keeps the length of a text, so a span in the folded text is the same span in the original.

    names          each word of three letters and more, also as in `Annas`; two of them in any order
    addresses      each part between commas; two and more of their words in a row
    phones         any number that ends with the same seven digits
    birth dates    day, month and year in any order, as numbers
    other values   e-mail addresses, ids: the complete value
    each of these  also without blanks, as in `annamiller`
"""

import itertools
import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Mapping

import msgspec

from replay_sessions.foundation.errors import BadConfig
from replay_sessions.private_data.fields import kind_by_name

USER_COLUMN = "user_id"
Words = tuple[str, ...]
WORD = re.compile(r"[^\W_]+")
PHONE_DIGITS = 7
# Letters of scripts that separate words by blanks. In Japanese, Chinese and Korean, a name may touch other words.
_LETTER = r"[^\W_\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]"
_PARTICLES = frozenset({"das", "del", "den", "der", "dos", "van", "von"})  # removed only beside other words
_SPELLED = str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue", "ß": "ss", "ø": "oe", "å": "aa", "æ": "ae"})


class _Letters(dict[int, str]):
    """A table for `str.translate` that maps each character to its folded form and fills itself on demand."""

    def __missing__(self, code: int) -> str:
        self[code] = unicodedata.normalize("NFKD", chr(code).casefold())[:1] or chr(code)
        return self[code]


_LETTERS = _Letters({ord("ø"): "o", ord("Ø"): "o", ord("ł"): "l", ord("Ł"): "l", ord("đ"): "d", ord("ı"): "i"})


def fold(text: str) -> str:
    """Returns a text of the same length in lower case and without accents.

    >>> fold("Zoë Ł. ÉMILE")
    'zoe l. emile'
    """
    return text.translate(_LETTERS)


def words_in(text: str) -> Words:
    """Returns the folded words of a text."""
    return tuple(WORD.findall(fold(unicodedata.normalize("NFC", text))))


class Customer(msgspec.Struct):
    """The private values of one person.

    Attributes:
        forms: The folded words of each form that is removed, and the kind of the value.
        phones: The last PHONE_DIGITS digits of each phone number.
    """

    forms: dict[Words, str] = {}
    phones: set[str] = set()

    def add(self, kind: str, value: str) -> None:
        """Adds all forms of a value of the given kind."""
        digits = "".join(filter(str.isdigit, value))
        if kind == "phone":
            self.phones |= {digits[-PHONE_DIGITS:]} if len(digits) >= PHONE_DIGITS else set()
            return
        kind = "email" if "@" in value else kind
        for spelled in (value, value.lower().translate(_SPELLED)):
            words = words_in(spelled)
            self.add_forms(kind, [words, ("".join(words),)])
            if kind == "name":
                parts = [(f"{word}{end}",) for word in words if word not in _PARTICLES for end in ("", "s")]
                self.add_forms(kind, [*parts, *itertools.permutations(words, 2)])
            elif kind == "address":
                runs = itertools.combinations(range(len(words) + 1), 2)
                self.add_forms(kind, [words[start:end] for start, end in runs if end > start + 1])
                self.add_forms(kind, map(words_in, re.split(r"[,;|\n]+", spelled)))
            elif kind == "email":
                self.add_forms(kind, [words[:end] for end in range(2, len(words))])
            elif kind == "birth_date" and (date := re.match(r"(\d+)\W+(\d+)\W+(\d+)", value)):  # a time may follow
                for numbers in itertools.permutations(map(int, date.groups())):
                    self.add_forms(kind, [tuple(map(str, numbers)), tuple(f"{number:02}" for number in numbers)])

    def add_forms(self, kind: str, forms: Iterable[Words]) -> None:
        """Adds forms of a value, except those that are too short to differ from ordinary words."""
        for words in forms:
            word = max(words, key=len, default="")
            is_long = len(word) > 2 or (len(words) == 1 and not re.match(_LETTER, word))
            if is_long and (len(words) > 1 or len(word) > 4 or word.isalpha()):
                self.forms.setdefault(words, kind)


class Customers:
    """The private values of users, by their ids.

    Raises:
        BadConfig: The table has no column `user_id`, or a row has no value in it.
    """

    def __init__(self, rows: Iterable[Mapping[str, object]]) -> None:
        self.by_user: defaultdict[str, Customer] = defaultdict(Customer)
        for row in rows:
            if (user := row.get(USER_COLUMN)) is None:
                raise BadConfig(
                    f"the table of customers has the columns {', '.join(row)}, and {USER_COLUMN} was expected: the id "
                    "that the log has for the user of a session"
                )
            values = [
                (_kind_of_column(name), re.sub(r"(?<=\d)\.0$", "", str(value)))  # pandas' integers beside a gap
                for name, value in row.items()
                if name != USER_COLUMN and value
            ]
            full_name = " ".join(value for kind, value in values if kind == "name")
            for kind, value in (*values, ("name", full_name)):
                self.by_user[str(user)].add(kind, value)


def _kind_of_column(column: str) -> str:
    kind = "name" if column.lower() == "name" else kind_by_name(column)
    return kind or ("order" if "order" in column.lower() else "customer")


def pattern_of(forms: Iterable[Words]) -> re.Pattern[str]:
    """Returns a pattern that finds any of the forms in a folded text; longer forms match first."""
    patterns = sorted({r"[\W_]{1,6}".join(map(re.escape, words)) for words in forms}, key=len, reverse=True)
    return re.compile(rf"(?<!{_LETTER})(?:{'|'.join(patterns)})(?!{_LETTER})" if patterns else "(?!)")
