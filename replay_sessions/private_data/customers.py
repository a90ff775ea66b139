"""A table of customers -> the forms in which the values of each may stand on pages.

Texts are compared in small letters and without accents; words count, whatever punctuation is between them. `fold` keeps
the length of a text, so that what is found in the folded one stands at the same place in the text itself.

    names          each word of three letters and more, also as in `Annas`; two of them in any order
    addresses      each part between commas; two and more of their words in a row
    phones         any number that ends with the same seven digits
    birth dates    day, month and year in any order, as numbers
    other values   e-mail addresses, ids: the value as a whole
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
# Letters of a script with blanks between words: a name in another stands right within other words.
_LETTER = r"[^\W_\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]"
_PARTICLES = frozenset({"das", "del", "den", "der", "dos", "van", "von"})  # they go beside other words only
_SPELLED = str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue", "ß": "ss", "ø": "oe", "å": "aa", "æ": "ae"})


class _Letters(dict[int, str]):
    """Character -> the one that it is compared as; worked out once."""

    def __missing__(self, code: int) -> str:
        self[code] = unicodedata.normalize("NFKD", chr(code).casefold())[:1] or chr(code)
        return self[code]


_LETTERS = _Letters({ord("ø"): "o", ord("Ø"): "o", ord("ł"): "l", ord("Ł"): "l", ord("đ"): "d", ord("ı"): "i"})


def fold(text: str) -> str:
    """Returns a text of the same length in small letters and without accents.

    >>> fold("Zoë Ł. ÉMILE")
    'zoe l. emile'
    """
    return text.translate(_LETTERS)


def words_in(text: str) -> Words:
    """Returns the words of a text, folded."""
    return tuple(WORD.findall(fold(unicodedata.normalize("NFC", text))))


class Customer(msgspec.Struct):
    """The values of one person.

    Attributes:
        forms: What is removed -> its kind.
        phones: The last digits of numbers.
    """

    forms: dict[Words, str] = {}
    phones: set[str] = set()

    def add(self, kind: str, value: str) -> None:
        """Adds all forms of a value of a kind."""
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
            elif kind == "birth_date":
                for numbers in itertools.permutations(map(int, words) if "".join(words).isdigit() else ()):
                    self.add_forms(kind, [tuple(map(str, numbers)), tuple(f"{number:02}" for number in numbers)])

    def add_forms(self, kind: str, forms: Iterable[Words]) -> None:
        """Adds forms of a value, but for those that are too short to be told from other words."""
        for words in forms:
            word = max(words, key=len, default="")
            is_long = len(word) > 2 or (len(words) == 1 and not re.match(_LETTER, word))
            if is_long and (len(words) > 1 or len(word) > 4 or word.isalpha()):
                self.forms.setdefault(words, kind)


class Customers:
    """The values of users, by their ids.

    Raises:
        BadConfig: There is no column `user_id`.
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
                (_kind_of_column(name), re.sub(r"(?<=\d)\.0$", "", str(value)))  # pandas' numbers beside a gap
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
    """Returns a pattern that finds words in a row in a folded text, the longest first."""
    written = sorted({r"[\W_]{1,6}".join(map(re.escape, words)) for words in forms}, key=len, reverse=True)
    return re.compile(rf"(?<!{_LETTER})(?:{'|'.join(written)})(?!{_LETTER})" if written else "(?!)")
