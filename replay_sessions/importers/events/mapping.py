"""A log's own fields -> e-commerce events, declared in a TOML file (docs/your_logs.md explains each key).

    record -> events of one kind each, with the offers that they list (`EventMapping.events`)

Paths are those of the field mappings (mapped/record_paths.py): dotted, several to choose from, or text with values.
"""

from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal

import msgspec

from replay_sessions.foundation.config_errors import what_is_wrong
from replay_sessions.foundation.errors import BadConfig, BadSession, did_you_mean
from replay_sessions.foundation.records import Config, Record
from replay_sessions.importers.logged_pages import Row
from replay_sessions.importers.mapped.record_paths import (
    OptionalPath,
    RecordPath,
    decoded,
    optional_at,
    optional_text_at,
    text_at,
)
from replay_sessions.importers.raw.action_table import ORDER

# Views show a page; actions are done on the page that is shown.
View = Literal["page", "listing", "product", "cart", "checkout"]
Kind = Literal[View, "select_item", "quickview", "follow_link", "add_to_cart", "remove_from_cart", "purchase"]
VIEWS = ("page", "listing", "product", "cart", "checkout")


class Offer(Record):
    """A product as a page offers it.

    Attributes:
        price: As it is written, with its currency.
        details: What else is said of it, such as its color.
    """

    id: str
    name: str
    price: str | None = None
    position: float | None = None
    details: tuple[str, ...] = ()


class Event(Record):
    """One event of a shopper.

    Attributes:
        kind: None: the log's own word, which is no event of the mapping.
        path: The address or key of the page.
        query: What was searched for, on a page of results.
        links: Texts of the links that the page shows, such as promotions; of an action the one that was followed.
        offers: Those that the event lists; of an action the one that was acted on.
    """

    word: str
    kind: Kind | None
    path: str = ""
    title: str = ""
    query: str | None = None
    links: tuple[str, ...] = ()
    timestamp: str | None = None
    offers: tuple[Offer, ...] = ()


class SessionFields(Config):
    """Fields of a record that belong to its session; `events` is the list of its events, where a record has several."""

    session_id: RecordPath
    user_id: OptionalPath = None
    events: str | None = None


class EventFields(Config):
    """Fields of an event.

    Attributes:
        items: The list of its offers; None: the event itself is one.
        links: A list of links beside the menu, such as promotions; `link` is the text of one.
        order: Numbers that sort the events of a session; without them they stand in the order of the log.
    """

    type: RecordPath
    path: OptionalPath = None
    title: OptionalPath = None
    query: OptionalPath = None
    links: str | None = None
    link: OptionalPath = None
    timestamp: OptionalPath = None
    order: tuple[str, ...] = ()
    items: str | None = None


class ItemFields(Config):
    """Fields of an offer. `impression`: true where the page showed it, rather than that it was acted on."""

    id: RecordPath
    name: OptionalPath = None
    price: OptionalPath = None
    position: OptionalPath = None
    impression: OptionalPath = None
    details: tuple[str, ...] = ()


class EventMapping(Config):
    """Where the fields of events stand in a log.

    Attributes:
        delimiter: Of a CSV file.
        min_events: Sessions of fewer events are rejected.
        menu_links: So many of the most frequent pages are linked from every page.
        min_clicks: Where events list no offers: a page offers what was clicked on it at least so often.
        price_unit: What a price is divided by, such as 1000000 for micros.
        words: Column -> code -> what it means, applied before anything is read.
        types: The log's words for events -> kinds; several where one event of the log stands for several.
        pages: The address of a page -> what it is, where the log's word for the event does not tell.
        layout: Templates of pages in place of those in layout.toml.
    """

    description: str
    source: str
    delimiter: str = ","
    min_events: int = 1
    menu_links: int = 60
    min_clicks: int = 5
    currency: str = "$"
    price_unit: float = 1
    session: SessionFields
    event: EventFields
    item: ItemFields
    types: dict[str, Kind | tuple[Kind, ...]]
    pages: dict[str, View] = msgspec.field(default_factory=dict)
    words: dict[str, dict[str, str]] = msgspec.field(default_factory=dict)
    layout: dict[str, str] = msgspec.field(default_factory=dict)

    def split(self, number: str, record: Any) -> Iterator[tuple[str, Any]]:
        """The events of a record with their rows; each is (what belongs to the session, the event)."""
        if self.session.events is None or isinstance(record, Exception):
            yield number, record if isinstance(record, Exception) else (record, record)
            return
        try:
            events = _list_at(record, self.session.events)
        except BadSession as error:
            yield number, error
            return
        yield from ((f"{number}, event {index}", (record, event)) for index, event in enumerate(events, start=1))

    def row(self, record: tuple[Any, Any]) -> Row:
        """An event as a row of text, for a table that holds all of them.

        Raises:
            BadSession: A field is missing or of the wrong kind; the message names it.
        """
        about, event = record
        if not isinstance(about, dict) or not isinstance(event, dict):
            raise BadSession("the record is no JSON object")
        order = [_number(optional_text_at(event, path), path) for path in self.event.order]
        return {
            "session_id": text_at(about, self.session.session_id),
            "user_id": optional_text_at(about, self.session.user_id),
            "events": msgspec.json.encode(list(self._events(event))).decode(),
            **(
                {ORDER: " ".join(str(float("-inf") if number is None else number) for number in order)} if order else {}
            ),
        }

    def _events(self, record: Any) -> Iterator[Event]:
        """The events that a record of the log stands for."""
        if self.words:
            record = {
                **record,
                **{key: words.get(str(record.get(key)), record.get(key)) for key, words in self.words.items()},
            }
        fields = self.event
        word = text_at(record, fields.type)
        kinds = self.types.get(word)
        items = _list_at(record, fields.items) if fields.items else [record]
        links = _list_at(record, fields.links)
        path = optional_text_at(record, fields.path) or ""
        if kinds in VIEWS and path in self.pages:
            kinds = self.pages[path]
        for kind in kinds if isinstance(kinds, tuple) else (kinds,):
            yield Event(
                word=word,
                kind=kind,
                path=path,
                title=(optional_text_at(record, fields.title) or "").partition(" | ")[
                    0
                ],  # what follows is the site's name
                query=optional_text_at(record, fields.query),
                links=tuple(dict.fromkeys(filter(None, (optional_text_at(item, fields.link) for item in links)))),
                timestamp=optional_text_at(record, fields.timestamp),
                offers=tuple(self._offers(items, kind)),
            )

    def _offers(self, items: Any, kind: Kind | None) -> Iterator[Offer]:
        fields = self.item
        if kind == "listing" and not self.event.items:
            return  # what a page offers follows from all clicks on it
        for item in items:
            is_impression = optional_at(item, fields.impression) is True if fields.impression else kind == "listing"
            if is_impression == (kind == "listing"):
                item_id = text_at(item, fields.id)
                yield Offer(
                    id=item_id,
                    name=optional_text_at(item, fields.name) or item_id,
                    price=self._price(optional_text_at(item, fields.price)),
                    position=_number(optional_text_at(item, fields.position), fields.position),
                    details=tuple(text for path in fields.details if (text := optional_text_at(item, path))),
                )

    def _price(self, text: str | None) -> str | None:
        price = _number(text, self.item.price)
        return f"{self.currency}{price / self.price_unit:,.2f}" if price else None


def _list_at(record: Any, path: str | None) -> list[Any]:
    items = decoded(optional_at(record, path))
    if items is not None and not isinstance(items, list):
        raise BadSession(f"field {path!r} is {type(items).__name__}, and a list was expected")
    return items or []


def _number(text: str | None, path: OptionalPath) -> float | None:
    try:
        return float(text) if text else None
    except ValueError as error:
        raise BadSession(f"field {path!r} is {text!r}, and a number was expected") from error


def load_event_mapping(name_or_file: str) -> EventMapping:
    """A mapping of this package by name, or a user's own by file name.

    Raises:
        BadConfig: There is none, or it does not hold what it should.
    """
    built_in = built_in_event_mappings()
    if name_or_file in built_in:
        content = built_in[name_or_file]
    elif name_or_file.endswith(".toml"):
        try:
            content = Path(name_or_file).expanduser().read_bytes()
        except OSError as error:
            raise BadConfig(f"cannot read the mapping '{name_or_file}': {error.strerror}") from error
    else:
        hint = did_you_mean(name_or_file, built_in)
        raise BadConfig(f"unknown mapping {name_or_file!r}. {hint} A mapping of your own is a file that ends in .toml.")
    try:
        return msgspec.toml.decode(content, type=EventMapping)
    except (msgspec.DecodeError, UnicodeDecodeError, ValueError) as error:
        raise BadConfig(f"mapping '{name_or_file}': {what_is_wrong(error, EventMapping)}") from error


def built_in_event_mappings() -> dict[str, bytes]:
    """The mappings of this package by name."""
    folder = files(__package__) / "mappings"
    return {
        entry.name.removesuffix(".toml"): entry.read_bytes()
        for entry in sorted(folder.iterdir(), key=lambda entry: entry.name)
        if entry.name.endswith(".toml")
    }
