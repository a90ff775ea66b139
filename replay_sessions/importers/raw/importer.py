"""Importer `raw`: a shop's own log, as raw pages and a table of actions, through the simplifier.

    visits/                        python -m replay_sessions import raw visits --recipe my_shop.toml --out stores/mine
      actions.csv                  python -m replay_sessions check stores/mine
      home.html  results.html.gz

One row an action; raw/action_table.py lists the columns, docs/raw_logs.md works an example through. The table may also
be one of events of web analytics, read by a field mapping (raw/event_rows.py), and pages may be captured ones, HAR,
WARC or MHTML, found by address and time (raw/captured_pages.py):

    python -m replay_sessions import raw crawl.warc.gz --actions events --mapping ga4 --out stores/mine

Pages are simplified by the site's recipe, which also takes private data out of them; so it is of all else but ids. What
was acted on is given by a CSS selector, the element's id, text, address or its name in the simplified page
(logged_pages.py). An action whose page or element is not found is left out, counted and listed with the reason; the
next step's `gap` says so.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import tyro

from replay_sessions.foundation.durable_files import check_name
from replay_sessions.foundation.errors import ImportFailed
from replay_sessions.importers.importer import Imported, Importer, Part, changed_options, gather, table_of_names
from replay_sessions.importers.mapped.field_mapping import load_mapping
from replay_sessions.importers.raw.action_table import COLUMNS, REQUIRED_COLUMNS, read_actions
from replay_sessions.importers.raw.captured_pages import (
    CapturedPages,
    CaptureJoin,
    Joining,
    PageFolder,
    find_page_files,
)
from replay_sessions.importers.raw.endings import Endings, ended_sessions
from replay_sessions.importers.raw.event_rows import find_event_files, read_events
from replay_sessions.importers.raw.page_files import PAGE_LIST
from replay_sessions.importers.sessions import build_session
from replay_sessions.importers.sources.join_keys import in_time_order
from replay_sessions.simplify import load_recipe
from replay_sessions.simplify.media import ViewportName
from replay_sessions.store.manifest import Rejected

_ACTION_FILES = (
    "actions.csv", "actions.tsv", "actions.jsonl", "actions.csv.gz", "actions.jsonl.gz", "actions.parquet",
)  # fmt: skip
_PART_ROWS = 64

_HELP = """\
SOURCE is a folder of pages as a browser held them, with a table of what was done
on them:

  visits/actions.csv
    session_id,user_id,page,type,selector,element_text,text
    v1,u1,home.html,type_and_submit,#search,,red kettle
    v1,u1,results.html,click,,Red kettle 1.7 l,
    v1,u1,product.html,terminate,,,

  python -m replay_sessions import raw visits --out stores/mine
  python -m replay_sessions check stores/mine

Pages may also be captured ones, .har, .warc or .mhtml, a file or a folder of them, and
the table one of events of web analytics. A page is then the newest that was captured
at the row's url before its timestamp:

  python -m replay_sessions import raw visit.har --actions done.csv --out mine
  python -m replay_sessions import raw crawl.warc.gz --actions events \\
    --mapping ga4 --out stores/mine

columns, in any order (those with * must be there; a cell may be empty):
{columns}

How pages are simplified and named is up to a recipe; see what it
makes of one by

  python -m replay_sessions show visits/home.html --recipe FILE

docs/raw_logs.md goes through all of it."""


class RawOptions(Endings, frozen=True, kw_only=True):
    """How raw pages are read.

    Attributes:
        actions: The table; None: SOURCE/actions.csv, .tsv, .jsonl, also .gz, or .parquet. With a mapping it may be a
            folder of files.
        mapping: Where the columns stand in another log: ga4, snowplow, or a FILE.toml of your own.
        recipe: How the site's pages are simplified, a NAME or a FILE; None: it is found by the site.
        viewport: The window that the pages' styles are read for.
        ignore_columns: Columns that are there and not wanted, as A,B.
        keep_private_data: Do not take names, addresses and numbers out.
        joining: How pages that were captured are found.
    """

    actions: Path | None = None
    mapping: str | None = None
    recipe: str | None = None
    viewport: ViewportName = "desktop"
    ignore_columns: str = ""
    keep_private_data: bool = False
    joining: Annotated[Joining, tyro.conf.arg(name="")] = Joining()


class RawImporter(Importer):
    """Reads raw pages and a table of actions; see the module."""

    Options = RawOptions

    def __init__(self, source: Path, options: RawOptions = RawOptions()) -> None:  # noqa: B008 - it is frozen
        self.source = "raw"
        self._importer_options = options
        self._captures = find_page_files(source)
        self._root = source.absolute() if source.is_dir() else source.absolute().parent
        self._actions = (options.actions or _find_actions(source)).absolute()
        check_name(self._root)
        check_name(self._actions)
        name = options.mapping
        self._mapping = mapping = load_mapping(name, has_pages=False) if name else None
        if mapping and not self._captures and mapping.step.page is None:
            raise ImportFailed(
                f"mapping {name!r} finds pages by address and time, and '{source}' is a folder of HTML files that "
                f"tell neither: put a list of them beside them, {PAGE_LIST} with the columns file, url, timestamp"
            )
        ignored = frozenset(filter(None, options.ignore_columns.split(",")))
        are_captured = bool(self._captures)
        self._table = (
            read_events(self._actions, mapping)
            if mapping
            else read_actions(self._actions, ignored, are_captured=are_captured)
        )
        self._capture_bytes = sum(path.stat().st_size for path in self._captures)
        self.unit = "bytes" if are_captured else "actions"
        self.size = 2 * self._capture_bytes if are_captured else len(self._table)  # each is read twice
        self._recipe = load_recipe(options.recipe) if options.recipe else None
        self.rules = self._recipe and self._recipe.rules, mapping
        endings, joining = changed_options(options, Endings), changed_options(options.joining, Joining)
        described = {
            "actions": self._actions.name,
            "recipe": options.recipe or "by site",
            "private_data": "kept" if options.keep_private_data else "removed",
            "mapping": name,
            "viewport": options.viewport if options.viewport != "desktop" else None,
            **endings,
            **({"pages": source.name, **joining} if are_captured else {}),
        }
        self.options = {key: str(value) for key, value in described.items() if value is not None}
        self.notes = []
        if joining and not are_captured:
            flags = ", ".join(f"--{option.replace('_', '-')}" for option in joining)
            self.notes.append(f"{flags}: of captured pages only; these are named by the table")
        if not endings and not self._table.has_type("terminate"):
            self.notes.append(
                "no action is a terminate: --purchase-selector, --purchase-url, --idle-minutes and --terminate-at-end "
                "say where sessions end"
            )
        if options.keep_private_data:
            self.notes.append("private data stays in pages, typed text and rationales")

    @classmethod
    def help(cls) -> str:
        columns = {name + "*" * (name in REQUIRED_COLUMNS): text for name, text in COLUMNS.items()}
        return _HELP.format(columns=table_of_names(columns))

    def state(self) -> str:
        has_lists = any(path.name == PAGE_LIST for path in self._captures)  # of pages in other files
        tables = find_event_files(self._actions) if self._mapping else [self._actions]
        pages = self._root.rglob("*") if has_lists or not self._captures else self._captures
        self.files = sorted([*tables, *(path for path in pages if path.is_file())])
        return super().state()

    def parts(self) -> Iterator[Part]:
        table = self._table
        if table.rejected:
            yield Part(table.rejected, 0)
        if self._captures:
            join = CaptureJoin(self._root, self._captures, self._importer_options.joining, table)
            yield from join.read_captures()
            table = join.join()
            self.report = join.report()
        share = self._capture_bytes / len(table) if self._captures and len(table) else 1
        done = 0
        for part in gather((Part(rows, len(rows)) for rows in table.sessions()), _PART_ROWS):
            yield Part(part.content, int((done + part.size) * share) - int(done * share))
            done += part.size

    def read(self, part: Part) -> Iterator[Imported]:
        options = self._importer_options
        pages = (CapturedPages if self._captures else PageFolder)(
            self._root,
            self._recipe,
            private_data=not options.keep_private_data,
            purchase_selector=options.purchase_selector,
            viewport=options.viewport,
        )
        for unit in part.content:
            if isinstance(unit, Rejected):
                yield unit
                continue
            for rows in ended_sessions(in_time_order(unit, lambda row: row.get("timestamp")), options):
                yield from build_session(
                    rows,
                    pages,
                    source=self.source,
                    longest_bytes=self.longest_session_bytes,
                    row_prefix=f"{self._actions.name}:",
                )


def _find_actions(folder: Path) -> Path:
    path = next((folder / name for name in _ACTION_FILES if (folder / name).is_file()), None)
    if path is None:
        raise ImportFailed(
            f"'{folder}' holds no table of actions ({', '.join(_ACTION_FILES[:3])}): give it by --actions FILE; "
            "`import raw --help-all` says what stands in it"
        )
    return path
