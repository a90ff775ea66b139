"""Importer `events`: e-commerce events without pages, whose pages are rendered from what the events list.

    python -m replay_sessions import events export.jsonl --mapping ga4_ecommerce --out STORE

    records -> events (mapping.py) -> the shop: menu and catalogue, counted over all events
            -> rows of a session, by its screens (visits.py) -> pages (screens.py) -> session (importers/sessions.py)

The log is read once and held packed, because the menu follows from all of it; pages are written part by part.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from replay_sessions.foundation.durable_files import check_name
from replay_sessions.foundation.errors import ImportFailed
from replay_sessions.importers.events.mapping import (
    Event,
    Offer,
    built_in_event_mappings,
    load_event_mapping,
)
from replay_sessions.importers.events.screens import RenderedPages, Shop, read_templates
from replay_sessions.importers.events.visits import Visit
from replay_sessions.importers.importer import Imported, Importer, Part, gather, table_of_names
from replay_sessions.importers.logged_pages import Row
from replay_sessions.importers.raw.action_table import ROW, ActionTable, build_table, read_rows, without_endless
from replay_sessions.importers.raw.event_rows import find_event_files
from replay_sessions.importers.sessions import build_session
from replay_sessions.store.manifest import Rejected

_PART_EVENTS = 4096
_LONGEST_RECORD_BYTES = 64 << 20

_HELP = """\
SOURCE is a table of events, CSV, TSV, JSON lines or parquet, or a folder of them.
Nothing of the pages need be there: they are written from the products that the events
list. The mapping says where the fields stand:

{mappings}

A mapping of your own is a TOML file; docs/your_logs.md describes it.

  python -m replay_sessions import events clicks.csv.gz --mapping clothing_shop \\
    --out stores/clothing
  python -m replay_sessions check stores/clothing"""


class EventsOptions(msgspec.Struct, frozen=True, kw_only=True):
    """How events are read.

    Attributes:
        mapping: Where the fields stand: one of those above, or a FILE.toml of your own.
    """

    mapping: str


class EventsImporter(Importer):
    """Reads events; see the module."""

    Options = EventsOptions
    unit = "actions"

    def __init__(self, source: Path, options: EventsOptions) -> None:
        check_name(source)
        self._mapping = load_event_mapping(options.mapping)
        self._templates = read_templates(self._mapping.layout)
        self.source = self._mapping.source
        self.files = find_event_files(source)
        self.options = {"mapping": options.mapping}
        self.rules = self._mapping, self._templates
        self.notes = []
        self._table: ActionTable | None = self._read(source)
        self.size = len(self._table)
        self._shop = self._build_shop(self._table)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_table": None}  # workers get their rows with each part

    @classmethod
    def help(cls) -> str:
        mappings = {name: load_event_mapping(name).description for name in built_in_event_mappings()}
        return _HELP.format(mappings=table_of_names(mappings))

    def parts(self) -> Iterator[Part]:
        assert self._table is not None
        if self._table.rejected:
            yield Part(self._table.rejected, 0)
        counts: Counter[str] = Counter()
        too_short = self._mapping.min_events
        for part in gather((Part(rows, len(rows), len(rows)) for rows in self._table.sessions()), _PART_EVENTS):
            content: list[Any] = []
            for session in part.content:
                session_id, user_id = session[0]["session_id"], session[0]["user_id"]
                if len(session) < too_short:
                    reason = f"{len(session)} events, and at least {too_short} were expected (min_events)"
                    content.append(Rejected(where=session_id, reason=reason))
                    continue
                visit = Visit(self._shop, {"session_id": session_id, "user_id": user_id})
                rows = visit.read((row[ROW], event) for row in session for event in _decode(row["events"]))
                counts.update(_count(rows))
                content.append(rows)
            yield Part(content, part.size)
        self.report = _format_counts(counts, self._shop)

    def read(self, part: Part) -> Iterator[Imported]:
        pages = RenderedPages(self._shop)  # sessions of a part often show the same pages
        for unit in part.content:
            yield from (unit,) if isinstance(unit, Rejected) else self._build(unit, pages)

    def _build(self, rows: list[Row], pages: RenderedPages) -> Iterator[Imported]:
        return build_session(
            rows,
            pages,
            source=self.source,
            longest_bytes=self.longest_session_bytes,
            row_prefix=f"{self.files[0].name}:",
        )

    def _read(self, source: Path) -> ActionTable:
        """All events of the log, packed, in the order of time within each session."""
        rejected: list[Rejected] = []
        records = (
            (number if path == source.absolute() else f"{path.name}:{number}", record)
            for path in self.files
            for number, line in read_rows(path, "events", _LONGEST_RECORD_BYTES, delimiter=self._mapping.delimiter)
            for number, record in self._mapping.split(number, line)
        )
        table = build_table(records, source, rejected, self._mapping.row)
        if not table.num_rows:
            first = f", the first for: {rejected[0].where}: {rejected[0].reason}" if rejected else ""
            raise ImportFailed(f"'{source}' holds no event that the mapping can read{first}")
        return without_endless(table, rejected, source)

    def _build_shop(self, table: ActionTable) -> Shop:
        """The menu, of the most frequent pages, and where events list no offers, what was clicked on each page."""
        views: Counter[str] = Counter()
        titles: defaultdict[str, Counter[str]] = defaultdict(Counter)
        clicks: defaultdict[str, Counter[Offer]] = defaultdict(Counter)
        for batch in table.batches(("events",)):
            for event in (event for row in batch for event in _decode(row["events"])):
                if event.kind in ("page", "listing") and event.path:
                    views[event.path] += 1
                    titles[event.path][event.title or event.path] += 1
                elif event.kind == "select_item" and self._mapping.event.items is None:
                    clicks[event.path].update(event.offers)
        menu = {path: titles[path].most_common(1)[0][0] for path, _ in views.most_common(self._mapping.menu_links)}
        return Shop(
            menu=dict(sorted(menu.items())),
            catalogue={path: _most_clicked(offers, self._mapping.min_clicks) for path, offers in clicks.items()},
            has_quickview=any("quickview" in kinds for kinds in self._mapping.types.values()),
            templates=self._templates,
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


def _decode(events: str) -> list[Event]:
    return msgspec.json.decode(events, type=list[Event])


def _count(rows: list[Row]) -> Iterator[str]:
    """What the report counts of the rows of a session."""
    for row in rows:
        if row["kind"] in ("select_item", "quickview"):
            yield "clicks"
            yield "clicks on the page" if row["type"] else "clicks elsewhere"
        if row.get("inferred"):
            yield "inferred"
        if row["type"]:
            yield "actions"


def _format_counts(counts: Counter[str], shop: Shop) -> list[str]:
    clicks, on_page = counts["clicks"], counts["clicks on the page"]
    share = f" ({on_page / clicks:.1%})" if clicks else ""
    return [
        f"pages: written from the events, with a menu of {len(shop.menu)} links",
        f"clicks on products: {on_page:,} of {clicks:,}{share} are on the page before them; the rest is left out",
        f"inferred: {counts['inferred']:,} of {counts['actions']:,} actions are not in the log; the page after them is",
    ]
