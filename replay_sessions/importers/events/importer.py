"""Importer `events`: e-commerce events without pages, whose pages are rendered from what the events list.

    shop-r1 import events export.jsonl --mapping ga4_ecommerce --out STORE

    records -> events (mapping.py) -> the shop: menu and catalogue, counted over all events
            -> rows of a session, by its screens (visits.py) -> pages (screens.py) -> session (importers/sessions.py)

The log is read once and held packed, because the menu follows from all of it; pages are written part by part.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator
from functools import cached_property, lru_cache
from pathlib import Path

import msgspec

from replay_sessions.foundation.config_errors import toml_names
from replay_sessions.foundation.records import Record
from replay_sessions.importers.events.mapping import MAPPINGS, Event, Offer, load_event_mapping
from replay_sessions.importers.events.screens import RenderedPages, Shop
from replay_sessions.importers.events.visits import Visit
from replay_sessions.importers.importer import Imported, Importer, Part, find_files, table_of_names
from replay_sessions.importers.sessions import build_session
from replay_sessions.importers.sources.record_files import RECORD_ENDINGS, read_records
from replay_sessions.importers.sources.row_tables import ROW, Row, RowTable, build_table
from replay_sessions.store.manifest import Rejected

_HELP = """\
SOURCE is a table of events, CSV, TSV, JSON lines or parquet, or a folder of
them. No pages are needed: they are rendered from the products that the events
list. The mapping says where the fields stand:

{mappings}

A mapping of your own is a TOML file; docs/your_logs.md describes it.

  shop-r1 import events clicks.csv.gz \\
    --mapping clothing_shop --out stores/clothing
  shop-r1 check stores/clothing"""


class EventsOptions(Record):
    """Options of reading events.

    Attributes:
        mapping: Where the fields stand: one of those above, or a FILE.toml of your own.
    """

    mapping: str


class EventsImporter(Importer):
    """Reads events; see the module."""

    Options = EventsOptions
    batch_size = 4096

    def __init__(self, source: Path, options: EventsOptions) -> None:
        super().__init__(source, options)
        self._mapping = load_event_mapping(options.mapping)
        self.name = self._mapping.source
        self.settings["mapping"] = options.mapping
        files = find_files(source, RECORD_ENDINGS)
        records = (record for file in files for record in read_records(file, self._mapping.delimiter))
        self._table = build_table(records, source, self._mapping.rows)
        self.size = len(self._table)
        self._shop = self._build_shop(self._table)

    @classmethod
    def help(cls) -> str:
        mappings = {name: load_event_mapping(name).description for name in toml_names(MAPPINGS)}
        return _HELP.format(mappings=table_of_names(mappings))

    def split(self) -> Iterator[Part | Rejected]:
        yield from self._table.rejected
        counts: Counter[str] = Counter()
        for session in self._table.sessions():
            if isinstance(rows := self._visit(session), Rejected):
                yield rows
            else:
                counts.update(name for row in rows for name in _counted(row))
                yield Part(rows, len(session))
        self.report = _format_counts(counts, self._shop)

    def _visit(self, session: list[Row]) -> list[Row] | Rejected:
        """The actions of a session's events, each with its screen."""
        about = {name: session[0][name] for name in ("session_id", "user_id")}
        if len(session) < self._mapping.min_events:
            reason = f"{len(session)} events, and at least {self._mapping.min_events} were expected (min_events)"
            return Rejected(where=about["session_id"], reason=reason)
        events = ((row[ROW], row["timestamp"], event) for row in session for event in _decode(row["events"]))
        return Visit(self._shop, about).read(events)

    @cached_property
    def _pages(self) -> RenderedPages:
        return RenderedPages(self._shop)

    def read(self, source: list[Row], options: EventsOptions) -> Iterator[Imported]:
        return build_session(
            source,
            self._pages,
            source=self.name,
        )

    def _build_shop(self, table: RowTable) -> Shop:
        """The menu, of the most frequent pages, and where events list no offers, what was clicked on each page."""
        titles: defaultdict[str, Counter[str]] = defaultdict(Counter)
        clicks: defaultdict[str, Counter[Offer]] = defaultdict(Counter)
        for event in (event for events in table.values("events") for event in _decode(events)):
            if event.kind in ("page", "listing") and event.path:
                titles[event.path][event.title or event.path] += 1
            elif event.kind == "select_item" and self._mapping.event.items is None:
                clicks[event.path].update(event.offers)
        frequent = sorted(titles, key=lambda path: -titles[path].total())[: self._mapping.menu_links]
        return Shop(
            menu={path: titles[path].most_common(1)[0][0] for path in sorted(frequent)},
            catalogue={path: _most_clicked(offers, self._mapping.min_clicks) for path, offers in clicks.items()},
            has_quickview=any("quickview" in kinds for kinds in self._mapping.types.values()),
        )


def _most_clicked(offers: Counter[Offer], min_clicks: int) -> tuple[Offer, ...]:
    """The offers with enough clicks by their places, each as it was seen most often."""
    by_id: dict[str, Offer] = {}
    totals: Counter[str] = Counter()
    for offer, count in offers.most_common():
        by_id.setdefault(offer.id, offer)
        totals[offer.id] += count
    shown = [offer for offer in by_id.values() if totals[offer.id] >= min_clicks]
    return tuple(sorted(shown, key=lambda offer: (offer.position or 0, offer.id)))


@lru_cache(4096)
def _decode(events: str) -> tuple[Event, ...]:
    return msgspec.json.decode(events, type=tuple[Event, ...])


def _counted(row: Row) -> Iterator[str]:
    """Yields what the report counts of a row."""
    if row["kind"] in ("select_item", "quickview"):
        yield "clicks on the page" if row["type"] else "clicks elsewhere"
    if row["type"]:
        yield "inferred" if row.get("is_inferred") else "logged"


def _format_counts(counts: Counter[str], shop: Shop) -> list[str]:
    on_page, inferred = counts["clicks on the page"], counts["inferred"]
    clicks, actions = on_page + counts["clicks elsewhere"], inferred + counts["logged"]
    share = f" ({on_page / clicks:.1%})" if clicks else ""
    return [
        f"pages: written from the events, with a menu of {len(shop.menu)} links",
        f"clicks on products: {on_page:,} of {clicks:,}{share} are on the page before them; the rest is left out",
        f"inferred: {inferred:,} of {actions:,} actions are not in the log; the page after them is",
    ]
