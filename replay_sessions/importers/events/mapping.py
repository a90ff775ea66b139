"""A log's own fields -> e-commerce events, declared in a TOML file (docs/your_logs.md explains each key).

    record -> events of one kind each, with the offers that they list (`EventMapping.events`)

Paths are those of the field mappings (mapped/record_paths.py): dotted, several to choose from, or text with values.
"""

from collections.abc import Iterator
from importlib.resources import files
from typing import Any, Literal, get_args

import msgspec
from msgspec.structs import replace

from replay_sessions.foundation import records
from replay_sessions.foundation.config_errors import load_toml
from replay_sessions.foundation.errors import BadSession
from replay_sessions.importers.importer import reason_of
from replay_sessions.importers.mapped.record_paths import (
    OptionalPath,
    RecordPath,
    decoded,
    optional_at,
    optional_text_at,
    text_at,
)
from replay_sessions.importers.sources.record_files import Record
from replay_sessions.importers.sources.row_tables import ORDER, ROW, Row
from replay_sessions.importers.sources.times import iso_time
from replay_sessions.store.manifest import Rejected

# Views show a page; actions are done on the page that is shown.
View = Literal["page", "listing", "product", "cart", "checkout"]
Kind = Literal[View, "select_item", "quickview", "follow_link", "add_to_cart", "remove_from_cart", "purchase"]
VIEWS = get_args(View)


class Offer(records.Record):
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


class Event(records.Record):
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
    offers: tuple[Offer, ...] = ()


class SessionFields(records.Config):
    """Fields of a record that belong to its session; `events` is the list of its events, where a record has several."""

    session_id: RecordPath
    user_id: OptionalPath = None
    events: str | None = None


class EventFields(records.Config):
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


class ItemFields(records.Config):
    """Fields of an offer. `impression`: true where the page showed it, rather than that it was acted on."""

    id: RecordPath
    name: OptionalPath = None
    price: OptionalPath = None
    position: OptionalPath = None
    impression: OptionalPath = None
    details: tuple[str, ...] = ()


class EventMapping(records.Config):
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

    def rows(self, record: Record) -> Iterator[Row | Rejected]:
        """Yields the events of a record as rows of text, or which field of one is missing or of the wrong kind.

        Raises:
            BadSession: The record is no JSON, or its list of events is none.
        """
        value = record.decode()
        events = [(record.location, value)]
        if self.session.events:
            items = enumerate(_list_at(value, self.session.events), start=1)
            events = [(f"{record.location}, event {number}", event) for number, event in items]
        for location, event in events:
            try:
                yield {**self._row(value, event), ROW: location}
            except BadSession as error:
                yield Rejected(where=location, reason=reason_of(error))

    def _row(self, about: Any, event: Any) -> Row:
        """An event as a row; `about` is the record that says of which session it is."""
        if not isinstance(event, dict):
            raise BadSession("the record is no JSON object")
        fields, worded = self.event, self._worded(event)
        return {
            "session_id": _filled_at(about, self.session.session_id),
            "user_id": optional_text_at(about, self.session.user_id),
            "events": msgspec.json.encode(list(self._events(worded))).decode(),
            "timestamp": iso_time(optional_text_at(worded, fields.timestamp)),
            ORDER: " ".join(str(_sort_key(optional_at(event, path))) for path in fields.order),
        }

    def _worded(self, record: dict[str, Any]) -> dict[str, Any]:
        return record | {key: codes.get(str(code := record.get(key)), code) for key, codes in self.words.items()}

    def _events(self, record: dict[str, Any]) -> Iterator[Event]:
        """The events that a record of the log stands for."""
        fields = self.event
        word = _filled_at(record, fields.type)
        path = optional_text_at(record, fields.path) or ""
        title = optional_text_at(record, fields.title) or ""
        links = (optional_text_at(link, fields.link) for link in _list_at(record, fields.links))
        event = Event(
            word=word,
            kind=None,
            path=path,
            title=title.partition(" | ")[0],  # what follows is the site's name
            query=optional_text_at(record, fields.query),
            links=tuple(dict.fromkeys(filter(None, links))),
        )
        kinds = self.types.get(word)
        if kinds in VIEWS:
            kinds = self.pages.get(path, kinds)
        for kind in kinds if isinstance(kinds, tuple) else (kinds,):
            yield replace(event, kind=kind, offers=tuple(self._offers(record, kind)))

    def _offers(self, record: Any, kind: Kind | None) -> Iterator[Offer]:
        """Those that a listing shows, or that anything else is about; where events list none, the event itself."""
        fields, is_listing = self.item, kind == "listing"
        items = _list_at(record, self.event.items) if self.event.items else [] if is_listing else [record]
        for item in items:
            is_impression = optional_at(item, fields.impression) is True if fields.impression else is_listing
            if is_impression == is_listing:
                item_id, price = _filled_at(item, fields.id), _number_at(item, fields.price)
                yield Offer(
                    id=item_id,
                    name=optional_text_at(item, fields.name) or item_id,
                    price=f"{self.currency}{price / self.price_unit:,.2f}" if price else None,
                    position=_number_at(item, fields.position),
                    details=tuple(text for path in fields.details if (text := optional_text_at(item, path))),
                )


def _list_at(record: Any, path: str | None) -> list[Any]:
    items = decoded(optional_at(record, path))
    if items is not None and not isinstance(items, list):
        raise BadSession(f"field {path!r} is {type(items).__name__}, and a list was expected")
    return items or []


def _filled_at(record: Any, path: RecordPath) -> str:
    """A text that identifies something: an empty cell of a table would be one product or session of many."""
    if text := text_at(record, path):
        return text
    raise BadSession(f"field {path!r} is empty")


def _number_at(record: Any, path: OptionalPath) -> float | None:
    text = optional_text_at(record, path)
    try:
        return float(text) if text else None
    except ValueError as error:
        raise BadSession(f"field {path!r} is {text!r}, and a number was expected") from error


def _sort_key(value: Any) -> float:
    """A number by which rows are sorted; what is none comes first."""
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return float("-inf")


MAPPINGS = files(__package__) / "mappings"


def load_event_mapping(name_or_file: str) -> EventMapping:
    """A mapping of this package by name, or a user's own by file name.

    Raises:
        BadConfig: There is none, or it does not hold what it should.
    """
    return load_toml(EventMapping, "mapping", name_or_file, MAPPINGS)
