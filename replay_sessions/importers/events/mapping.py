"""A log's own fields, declared in a TOML file (docs/your_logs.md explains each key), and the events that they become.

Paths are those of the field mappings (mapped/record_paths.py): dotted, several to choose from, or text with values.
event_reader.py reads records by them.
"""

from importlib.resources import files
from typing import Literal, get_args

import msgspec

from replay_sessions.foundation import records
from replay_sessions.foundation.config_errors import load_toml
from replay_sessions.importers.mapped.record_paths import OptionalPath, RecordPath

# Views show a page; actions are done on the page that is shown.
View = Literal["page", "listing", "search", "product", "cart", "checkout", "thank_you", "error"]
ActionKind = Literal["select_item", "quickview", "follow_link", "add_to_cart", "remove_from_cart", "purchase"]
Kind = Literal[View, ActionKind]
VIEWS = get_args(View)
ACTION_KINDS = get_args(ActionKind)
LISTS = ("listing", "search")


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
        path: The address or key of the page; "" where the log has none.
        query: What was searched for, on a page of results.
        order_id: Of a purchase.
        links: Texts of the links that the page shows, such as promotions; of an action the one that was followed.
        offers: Those that the event lists; of an action the one that was acted on.
    """

    word: str
    kind: Kind | None
    path: str = ""
    title: str = ""
    query: str | None = None
    order_id: str | None = None
    links: tuple[str, ...] = ()
    offers: tuple[Offer, ...] = ()

    @property
    def item(self) -> Offer | None:
        """The first of its offers."""
        return self.offers[0] if self.offers else None


class SessionFields(records.Config):
    """Fields of a record that belong to its session; `events` is the list of its events, where a record has several."""

    session_id: RecordPath
    user_id: OptionalPath = None
    events: str | None = None


class EventFields(records.Config):
    """Fields of an event.

    Attributes:
        items: The list of its offers, or a single one; None: the event itself is the offer.
        links: The text of a link beside the menu, such as a promotion, or a list of texts.
        order: Numbers or times that sort the events of a session; without them they are sorted by their times.
    """

    type: RecordPath
    path: OptionalPath = None
    title: OptionalPath = None
    query: OptionalPath = None
    order_id: OptionalPath = None
    links: OptionalPath = None
    timestamp: OptionalPath = None
    currency: OptionalPath = None
    order: tuple[str, ...] = ()
    items: OptionalPath = None


class ItemFields(records.Config):
    """Fields of an offer. `impression`: true where the page showed it, rather than that it was acted on."""

    id: RecordPath
    name: OptionalPath = None
    price: OptionalPath = None
    currency: OptionalPath = None
    position: OptionalPath = None
    impression: OptionalPath = None
    details: tuple[str, ...] = ()


class EventMapping(records.Config):
    """Where the fields of events stand in a log.

    Attributes:
        delimiter: Of a CSV file.
        min_events: Sessions of fewer events are rejected.
        idle_minutes: A longer pause begins another session.
        menu_links: So many of the most frequent pages are linked from every page.
        min_clicks: Where events list no offers: a page offers what was clicked on it at least so often.
        currency: Of prices whose event names none: a symbol or a code of three letters.
        price_unit: What a price is divided by, such as 1000000 for micros.
        decimal_comma: A comma stands before the decimals, and points before thousands.
        words: Column -> code -> what it means, applied before anything is read.
        types: The log's words for events -> kinds; several where one event of the log stands for several.
        pages: The address of a page -> what it is, where the log's word for the event does not tell.
    """

    description: str
    source: str
    delimiter: str = ","
    min_events: int = 1
    idle_minutes: float | None = None
    menu_links: int = 60
    min_clicks: int = 5
    currency: str = ""
    price_unit: float = 1
    decimal_comma: bool = False
    session: SessionFields
    event: EventFields
    item: ItemFields
    types: dict[str, Kind | tuple[Kind, ...]]
    pages: dict[str, View] = msgspec.field(default_factory=dict)
    words: dict[str, dict[str, str]] = msgspec.field(default_factory=dict)

    def kinds_of(self, word: str) -> tuple[Kind, ...]:
        """The kinds of events that a word of the log stands for."""
        kinds = self.types.get(word, ())
        return kinds if isinstance(kinds, tuple) else (kinds,)


MAPPINGS = files(__package__) / "mappings"


def load_event_mapping(name_or_file: str) -> EventMapping:
    """A mapping of this package by name, or a user's own by file name.

    Raises:
        BadConfig: There is none, or it does not hold what it should.
    """
    return load_toml(EventMapping, "mapping", name_or_file, MAPPINGS)
