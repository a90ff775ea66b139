"""A log's own fields -> e-commerce events, declared in a TOML file (docs/your_logs.md explains each key).

    record -> events of one kind each, with the offers that they list (`EventMapping.events`)

Paths are those of the field mappings (mapped/record_paths.py): dotted, several to choose from, or text with values.
"""

from collections.abc import Callable, Collection, Iterator
from importlib.resources import files
from typing import Any, Literal, TypeVar, get_args

import msgspec
from msgspec.structs import asdict, replace

from replay_sessions.foundation.config_errors import load_toml
from replay_sessions.foundation.errors import BadSession
from replay_sessions.foundation.records import Config, Record
from replay_sessions.importers.mapped.record_paths import (
    OptionalPath,
    RecordPath,
    decoded,
    optional_at,
    optional_text_at,
    plain_paths,
    text_at,
)
from replay_sessions.importers.sources.event_tables import iso_time, order_text
from replay_sessions.importers.sources.row_tables import ORDER, Row

# Views show a page; actions are done on the page that is shown.
View = Literal["page", "listing", "product", "cart", "checkout"]
Kind = Literal[View, "select_item", "quickview", "follow_link", "add_to_cart", "remove_from_cart", "purchase"]
VIEWS = get_args(View)
ValueT = TypeVar("ValueT")
_MOST_REMEMBERED = 50_000


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
        """The events of a record with their numbers; each is (what belongs to the session, the event)."""
        path = self.session.events
        if path is None or isinstance(record, Exception):
            yield number, record if isinstance(record, Exception) else (record, record)
            return
        try:
            for index, event in enumerate(_list_at(record, path), start=1):
                yield f"{number}, event {index}", (record, event)
        except BadSession as error:
            yield number, error

    def row_reader(self) -> Callable[[tuple[Any, Any]], Row]:
        """What makes an event a row of text, for a table that holds all of them.

        It raises a BadSession where a field is missing or of the wrong kind; the message names it.
        """
        fields = self.event
        of_events = [path for name, path in asdict(fields).items() if name not in ("timestamp", "order")]
        read_time = _remember(
            lambda event: iso_time(optional_text_at(self._worded(event), fields.timestamp)), _keys(fields.timestamp)
        )
        read_events = _remember(
            lambda event: msgspec.json.encode(list(self._events(self._worded(event)))).decode(),
            _keys(*of_events, *asdict(self.item).values()),
        )

        def read(record: tuple[Any, Any]) -> Row:
            about, event = record
            if not isinstance(event, dict):
                raise BadSession("the record is no JSON object")
            return {
                "session_id": _filled_at(about, self.session.session_id),
                "user_id": optional_text_at(about, self.session.user_id),
                "events": read_events(event),
                "timestamp": read_time(event),
                ORDER: order_text(optional_at(event, path) for path in fields.order),
            }

        return read

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


def _remember(read: Callable[[dict[str, Any]], ValueT], keys: Collection[str]) -> Callable[[dict[str, Any]], ValueT]:
    """`read`, which reads these keys of a record, once for all records that have the same texts there."""
    values: dict[tuple[str | None, ...], ValueT] = {}

    def remembered(record: dict[str, Any]) -> ValueT:
        texts = tuple([record.get(key) for key in keys])
        if not all(text is None or isinstance(text, str) for text in texts):
            return read(record)  # lists have no hash, and numbers can be equal and written otherwise
        if texts not in values:
            if len(values) == _MOST_REMEMBERED:
                values.clear()
            values[texts] = read(record)
        return values[texts]

    return remembered


def _keys(*paths: Any) -> set[str]:
    return {path.partition(".")[0] for of_field in paths for path in plain_paths(of_field)}


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


MAPPINGS = files(__package__) / "mappings"


def load_event_mapping(name_or_file: str) -> EventMapping:
    """A mapping of this package by name, or a user's own by file name.

    Raises:
        BadConfig: There is none, or it does not hold what it should.
    """
    return load_toml(EventMapping, "mapping", name_or_file, MAPPINGS)
