"""Reads a table of customers and derives the forms in which their values may appear on pages.

Texts are compared as words, in lower case, without accents and without what only helps reading (Arabic vowels, soft
hyphens); the punctuation between words does not matter. The vowel signs of Indic scripts are parts of words.

    names          each word of three letters and more, also as in `Annas`; two of them in any order
    addresses      each part between commas; two and more of their words in a row
    phones         any number that ends with the same seven digits
    birth dates    day, month and year in any order, as numbers
    other values   e-mail addresses, ids: the complete value
    each of these  also without blanks, as in `annamiller`

A value in a column of no private kind (country, currency) is not private if many users have it.
"""

import itertools
import re
import unicodedata
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from functools import cached_property

import msgspec

from replay_sessions.foundation.errors import BadConfig
from replay_sessions.private_data.fields import kind_by_name

USER_COLUMN = "user_id"
Words = tuple[str, ...]
PHONE_DIGITS = 7
_LEAST_SHARED, _LEAST_SHARE = 3, 0.05  # users with a value that is not private
# Marks of Latin, Greek, Cyrillic, Hebrew and Arabic, which only help reading, and the line that stretches Arabic words.
_ONLY_HELP = re.compile("[\u0300-\u036f\u0591-\u05c7\u0610-\u061a\u0640\u064b-\u065f\u0670\u06d6-\u06ed]")
_ACCENT = re.compile("[\u0300-\u036f\u0653-\u0655]")
_PARTICLES = frozenset({"das", "del", "den", "der", "dos", "van", "von"})  # removed only beside other words
_SPELLED = str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue", "ß": "ss", "ø": "oe", "å": "aa", "æ": "ae"})


# Letters without blanks around words, and of Korean, where particles follow a name without one.
_UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1100-\u11ff\u1780-\u17ff\u3005-\u3007\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff"
    "\uac00-\ud7af\uf900-\ufaff"
)
_IS_UNSPACED = re.compile(f"[{_UNSPACED}]")
# In a folded text, letters of Yi stand for the marks that are parts of words, so that `\w` is all of a word. Those of
# scripts without blanks have the second range.
_MARKS, _UNSPACED_MARKS = range(0xA000, 0xA3C0), range(0xA3C0, 0xA48D)


class _Letters(dict[int, str]):
    """A table for `str.translate` that maps each character to its folded form, at most one, and fills itself."""

    def __init__(self, letters: Mapping[int, str]) -> None:
        super().__init__(letters)
        self.marks: dict[str, str] = {}

    def __missing__(self, code: int) -> str:
        letter = chr(code)
        category = unicodedata.category(letter)
        if category == "Cf" or (_ONLY_HELP.match(letter) and category != "Po"):
            self[code] = ""
        elif category[0] == "M":
            free = _UNSPACED_MARKS if _IS_UNSPACED.match(letter) else _MARKS
            self[code] = next((chr(sign) for sign in free if chr(sign) not in self.marks), letter)
            self.marks[self[code]] = letter
        elif category == "Nd":
            self[code] = str(unicodedata.decimal(letter))
        else:
            parts = unicodedata.normalize("NFKD", letter.casefold())
            # A syllable of Korean or a voiced letter of Japanese is another letter than its first part.
            is_base = len(parts) == 1 or parts[0].isascii() or _ACCENT.match(parts[1])
            self[code] = parts[0] if is_base else letter
        return self[code]


LETTERS = _Letters({ord("ø"): "o", ord("Ø"): "o", ord("ł"): "l", ord("Ł"): "l", ord("đ"): "d", ord("ı"): "i"})
LETTERS[ord("_")] = " "
WORD = re.compile(r"\w+")  # in a folded text, where no `_` is
_SPACED_LETTER = rf"[^\W{_UNSPACED}\ua3c0-\ua48c]"
_BEFORE = rf"(?<!{_SPACED_LETTER})"
_AFTER = rf"(?![^\W{_UNSPACED}])"
_JOINER = "\u200c"  # between parts of a Persian name, which an element's name separates
_SYLLABIC_NAME = re.compile("[\u4e00-\u9fff\uac00-\ud7af]{3}")  # mostly of a family name of one syllable
_WHOLE_NAME = re.compile("[\u3005\u3040-\u30ff\u4e00-\u9fff]{4,}")  # in Japanese, of a family name of any length
_RIGHT_TO_LEFT = re.compile("[\u0590-\u06ff]")
_PREFIXES = "\u0648\u0641\u0628\u0643\u0644\u05d5\u05d4\u05d1\u05db\u05dc\u05de\u05e9"  # `and`, `to` and the like


def fold(text: str) -> str:
    """Returns a text in lower case, without accents and with blanks for `_`.

    >>> fold("Zoë Ł. ÉMILE_1")
    'zoe l. emile 1'
    """
    return unicodedata.normalize("NFC", text).translate(LETTERS)


def unfold(folded: str) -> str:
    """Returns a folded text with its marks, to be read by people."""
    return "".join(LETTERS.marks.get(letter, letter) for letter in folded)


def words_in(text: str) -> Words:
    """Returns the folded words of a text."""
    return tuple(WORD.findall(fold(text)))


def parts_of_words(words: Iterable[str], by_beginning: Mapping[str, Collection[str]]) -> set[str]:
    """Returns the words of scripts without blanks that stand within folded words.

    Args:
        by_beginning: The words to look for, by their first two letters.
    """
    return {
        part
        for word in (words if by_beginning else ())
        if _IS_UNSPACED.search(word)
        for start in range(len(word) - 1)
        for part in by_beginning.get(word[start : start + 2], ())
        if word.startswith(part, start)
    }


class Customer(msgspec.Struct):
    """The private values of one person.

    Attributes:
        forms: The folded words of each form that is removed, and the kind of the value.
        doubtful: Forms that are parts of a name if it is split there.
        phones: The last PHONE_DIGITS digits of each phone number.
    """

    forms: dict[Words, str] = {}
    doubtful: set[Words] = set()
    phones: set[str] = set()

    def add(self, kind: str, value: str) -> None:
        """Adds all forms of a value of the given kind."""
        digits = "".join(filter(str.isdigit, fold(value)))
        if kind == "phone":
            self.phones |= {digits[-PHONE_DIGITS:]} if len(digits) >= PHONE_DIGITS else set()
            return
        kind = "email" if "@" in value else kind
        spellings = (value, value.lower().translate(_SPELLED), value.replace(_JOINER, " "))
        for spelled in dict.fromkeys(spellings):
            words = words_in(spelled)
            self.add_forms(kind, [words, ("".join(words),)])
            if kind == "name":
                parts = [word for word in words if word not in _PARTICLES]
                self.add_forms(kind, ((part + end,) for part in parts for end in ("", "s"[: part.isascii()])))
                pairs = list(itertools.permutations(words, 2))
                self.add_forms(kind, [*pairs, *(("".join(pair),) for pair in pairs)])
                self.add_forms(kind, [(part[1:],) for part in parts if _SYLLABIC_NAME.fullmatch(part)])
                whole = [part for part in parts if _WHOLE_NAME.fullmatch(part)]
                splits = ((part[:at], part[at:]) for part in whole for at in range(2, len(part) - 1))
                halves = {(half,) for split in splits for half in split} - self.forms.keys()
                self.add_forms(kind, halves)
                self.doubtful |= halves
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
            self.doubtful.discard(words)
            word = max(words, key=len, default="")
            is_long = len(word) > 2 or (kind == "name" and len(word) == 2) or (len(words) == 1 and is_unspaced(word))
            if is_long and (len(words) > 1 or len(word) > 4 or not any(map(str.isdigit, word))):
                self.forms.setdefault(words, kind)


class Customers:
    """The private values of users, by their ids.

    Attributes:
        shared_values: The values that are not private because many users have them, each with its column.

    Raises:
        BadConfig: The table has no column `user_id`, or a row has no value in it.
    """

    def __init__(self, rows: Iterable[Mapping[str, object]]) -> None:
        self.by_user: defaultdict[str, Customer] = defaultdict(Customer)
        cells: list[tuple[str, list[tuple[str, str]]]] = []
        users_of: defaultdict[tuple[str, str], set[str]] = defaultdict(set)
        for row in rows:
            if (user := row.get(USER_COLUMN)) is None:
                raise BadConfig(
                    f"the table of customers has the columns {', '.join(row)}, and {USER_COLUMN} was expected: the id "
                    "that the log has for the user of a session"
                )
            values = [(name, value_of(cell)) for name, cell in row.items() if name != USER_COLUMN and cell]
            cells.append((str(user), values))
            for name, value in values:
                if _kind_of_column(name) not in PRIVATE_KINDS and "@" not in value:
                    users_of[name, fold(value)].add(str(user))
        least = max(_LEAST_SHARED, _LEAST_SHARE * len({user for user, _ in cells}))
        self.shared_values = {value for value, users in users_of.items() if len(users) >= least}
        for user_id, values in cells:
            self._add(user_id, [pair for pair in values if (pair[0], fold(pair[1])) not in self.shared_values])

    def __bool__(self) -> bool:
        """Returns whether the table has rows."""
        return bool(self.by_user)

    def _add(self, user_id: str, values: list[tuple[str, str]]) -> None:
        kinds = [(_kind_of_column(name), value) for name, value in values]
        full_name = " ".join(value for kind, value in kinds if kind == "name")
        for kind, value in (*kinds, ("name", full_name)):
            self.by_user[user_id].add(kind, value)

    def customer_of(self, ids: Iterable[str]) -> Customer:
        """Returns the values of a person with several ids."""
        customers = [self.by_user[name] for name in ids if name in self.by_user]
        return Customer(
            forms={form: kind for customer in customers for form, kind in customer.forms.items()},
            doubtful={form for customer in customers for form in customer.doubtful},
            phones={phone for customer in customers for phone in customer.phones},
        )

    @cached_property
    def words(self) -> dict[str, set[str]]:
        """The words of all forms, with the users who have them."""
        users_of: defaultdict[str, set[str]] = defaultdict(set)
        for user, customer in self.by_user.items():
            for word in {word for form in customer.forms for word in form}:
                users_of[word].add(user)
        return dict(users_of)

    @cached_property
    def unspaced_words(self) -> dict[str, list[str]]:
        """The words of two and more letters in scripts without blanks, by their first two letters."""
        by_beginning: defaultdict[str, list[str]] = defaultdict(list)
        for word in filter(is_unspaced, self.words):
            if len(word) > 1:
                by_beginning[word[:2]].append(word)
        return dict(by_beginning)


PRIVATE_KINDS = frozenset({"name", "address", "phone", "email", "birth_date", "card"})


def value_of(cell: object) -> str:
    """Returns the text of a cell; pandas writes the integers of a column with a gap as `7.0`."""
    return re.sub(r"(?<=\d)\.0$", "", str(cell))


def is_unspaced(word: str) -> bool:
    """Returns whether a word is of a script without blanks between words."""
    return bool(_IS_UNSPACED.match(word))


def _kind_of_column(column: str) -> str:
    kind = "name" if column.lower() == "name" else kind_by_name(column)
    return kind or ("order" if "order" in column.lower() else "customer")


def pattern_of(forms: Iterable[Words]) -> re.Pattern[str]:
    """Returns a pattern that finds any of the forms in a folded text; longer forms match first."""
    patterns = sorted({r"\W{1,6}".join(map(re.escape, words)) for words in forms}, key=len, reverse=True)
    patterns = [rf"(?<!\w){pattern}(?!\w)" if len(pattern) == 1 else pattern for pattern in patterns]
    before = _BEFORE
    if any(map(_RIGHT_TO_LEFT.match, patterns)):
        before = rf"(?:{before}|(?<=[{_PREFIXES}])(?<!{_SPACED_LETTER}.))"
    return re.compile(rf"{before}(?:{'|'.join(patterns)}){_AFTER}" if patterns else "(?!)")
