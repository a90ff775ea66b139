"""Importer `events` reads e-commerce events without pages, and renders pages from the products that the events list.

    shop-r1 import events export.jsonl --mapping ga4_ecommerce --out STORE

    records -> rows of events (event_reader.py) -> the shop: menu, kinds of pages, counted over all events (shop.py)
            -> a session's page views (page_views.py) -> rows of actions, each with its screen (visits.py)
            -> pages (screens.py) -> session (importers/sessions.py)

The log is read once and held in memory, packed. Visits are read twice, because the elements of the pages follow from
all actions of the log. Pages are written part by part.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from functools import cached_property, lru_cache
from itertools import groupby
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from replay_sessions.foundation.config_errors import toml_names
from replay_sessions.foundation.errors import ImportFailed, check_at_least
from replay_sessions.foundation.help_text import format_choices
from replay_sessions.foundation.records import Record
from replay_sessions.foundation.times import in_time_order, seconds
from replay_sessions.importers.events.event_reader import CURRENCY, DIGEST, ORDER, REFUSED, EventReader
from replay_sessions.importers.events.log_counts import LogCounts
from replay_sessions.importers.events.mapping import MAPPINGS, VIEWS, Event, Offer, decode_events, load_event_mapping
from replay_sessions.importers.events.misfits import check_delimiter, describe_misfit
from replay_sessions.importers.events.page_views import Entry
from replay_sessions.importers.events.people import NO_VISIT, People, read_ids
from replay_sessions.importers.events.prices import currency_of, with_currency
from replay_sessions.importers.events.screens import RenderedPages
from replay_sessions.importers.events.shop import build_shop
from replay_sessions.importers.events.visits import Visit
from replay_sessions.importers.importer import Importer, Part, Read, find_files, listed
from replay_sessions.importers.pauses import split_at_pauses
from replay_sessions.importers.sessions import PURCHASE, build_session, numbered_session
from replay_sessions.importers.sources.record_files import RECORD_ENDINGS, read_records
from replay_sessions.importers.sources.row_tables import ROW, Row, RowTable, build_table

_HELP = """\
SOURCE is a table of events, CSV, TSV, JSON or parquet, or a folder of them. No
pages are needed: they are rendered from the products that the events list. The
mapping says where the fields stand:

{mappings}
A mapping of your own is a TOML file; docs/your_logs.md describes it.

  shop-r1 import events clicks.csv.gz \\
    --mapping clothing_shop --out stores/clothing
  shop-r1 check stores/clothing"""


class EventsOptions(Record):
    """Options of reading events.

    Attributes:
        mapping: The mapping of the log's fields: a name listed above, or a FILE.toml of your own.
        idle_minutes: A longer pause begins another session; events without a session are joined to one across no longer
            pause. If None, as the mapping says.
    """

    mapping: str
    idle_minutes: float | None = None

    def __post_init__(self) -> None:
        check_at_least(1, idle_minutes=self.idle_minutes)


class EventsImporter(Importer):
    """Reads tables of events (see the module's docstring)."""

    Options = EventsOptions
    batch_size = 4096

    def __init__(self, source: Path, options: EventsOptions) -> None:
        super().__init__(source, options)
        self._mapping = load_event_mapping(options.mapping)
        self._idle_minutes = options.idle_minutes or self._mapping.idle_minutes
        self.name = self._mapping.source
        self.settings["mapping"] = options.mapping
        if self._idle_minutes:
            self.settings["idle_minutes"] = f"{self._idle_minutes:g}"
        files = find_files(source, RECORD_ENDINGS, self.warnings)
        check_delimiter(files, self._mapping.delimiter)
        reader = EventReader(self._mapping)
        people = People(self._read_table(files, reader), self._idle_minutes)
        if people.lost:
            reader.rejected[NO_VISIT] += people.lost
        self._table, self._users = people.table, people.report
        self.size = len(self._table)
        self._currency = self._mapping.currency
        self._earlier_orders: defaultdict[str, set[str | None]] = defaultdict(set)
        self._counts = LogCounts(reader, self._mapping)
        self._shop = build_shop(map(self._counts.add_event, self._read_events()), self._mapping)

    @classmethod
    def help(cls) -> str:
        mappings = {name: load_event_mapping(name).description for name in toml_names(MAPPINGS)}
        return _HELP.format(mappings=format_choices(mappings))

    def _read_table(self, files: list[Path], reader: EventReader) -> RowTable:
        """Reads all records to rows of events.

        Raises:
            ImportFailed: No record can be read, or no event is of a type that the mapping lists.
        """
        mapping = self._mapping
        records = (record for file in files for record in read_records(file, mapping.delimiter))
        try:
            table = build_table(records, self.source, reader.rows)
        except ImportFailed as error:
            if not reader.rejected or any(reason.startswith(REFUSED) for reason in reader.rejected):
                raise
            raise ImportFailed(f"{error}; {describe_misfit(files, mapping)}") from error
        if not any(map(mapping.kinds_of, reader.words)):
            types = f"no event is of a type in the mapping's [types], which lists {listed(mapping.types)}"
            raise ImportFailed(f"{types}; the log has {listed(reader.words)}; {describe_misfit(files, mapping)}")
        return table

    def _read_events(self) -> Iterator[Event]:
        """Yields all events, then records for each session the orders that its user placed in an earlier session."""
        orders: defaultdict[tuple[str, str], list[tuple[float, str]]] = defaultdict(list)
        currencies: dict[str, str] = {}  # the first of each session
        for session_id, currency in zip(*map(self._table.values, ("session_id", CURRENCY)), strict=True):
            if currency:
                currencies.setdefault(session_id or "", currency)
        if len(set(self._table.values(CURRENCY)) - {None}) == 1:
            self._currency = next(iter(currencies.values()))
        columns = map(self._table.values, ("events", "timestamp", "session_id", "customer_id", "user_id"))
        for texts, timestamp, session_id, *users in zip(*columns, strict=True):
            for event in _priced_events(texts, currencies.get(session_id, self._currency)):
                if event.kind == PURCHASE and event.order_id:
                    orders[next(filter(None, users), session_id), event.order_id].append(
                        (seconds(timestamp) or 0, session_id)
                    )
                yield event
        for (_, order_id), purchases in orders.items():
            for session_id in {session_id for _, session_id in purchases} - {min(purchases)[1]}:
                self._earlier_orders[session_id].add(order_id)

    def split(self) -> Iterator[Part | Read]:
        yield Read(rejected=self._table.rejected)
        controls, acted_on = set(), set()
        least = self._mapping.min_events
        for rows in self._table.sessions():
            session = _ordered(rows)
            for visit in self._read_visits(session):
                self._counts.add_visit(visit, is_rejected=len(session) < least)
                if len(session) >= least:
                    controls |= visit.controls
                    acted_on |= visit.acted_on
        self._shop = replace(self._shop, controls=frozenset(controls), acted_on=frozenset(acted_on))
        menu = f"pages: written from the events, with a menu of {len(self._shop.menu)} links"
        self.report = [menu, *self._users, *self._counts.report(self._shop)]
        self.warnings += self._counts.warnings()
        for rows in self._table.sessions():
            session = _ordered(rows)
            others = Read(left_out=["duplicate"] * (len(rows) - len(session)))
            if len(session) < least:
                reason = f"{len(session)} events, and at least {least} were expected (min_events)"
                others.reject(rows[0]["session_id"], reason)
            yield others
            if len(session) >= least:
                yield Part(session, len(rows))

    def _read_visits(self, session: list[Row]) -> Iterator[Visit]:
        """Yields the visits of a session of the log, split at long pauses, each with the actions of its events."""
        order_ids = set(self._earlier_orders.get(session[0]["session_id"], ()))
        currency = next((row[CURRENCY] for row in session if row[CURRENCY]), self._currency)
        for rows in split_at_pauses(session, self._idle_minutes):
            ids = read_ids(rows)
            about = {"session_id": rows[0]["session_id"], "user_id": next(iter(ids), None), "other_ids": ids[1:]}
            visit = Visit(self._shop, about, order_ids)
            events = ((row, event) for row in rows for event in _priced_events(row["events"], currency))
            visit.read(_at_checkout(Entry(row[ROW], row["timestamp"], event) for row, event in events))
            yield visit

    @cached_property
    def _pages(self) -> RenderedPages:
        return RenderedPages(self._shop)

    def read(self, source: list[Row], options: EventsOptions) -> Iterator[Read]:
        sessions = (session for visit in self._read_visits(source) for session in visit.sessions)
        for number, rows in enumerate(sessions, start=1):
            yield build_session(numbered_session(rows, number), self._pages, source=self.name)


def _at_checkout(entries: Iterable[Entry]) -> list[Entry]:
    """Returns the events of a visit with purchases that name no page, as servers send them, moved to the checkout.

    Such a purchase follows the last checkout of the visit, and the page after it if it may confirm the order.
    """
    moved: list[Entry] = []
    for entry in entries:
        position = len(moved)
        if entry.event.kind == PURCHASE and not entry.event.path:
            kinds = [before.event.kind for before in moved]
            start = len(kinds) - kinds[::-1].index("checkout") if "checkout" in kinds else position
            if PURCHASE not in kinds[start:]:
                position = next(
                    (number for number in range(start, position) if not _may_confirm(moved[number], moved[start])),
                    position,
                )
        moved.insert(position, entry)
    return moved


def _may_confirm(entry: Entry, first: Entry) -> bool:
    return entry.event.kind in (None, "page", "thank_you") and entry.event.path == first.event.path


def _ordered(rows: list[Row]) -> list[Row]:
    """Sorts the events of a session by the order fields, or else by time, and drops duplicates."""

    def order_of(row: Row) -> Any:
        return [*map(float, row[ORDER].split())] if row[ORDER] else row["timestamp"]

    rows = sorted(rows, key=order_of) if rows[0][ORDER] else in_time_order(rows, lambda row: row["timestamp"])
    rows = list({row[DIGEST] or number: row for number, row in enumerate(rows)}.values())
    return [row for time, equal in groupby(rows, order_of) for row in _views_first(time, list(equal))]


def _views_first(time: Any, rows: list[Row]) -> list[Row]:
    """Puts views before the actions at their address, in rows of the same time; none or a whole day is no time."""
    if len(rows) == 1 or time is None or str(time).endswith("T00:00:00+00:00"):
        return rows
    events = {row[ROW]: decode_events(row["events"])[0] for row in rows}
    addresses = list(dict.fromkeys(event.path for event in events.values()))
    return sorted(rows, key=lambda row: (addresses.index(events[row[ROW]].path), events[row[ROW]].kind not in VIEWS))


@lru_cache(4096)
def _priced_events(texts: str, currency: str) -> tuple[Event, ...]:
    """Decodes the events of a row, with a currency for prices without one."""
    events = decode_events(texts)
    if not currency or all(currency_of(offer.price) for event in events for offer in event.offers if offer.price):
        return events
    return tuple(replace(event, offers=tuple(_priced(offer, currency) for offer in event.offers)) for event in events)


def _priced(offer: Offer, currency: str) -> Offer:
    return replace(offer, price=with_currency(offer.price, currency)) if offer.price else offer
