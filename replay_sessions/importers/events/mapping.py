"""Defines mappings of a log's fields, as TOML files (docs/your_logs.md explains each key), and the events they yield.

Paths are those of the field mappings (mapped/record_paths.py): dotted, alternatives, or text with values.
event_reader.py reads records by them.
"""

from functools import lru_cache
from importlib.resources import files
from typing import Annotated, Literal, get_args

import msgspec
from msgspec import Meta

from replay_sessions.foundation import records
from replay_sessions.foundation.config_errors import load_toml
from replay_sessions.importers.mapped.record_paths import OptionalPath, RecordPath

# A view shows a page; an action is done on the current page.
View = Literal["page", "listing", "search", "product", "cart", "checkout", "thank_you", "error"]
ActionKind = Literal["select_item", "quickview", "follow_link", "add_to_cart", "remove_from_cart", "purchase"]
Kind = Literal[View, ActionKind]
VIEWS = get_args(View)
ACTION_KINDS = get_args(ActionKind)
LISTS: tuple[View, ...] = ("listing", "search")


class Offer(records.Record):
    """A product as a page offers it.

    Attributes:
        price: The price as text, with its currency.
        position: The position in the list.
        details: Further texts about the product, such as its color.
    """

    id: str
    name: str
    price: str | None = None
    position: float | None = None
    details: tuple[str, ...] = ()


class Event(records.Record):
    """One event of a shopper.

    Attributes:
        word: The log's word for the event.
        kind: The kind of the event. None if the mapping does not list the word.
        path: The address or key of the page; "" if the log has none.
        title: The title of the page.
        query: The search query, on a page of results.
        order_id: The id of the order, for a purchase.
        links: Texts of the links that the page shows, such as promotions; for an action, the link that was followed.
        offers: The offers that the event lists; for an action, the offer that was acted on.
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
        """The first offer; None if the event has none."""
        return self.offers[0] if self.offers else None


class SessionFields(records.Config):
    """Fields of a record that belong to its session.

    Attributes:
        session_id: The id of the visit. An event without it belongs to its user's visit of that time.
        user_id: The id of the user, or of the browser.
        customer_id: The id of the customer who is logged in.
        events: The list of events, if a record has several.
        consent: The visitor's consent to be measured; "No", "denied" and the like say why a record has no ids.
    """

    session_id: RecordPath
    user_id: OptionalPath = None
    customer_id: OptionalPath = None
    events: str | None = None
    consent: OptionalPath = None


class EventFields(records.Config):
    """Fields of an event.

    Attributes:
        items: A list of offers, or a single offer. "." is the event itself, whose page view is that of a product.
        links: The text of a link that is not in the menu, such as a promotion, or a list of texts.
        order: Numbers or times that sort the events of a session. If empty, `timestamp` sorts them.
        same_event: Rows of a session with equal `order` and equal values of these fields are the same event. If empty,
            or if none is filled, rows that are equal in all fields.
    """

    type: RecordPath
    path: OptionalPath = None
    title: OptionalPath = None
    query: OptionalPath = None
    order_id: OptionalPath = None
    links: OptionalPath = None
    timestamp: OptionalPath = None
    currency: OptionalPath = None
    order: tuple[RecordPath, ...] = ()
    same_event: tuple[RecordPath, ...] = ()
    items: RecordPath = "."


class ItemFields(records.Config):
    """Fields of an offer; `impression` is true if the page showed the offer, false if it was acted on."""

    id: RecordPath
    name: OptionalPath = None
    price: OptionalPath = None
    currency: OptionalPath = None
    position: OptionalPath = None
    impression: OptionalPath = None
    details: tuple[str, ...] = ()


class EventMapping(records.Config):
    """A mapping from the fields of a log to events.

    Attributes:
        description: A sentence about the log, for lists.
        source: The source of the sessions (Session.source).
        delimiter: The delimiter of CSV files.
        min_events: Minimum number of events of a session; shorter ones are rejected.
        idle_minutes: A longer pause begins another session, and parts an event without a session from a visit. If None,
            no pause begins a session, and one of 30 minutes parts such an event.
        menu_links: Number of the most frequent pages that the menu of every page links to.
        min_clicks: Minimum number of clicks on a product for a page to offer it, if the log shows no list there.
        currency: The currency of prices if neither event, session nor the rest of the log names one: a symbol or a
            code of three letters.
        price_unit: The divisor of prices, such as 1000000 for micros.
        decimal_comma: Whether a comma precedes the decimals and points separate thousands.
        session: Fields of the session.
        event: Fields of an event.
        item: Fields of an offer.
        types: The kind, or several kinds, of each of the log's words for events.
        pages: The kind of a page by its address, which overrides that of a view's word.
        words: Replacements for codes, by column, then by code, applied before fields are read.
    """

    description: str
    source: str
    delimiter: Annotated[str, Meta(pattern="^.$")] = ","
    min_events: int = 1
    idle_minutes: Annotated[float, Meta(ge=1)] | None = None
    menu_links: int = 60
    min_clicks: int = 1
    currency: str = ""
    price_unit: Annotated[float, Meta(gt=0)] = 1
    decimal_comma: bool = False
    session: SessionFields
    event: EventFields
    item: ItemFields
    types: dict[str, Kind | tuple[Kind, ...]]
    pages: dict[str, View] = msgspec.field(default_factory=dict)
    words: dict[str, dict[str, str]] = msgspec.field(default_factory=dict)

    def kinds_of(self, word: str) -> tuple[Kind, ...]:
        """Returns the kinds of events that a word of the log stands for; empty if the mapping does not list it."""
        kinds = self.types.get(word, ())
        return kinds if isinstance(kinds, tuple) else (kinds,)


@lru_cache(4096)
def decode_events(events: str) -> tuple[Event, ...]:
    """Decodes the events of a row."""
    return msgspec.json.decode(events, type=tuple[Event, ...])


MAPPINGS = files(__package__) / "mappings"


def load_event_mapping(name_or_file: str) -> EventMapping:
    """Loads a mapping of this package by name, or a user's mapping by file name.

    Raises:
        BadConfig: The mapping does not exist or is not valid.
    """
    return load_toml(EventMapping, "mapping", name_or_file, MAPPINGS)
