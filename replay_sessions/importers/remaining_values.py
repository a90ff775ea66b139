"""Searches a finished store for values of a table of customers that are still there.

This is a check of the removal, so it uses none of its code and knows less: a value is searched for as it stands in the
table, in lower case and without accents, as whole words where the script has blanks.

A value may stay by a stated rule (docs/privacy.md): it is part of an id; it is short; many users have it in a column of
no private kind; or other users' sessions hold its words too, so that they are the shop's.
"""

import html
import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise
from typing import NamedTuple
from urllib.parse import unquote

import msgspec

from replay_sessions.schema import Session
from replay_sessions.store import SessionStore
from replay_sessions.store.manifest import REJECTED_FILE, Rejected, write_options

_HELPS_READING = re.compile("[\u0300-\u036f\u0591-\u05bd\u0610-\u061a\u0640\u064b-\u065f\u0670]")
_NO_BLANKS = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
_NUMBER = re.compile(r"\d(?: ?\d){6,}")
_QUOTED = re.compile(r"'[^']*'|\"[^\"]*\"")
_NAME = re.compile(
    r".*(first|last|full|given|family|middle|sur|user|customer|recipient|buyer|holder|contact|card|member)[_ ]?name.*"
    r"|name|[fl]name|vorname|nachname|prenom|apellidos?|cognome|payer|recipient|addressee|cardholder",
    re.IGNORECASE,
)
_ADDRESS = re.compile(r"addr|street", re.IGNORECASE)
_PHONE = re.compile(r"phone|mobile|tel", re.IGNORECASE)
_PRIVATE = re.compile(r"name|mail|phone|mobile|tel|addr|street|city|zip|post|plz|birth|dob|iban|card", re.IGNORECASE)
_PARTICLES = frozenset(("das", "del", "den", "der", "dos", "van", "von"))
_DATE = re.compile(r"(\d{4})\D(\d\d?)\D(\d\d?)(?!\d)")
_IDS = ("session_id", "user_id", "other_ids")
_IN_IDS = "ids"
_LEAST_LETTERS, _LEAST_CHARACTERS, _PHONE_DIGITS = 3, 5, 7
_LISTED = 12
_SPELLED = {"ø": "o", "ł": "l", "đ": "d", "ı": "i", "_": " "}


class _Signs(dict[int, str]):
    """A table for `str.translate` that replaces all characters but letters, their marks and digits by blanks."""

    def __missing__(self, code: int) -> str:
        sign, category = chr(code), unicodedata.category(chr(code))
        self[code] = (
            str(unicodedata.decimal(sign))
            if sign.isdecimal()
            else sign
            if sign.isalnum() or category[0] == "M"
            else ""
            if category == "Cf"
            else " "
        )
        return self[code]


_SIGNS = _Signs({ord(sign): plain for sign, plain in _SPELLED.items()})


def _plain(text: str) -> str:
    """Returns the words of a text between blanks."""
    for _ in range(3):
        text = unquote(text)
    text = html.unescape(text).casefold()
    if not text.isascii():
        text = unicodedata.normalize("NFC", _HELPS_READING.sub("", unicodedata.normalize("NFKD", text)))
    return f" {' '.join(text.translate(_SIGNS).split())} "


class Value(NamedTuple):
    """A value of the table, or a word of a name.

    Attributes:
        plain: Its words with blanks between them; of a phone number the last digits.
    """

    user_id: str
    column: str
    plain: str
    is_phone: bool = False

    @property
    def is_short(self) -> bool:
        words = self.plain.split()
        if len(words) == 1 and any(map(str.isdigit, self.plain)):
            return len(self.plain) < _LEAST_CHARACTERS
        if len(words) > 1 and _NAME.fullmatch(self.column):
            return len(self.plain) < _LEAST_CHARACTERS
        least = 2 if _NO_BLANKS.match(self.plain) else _LEAST_LETTERS
        return max(map(len, words)) < least or self.plain in _PARTICLES

    @property
    def may_be_shops(self) -> bool:
        """Returns whether it stays where other users' sessions hold its words."""
        is_several = " " in self.plain
        is_exact = bool(_NAME.fullmatch(self.column)) or any(map(str.isdigit, self.plain))
        return "mail" not in self.column.lower() and not (is_several and is_exact)

    def is_in(self, text: str) -> bool:
        """Returns whether the value is in a text of words between blanks."""
        if self.is_phone:
            numbers = (number.split() for number in _NUMBER.findall(text))
            return any(
                "".join(parts[:end]).endswith(self.plain) for parts in numbers for end in range(1, len(parts) + 1)
            )
        return (self.plain if _NO_BLANKS.match(self.plain) else f" {self.plain} ") in text


class Remaining(NamedTuple):
    """A value that is still in the store, and where."""

    value: Value
    place: str


class RemainingValues:
    """The search for the values of a table.

    Args:
        rows: The rows of the table, each with a `user_id`.

    Attributes:
        leaks: The values that no stated rule lets stay.
        stayed: For each rule, the values that stay by it, with how often.
    """

    def __init__(self, rows: Iterable[Mapping[str, object]]) -> None:
        rows = list(rows)
        self._users = {str(row["user_id"]) for row in rows}
        self._values: defaultdict[str, list[Value]] = defaultdict(list)
        self._owners: defaultdict[str, set[str]] = defaultdict(set)  # by words and column
        for row in rows:
            for value in dict.fromkeys(_values_of(row)):
                self._values[value.user_id].append(value)
                self._owners[value.plain].add(value.user_id)
        self.leaks: list[Remaining] = []
        self.stayed: dict[str, Counter[str]] = defaultdict(Counter)

    def search_store(self, store: SessionStore, *, allow_found: bool) -> bool:
        """Searches a finished store, and stores the counts in its manifest.

        Args:
            allow_found: Whether the manifest says `private_data = customers` even if values are found that no stated
                rule lets stay.

        Returns:
            Whether the manifest says so; also if the table is empty.
        """
        if not self._users:
            return True
        manifest, rejected = store.manifest, store.path / REJECTED_FILE
        texts = [*manifest.options.values(), *manifest.warnings, *manifest.left_out_steps, *manifest.changed_values]
        messages = {"manifest.json": "\n".join(texts)}
        if rejected.is_file():
            records = (msgspec.json.decode(line, type=Rejected) for line in rejected.read_bytes().splitlines())
            messages[REJECTED_FILE] = "\n".join(record.reason for record in records)
        self.search(store, store, messages)
        counts = {"values_found": len(self.leaks), "values_stayed": sum(map(Counter.total, self.stayed.values()))}
        is_clean = allow_found or not self.leaks
        options = {name: str(count) for name, count in counts.items()}
        write_options(store.path, options | ({"private_data": "customers"} if is_clean else {}))
        return is_clean

    def report(self) -> Iterator[str]:
        """Yields lines about the values that were found, and those that stay by a rule."""
        if self._users:
            advice = ": so it is not called `customers`, unless you --allow-found" if self.leaks else ""
            yield f"values of the table that are still in the store: {len(self.leaks):,}{advice}"
        for value, place in self.leaks[:_LISTED]:
            yield f"  found: {value.column} of user {value.user_id!r} in {place}"
        for rule, values in self.stayed.items():
            yield f"  stayed, {rule}: {listed_values(values)}"

    def search(self, sessions: Iterable[Session], again: Iterable[Session], messages: Mapping[str, str]) -> None:
        """Searches for each user's values in the user's own sessions, and for all users' values in messages.

        Args:
            sessions: The sessions of a store.
            again: The same sessions once more, where other users' words are counted.
            messages: By place, texts of the store that belong to no session. A word that is not in quotes is the
                message's own there.
        """
        remaining = [item for session in sessions for item in self._search_session(session)]
        remaining += self._search_messages(messages)
        users_with = self._count_users(again, {item.value for item in remaining if not item.value.is_short})
        least = max(3, 0.05 * len(self._users))
        for item in remaining:
            value = item.value
            others = min((len(users_with[word]) for word in value.plain.split()), default=0)
            if item.place == _IN_IDS:
                self.stayed["parts of ids"][value.plain] += 1
            elif value.is_short:
                self.stayed["short words and numbers"][value.plain] += 1
            elif len(self._owners[value.plain]) >= least and not _PRIVATE.search(value.column):
                self.stayed["values of many users"][value.plain] += 1
            elif others >= (3 if value.is_phone else 1) and value.may_be_shops:
                self.stayed["words of the shop too"][value.plain] += 1
            else:
                self.leaks.append(item)

    def _search_session(self, session: Session) -> Iterator[Remaining]:
        values = [value for name in session.user_ids for value in self._values.get(name, ())]
        if not values:
            return
        fields = list(_fields_of(msgspec.to_builtins(session)))
        text = _plain("\n".join(text for _, text in fields))
        ids = _plain(" ".join((session.session_id, *session.user_ids)))
        for value in values:
            if value.is_in(ids):
                yield Remaining(value, _IN_IDS)
            if value.is_in(text):
                places = (place for place, text in fields if value.is_in(_plain(text)))
                yield Remaining(value, f"session {session.session_id!r}: {next(places, 'between two fields')}")

    def _search_messages(self, messages: Mapping[str, str]) -> Iterator[Remaining]:
        every = [value for values in self._values.values() for value in values]
        for place, message in messages.items():
            quotes = (quote for line in message.splitlines() for quote in _QUOTED.findall(line))
            text, quoted = _plain(message), _plain(" ; ".join(quotes))
            words = set(text.split())
            for value in every:
                if value.is_phone or _NO_BLANKS.match(value.plain) or value.plain.partition(" ")[0] in words:
                    is_word = value.plain.isalpha()
                    if value.is_in(quoted if is_word else text):
                        yield Remaining(value, place)

    def _count_users(self, sessions: Iterable[Session], values: set[Value]) -> defaultdict[str, set[str]]:
        """Returns, for each word of values, the users whose sessions hold it though it is none of theirs."""
        words = {word for value in values for word in value.plain.split()}
        users_with: defaultdict[str, set[str]] = defaultdict(set)
        own = {
            user: {word for value in values for word in value.plain.split()} for user, values in self._values.items()
        }
        phones = {value for value in values if value.is_phone}
        for session in sessions if words else ():
            text = _plain("\n".join(text for _, text in _fields_of(msgspec.to_builtins(session))))
            here = words.intersection(text.split()) | {
                word for word in words if _NO_BLANKS.match(word) and word in text
            }
            here |= {value.plain for value in phones if value.is_in(text)}
            for word in here.difference(*(own.get(name, ()) for name in session.user_ids)):
                users_with[word].add(session.user_id)
        return users_with


def listed_values(values: Counter[str]) -> str:
    """Returns the most frequent values with their counts, and how many more there are."""
    text = ", ".join(f"{value!r} ({count:,})" for value, count in values.most_common(_LISTED))
    return f"{text} and {len(values) - _LISTED:,} more" if len(values) > _LISTED else text


def _values_of(row: Mapping[str, object]) -> Iterator[Value]:
    user_id = str(row["user_id"])
    for column, cell in row.items():
        if column == "user_id" or not cell:
            continue
        text = str(cell).removesuffix(".0")
        digits = "".join(str(unicodedata.decimal(sign)) for sign in text if sign.isdecimal())
        if _PHONE.search(column) and len(digits) >= _PHONE_DIGITS:
            yield Value(user_id, column, digits[-_PHONE_DIGITS:], is_phone=True)
            continue
        parts = [text, *text.split(",")]
        if date := _DATE.match(text):
            for year, month, day in (date.groups(), [str(int(number)) for number in date.groups()]):
                parts += [f"{year} {month} {day}", f"{day} {month} {year}", f"{month} {day} {year}"]
        if _ADDRESS.search(column):
            parts += map(" ".join, pairwise(_plain(text).split()))
        for plain in dict.fromkeys(_plain(part).strip() for part in parts):
            if plain:
                yield Value(user_id, column, plain)
                yield from (Value(user_id, column, word) for word in plain.split() if _NAME.fullmatch(column))


def _fields_of(document: object, place: str = "") -> Iterator[tuple[str, str]]:
    """Yields the texts of a decoded session with the names of their fields, without ids."""
    if isinstance(document, str):
        yield place, document
    elif isinstance(document, dict):
        for name, value in document.items():
            if name not in _IDS:
                yield from _fields_of(value, f"{place} {name}".strip())
    elif isinstance(document, list | tuple):
        for number, value in enumerate(document):
            yield from _fields_of(value, f"{place} {number}")
