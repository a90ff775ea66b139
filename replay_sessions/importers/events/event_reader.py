"""Converts the records of a log to rows of events by a mapping. An event needs a type, and a session id or else a user
and a time.

Empty cells, "(not set)" and the like are missing values; then the next path of the field is read. If an optional field
cannot be read, it is counted, and the event is kept without it.
"""

import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from functools import lru_cache
from hashlib import blake2b
from itertools import compress
from math import isfinite
from operator import attrgetter
from typing import Any

import msgspec

from replay_sessions.foundation.errors import BadSession
from replay_sessions.foundation.times import iso_time, seconds
from replay_sessions.importers.events.mapping import LISTS, VIEWS, Event, EventMapping, Kind, Offer
from replay_sessions.importers.events.people import BROWSERS, is_person
from replay_sessions.importers.events.prices import currency_symbol, format_price, parse_price
from replay_sessions.importers.importer import reason_of
from replay_sessions.importers.mapped.record_paths import (
    OptionalPath,
    RecordPath,
    as_text,
    decoded,
    is_missing,
    optional_at,
    pairs_as_object,
)
from replay_sessions.importers.sources.addresses import plain_address
from replay_sessions.importers.sources.record_files import Record
from replay_sessions.importers.sources.row_tables import ROW, Row
from replay_sessions.private_data import without_credentials
from replay_sessions.store.manifest import Rejected

ORDER = "order"  # the column of numbers that sort the events of a session
DIGEST = "digest"  # the column of a digest that duplicates share; "" if equal events may be distinct
CURRENCY = "currency"  # the column of the symbol of the event's currency
_NOTABLE = ("session.user_id", "event.timestamp", "event.order", "event.path", "item.id", "item.price")
REFUSED = "the visitor refused consent"
_REFUSALS = ("no", "denied", "false", "0", "refused")
_HOST = "http://shop.invalid"


class EventReader:
    """Reads the records of a log.

    Attributes:
        unread: The number of values that could not be read, by the field's name in the mapping.
        rejected: The number of rejected records, by reason, then by the log's word for the event.
        words: The number of events that were read, by their type.
        unfilled: The fields, of those that matter most, that have no value in any event so far.
    """

    def __init__(self, mapping: EventMapping) -> None:
        self.unread: Counter[str] = Counter()
        self.words: Counter[str] = Counter()
        self.rejected: defaultdict[str, Counter[str]] = defaultdict(Counter)
        self._mapping = mapping
        self.unfilled = {name for name in _NOTABLE if attrgetter(name)(mapping)}

    def rows(self, record: Record) -> Iterator[Row | Rejected]:
        """Yields each event of a record as a row of text, or its rejection."""
        path = self._mapping.session.events
        try:
            value = record.decode()
            events = _list_at(value, path) if path else [value]
            if not events:
                raise BadSession(f"field {path!r} is empty")
        except BadSession as error:
            yield self._reject(record.location, None, error)
            return
        for number, event in enumerate(events, start=1):
            location = f"{record.location}, event {number}" if path else record.location
            try:
                yield {**self._row(value, event), ROW: location}
            except BadSession as error:
                yield self._reject(location, event, error)

    def _reject(self, location: str, event: Any, error: BadSession) -> Rejected:
        reason, word = sys.intern(reason_of(error)), _text_at(event, self._mapping.event.type)
        self.rejected[reason][word or "of no type"] += 1
        return Rejected(where=location, reason=reason)

    def _row(self, about: Any, event: Any) -> Row:
        """Returns an event as a row; `about` is the record with the ids of its session and user."""
        if not isinstance(event, dict):
            raise BadSession("the record is no JSON object")
        fields = self._mapping.event
        worded = self._worded(event)
        time = self._text_at(worded, "timestamp")
        if time is not None and seconds(time) is None:
            self.unread["timestamp"] += 1
            time = None
        keys = [_sort_key(worded, path) for path in fields.order]
        currency = self._text_at(worded, "currency")
        events = list(self._events(worded, currency))
        prices = [offer.price for each in events for offer in each.offers if offer.price]
        row = {
            **self._ids(worded if about is event else about, time),
            BROWSERS: None,
            "events": msgspec.json.encode(events).decode(),
            "timestamp": iso_time(time),
            ORDER: " ".join(map(str, keys)),
            DIGEST: self._digest(event, worded, keys) if keys or time is not None else "",
            CURRENCY: self._currency(worded, currency),
        }
        self.words[events[0].word] += 1
        if self.unfilled:
            has_offers = any(each.offers for each in events)
            values = (row["user_id"], time, any(map(isfinite, keys)), events[0].path, has_offers, prices)
            self.unfilled.difference_update(compress(_NOTABLE, values))
        return row

    def _currency(self, record: Any, currency: str | None) -> str | None:
        """Returns the symbol of the currency that an event or one of its offers names."""
        path = self._mapping.item.currency
        items = _list_at(record, self._mapping.event.items) if path and not currency else []
        named = next(filter(None, (_text_at(item, path) for item in items)), currency)
        return currency_symbol(named) if named else None

    def _ids(self, record: Any, time: str | None) -> dict[str, str | None]:
        """Returns the ids of an event's session and user.

        Raises:
            BadSession: It has neither a session nor a user whose visit at its time it may belong to.
        """
        fields = self._mapping.session
        ids = {name: _text_at(record, getattr(fields, name)) for name in ("session_id", "user_id", "customer_id")}
        if not ids["session_id"] and (time is None or not (ids["user_id"] or is_person(ids["customer_id"]))):
            consent = optional_at(record, fields.consent)
            is_refused = str(consent).lower() in _REFUSALS
            reason = f"{REFUSED}: field {fields.consent!r} is {consent!r}, and " if is_refused else ""
            raise BadSession(f"{reason}field {fields.session_id!r} is empty")
        return ids

    def _digest(self, event: Any, worded: Any, keys: list[float]) -> str:
        """Returns a digest that is equal for rows of the same event (`EventFields.same_event`)."""
        values = (optional_at(worded, path) for path in self._mapping.event.same_event)
        same = [None if is_missing(value) else as_text(value) or value for value in values]
        return blake2b(msgspec.json.encode([keys, same] if any(same) else event), digest_size=12).hexdigest()

    def _worded(self, record: dict[str, Any]) -> dict[str, Any]:
        """Returns a record with words in the place of codes, and lists of pairs as objects."""
        words = self._mapping.words
        record = {
            key: pairs_as_object(value)
            if isinstance(value, list) or (isinstance(value, str) and "[" in value)
            else value
            for key, value in record.items()
        }
        return record | {key: codes.get(str(code := optional_at(record, key)), code) for key, codes in words.items()}

    def _events(self, record: dict[str, Any], currency: str | None) -> Iterator[Event]:
        """Yields the events that a record of the log stands for, one for each of its kinds."""
        mapping, fields = self._mapping, self._mapping.event
        word = _filled_at(record, fields.type)
        title = self._text_at(record, "title") or ""
        event = Event(
            word=word,
            kind=None,
            path=_page_address(self._text_at(record, "path") or ""),
            title=title.partition(" | ")[0],  # the site's name follows
            query=self._text_at(record, "query"),
            order_id=self._text_at(record, "order_id"),
            links=tuple(dict.fromkeys(filter(None, map(as_text, _list_at(record, fields.links))))),
        )
        is_offer = optional_at(record, fields.items) is record
        offers = list(self._offers(record, currency))
        for kind in mapping.kinds_of(word) or (None,):
            if kind in VIEWS:
                kind = mapping.pages.get(event.path, kind)
            if kind == "page" and is_offer and offers:
                kind = "product"
            kind_offers = () if kind in LISTS and is_offer else self._offers_of(kind, offers)
            yield msgspec.structs.replace(event, kind=kind, offers=kind_offers)

    def _offers_of(self, kind: Kind | None, offers: list[tuple[Offer, bool]]) -> tuple[Offer, ...]:
        """Returns the offers that belong to a kind: impressions to a list, all others to other kinds."""
        has_impressions = self._mapping.item.impression is not None
        return tuple(
            offer for offer, is_impression in offers if not has_impressions or is_impression == (kind in LISTS)
        )

    def _offers(self, record: Any, currency: str | None) -> Iterator[tuple[Offer, bool]]:
        """Yields the offers of an event, each with whether it is an impression (shown by the page, not acted on)."""
        mapping = self._mapping
        for item in _list_at(record, mapping.event.items):
            if offer := self._offer(item, currency):
                yield offer, optional_at(item, mapping.item.impression) is True

    def _offer(self, item: Any, currency: str | None) -> Offer | None:
        """Reads an offer; returns None if it has no id."""
        fields = self._mapping.item
        item_id = _text_at(item, fields.id)
        if item_id is None:
            return None
        position = _text_at(item, fields.position)
        number = parse_price(position) if position else None
        if position and number is None:
            self.unread["position"] += 1
        return Offer(
            id=item_id,
            name=_text_at(item, fields.name) or item_id,
            price=self._price(item, currency),
            position=number[0] if number else None,
            details=tuple(text for path in fields.details if (text := _text_at(item, path))),
        )

    def _price(self, item: Any, currency: str | None) -> str | None:
        mapping = self._mapping
        text = _text_at(item, mapping.item.price)
        if text is None:
            return None
        is_text = isinstance(optional_at(item, mapping.item.price), str)  # a JSON number has a decimal point
        price = parse_price(text, decimal_comma=mapping.decimal_comma and is_text)
        if price is None:
            self.unread["price"] += 1
            return None
        number, sign = price
        default = mapping.currency if mapping.item.currency is mapping.event.currency is None else ""
        currency = _text_at(item, mapping.item.currency) or currency or sign or default
        return format_price(number / mapping.price_unit, currency) if number else None

    def _text_at(self, record: Any, field: str) -> str | None:
        """Returns an optional field of an event; counts a value that is no text."""
        value = optional_at(record, getattr(self._mapping.event, field))
        text = _filled_text(value)
        if text is None and not is_missing(value):
            self.unread[field] += 1
        return text


def _text_at(record: Any, path: OptionalPath) -> str | None:
    """Returns the text at a path; None if it is missing or no text."""
    return _filled_text(optional_at(record, path))


def _filled_text(value: Any) -> str | None:
    return None if is_missing(value) or (text := as_text(value)) is None else text.strip()


def _filled_at(record: Any, path: RecordPath) -> str:
    """Returns a required text. An empty one is refused, because all rows with an empty id would form one session."""
    if text := _text_at(record, path):
        return text
    raise BadSession(f"field {path!r} is empty")


def _list_at(record: Any, path: OptionalPath) -> list[Any]:
    """Returns the list at a path; a single value becomes a list of one item."""
    items = decoded(optional_at(record, path))
    return items if isinstance(items, list) else [] if is_missing(items) else [items]


@lru_cache(10_000)
def _page_address(path: str) -> str:
    """Returns an address without credentials, tracking parameters, and other parts that do not identify a page.

    >>> _page_address("https://Shop.example/c?utm_source=mail"), _page_address("/c?token=k&gclid=x"), _page_address("a")
    ('https://shop.example/c', '/c?token=[secret]', 'a')
    """
    if any(sign in path for sign in ("?", "#", "://")):
        path = (plain_address(path, base=_HOST) or path).removeprefix(_HOST)
    return without_credentials(path)


def _sort_key(record: Any, path: RecordPath) -> float:
    """Returns a number that sorts an event; a missing value comes first.

    Raises:
        BadSession: The value is neither a number nor a time.
    """
    text = _text_at(record, path)
    key = float("-inf") if text is None else seconds(text)
    if key is None:
        raise BadSession(f"field {path!r} of order is {text!r}, and a number or a time of ISO 8601 was expected")
    return key
