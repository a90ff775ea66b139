"""Importer `raw`: a shop's own log, as raw pages and a table of actions, through the simplifier.

    visits/                        python -m replay_sessions import raw visits --recipe my_shop.toml --out stores/mine
      actions.csv                  python -m replay_sessions check stores/mine
      home.html  results.html.gz

One row an action; raw/rows.py lists the columns, docs/raw_logs.md works an example through. The table may also be one
of events of web analytics, read by a field mapping (raw/event_rows.py), and pages may be captured ones, HAR, WARC or
MHTML, found by address and time (raw/captured_pages.py):

    python -m replay_sessions import raw crawl.warc.gz --actions events --mapping ga4 --out stores/mine

Pages are simplified by the site's recipe, which also takes private data out of them; so it is of all else but ids. What
was acted on is given by a CSS selector, the element's id, text, address or its name in the simplified page
(raw/targets.py). An action whose page or element is not found is left out, counted and listed with the reason; the next
step's `gap` says so.
"""

from collections.abc import Iterator
from pathlib import Path
from textwrap import fill
from typing import Annotated, Any, ClassVar, Self

import msgspec
import tyro

from replay_sessions.errors import ImportFailed
from replay_sessions.importers.importer import Imported, Importer, Part, state_of_files
from replay_sessions.importers.mapped.field_mapping import load_any_mapping
from replay_sessions.importers.raw.captured_pages import AS_CAPTURED, CapturedPages, CaptureJoin, Joining
from replay_sessions.importers.raw.endings import NO_ENDINGS, Endings, endings_of
from replay_sessions.importers.raw.event_rows import find_event_files, read_events
from replay_sessions.importers.raw.rows import COLUMNS, REQUIRED_COLUMNS, ActionTable, Row, read_actions
from replay_sessions.importers.raw.steps import PageFolder, read_session
from replay_sessions.importers.sources.page_files import PAGE_LIST, find_page_files
from replay_sessions.simplify import load_recipe
from replay_sessions.store.file_names import check_name
from replay_sessions.store.manifest import SetAside

__all__ = ["RawImporter"]

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


class _Rows(msgspec.Struct, frozen=True):
    """Rows by session, and what of the table is no row."""

    sessions: list[list[Row]]
    set_aside: list[SetAside]


class RawOptions(Endings, frozen=True, kw_only=True):
    """How raw pages are read.

    Attributes:
        actions: The table; None: SOURCE/actions.csv, .tsv, .jsonl, also .gz, or .parquet. With a mapping it may be a
            folder of files.
        mapping: Where the columns stand in another log: ga4, snowplow, or a FILE.toml of your own.
        recipe: How the site's pages are simplified, a NAME or a FILE; None: it is found by the site.
        ignore_columns: Columns that are there and not wanted, as A,B.
        keep_private_data: Do not take names, addresses and numbers out.
        joining: How pages that were captured are found.
    """

    actions: Path | None = None
    mapping: str | None = None
    recipe: str | None = None
    ignore_columns: str = ""
    keep_private_data: bool = False
    joining: Annotated[Joining, tyro.conf.arg(name="")] = AS_CAPTURED


class RawImporter(Importer):
    """Reads raw pages and a table of actions; see the module."""

    Options: ClassVar[type[msgspec.Struct]] = RawOptions

    def __init__(
        self,
        source: Path,
        actions: Path | None = None,
        *,
        mapping: str | None = None,
        recipe: str | None = None,
        private_data: bool = True,
        ignored_columns: frozenset[str] = frozenset(),
        endings: Endings = NO_ENDINGS,
        joining: Joining = AS_CAPTURED,
    ) -> None:
        endings.check()
        joining.check()
        self.source = "raw"
        self.notes = []
        self._captures = find_page_files(source)
        self._root = source.absolute() if source.is_dir() else source.absolute().parent
        self._actions = (actions or _find_actions(source)).absolute()
        check_name(self._root)
        check_name(self._actions)
        self._ignored = ignored_columns
        self._mapping = load_any_mapping(mapping) if mapping else None
        if self._mapping and not self._captures and self._mapping.step.page is None:
            raise ImportFailed(
                f"mapping {mapping!r} finds pages by address and time, and '{source}' is a folder of HTML files that "
                f"tell neither: put a list of them beside them, {PAGE_LIST} with the columns file, url, timestamp"
            )
        table = self._table()  # read again for its parts: workers need not hold it
        self._rows = len(table)
        self._capture_bytes = sum(path.stat().st_size for path in self._captures)
        self.unit = "bytes" if self._captures else "actions"
        self.size = 2 * self._capture_bytes if self._captures else self._rows  # each is read twice
        self._recipe = load_recipe(recipe) if recipe else None
        self._private_data = private_data
        self.options = {"actions": self._actions.name, "recipe": recipe or "by site"}
        self.options["private_data"] = "removed" if private_data else "kept"
        self._endings = endings
        self._joining = joining
        self._joined: list[str] = []
        self.options |= {**({"mapping": mapping} if mapping else {}), **endings.told()}
        if self._captures:
            self.options |= {"pages": source.name, **joining.told()}
        elif joining != AS_CAPTURED:
            given = ", ".join(f"--{name.replace('_', '-')}" for name in joining.told())
            self.notes.append(f"{given}: of captured pages only; these are named by the table")
        if endings == NO_ENDINGS and not table.has_type("terminate"):
            self.notes.append(
                "no action is a terminate: --purchase-selector, --purchase-url, --idle-minutes and --terminate-at-end "
                "say where sessions end"
            )
        if not private_data:
            self.notes.append("private data stays in pages, typed text and rationales")

    @classmethod
    def from_options(cls, source: Path, options: RawOptions) -> Self:
        return cls(
            source,
            options.actions,
            mapping=options.mapping,
            recipe=options.recipe,
            private_data=not options.keep_private_data,
            ignored_columns=frozenset(filter(None, options.ignore_columns.split(","))),
            endings=endings_of(options),
            joining=options.joining,
        )

    @classmethod
    def help(cls) -> str:
        columns = {name + "*" * (name in REQUIRED_COLUMNS): text for name, text in COLUMNS.items()}
        lines = [
            fill(f"{name:14}{text}", 80, initial_indent="  ", subsequent_indent=" " * 16)
            for name, text in columns.items()
        ]
        return _HELP.format(columns="\n".join(lines))

    def state(self) -> str:
        tables = find_event_files(self._actions) if self._mapping else [self._actions]
        pages = self._captures if self._captures and not self._holds_lists() else self._root.rglob("*")
        return state_of_files(sorted([*tables, *(path for path in pages if path.is_file())]))

    def rules(self) -> Any:
        recipe = self._recipe.rules if self._recipe else None
        return (recipe, self._mapping) if self._mapping else recipe

    def report(self) -> list[str]:
        return self._joined

    def parts(self) -> Iterator[Part]:
        table = self._table()
        if table.set_aside:
            yield Part(content=_Rows([], table.set_aside), size=0)
        if self._captures:
            join = CaptureJoin(self._root, self._captures, self._joining)
            for size, set_aside in join.read_captures(table):
                yield Part(content=_Rows([], set_aside), size=size)
            table = join.join(table)
            self._joined = join.report()
        sessions: list[list[Row]] = []
        rows = 0
        for session in table.sessions():
            sessions.append(session)
            rows += len(session)
            if rows >= _PART_ROWS:
                yield Part(content=_Rows(sessions, []), size=self._size(rows))
                sessions, rows = [], 0
        if sessions:
            yield Part(content=_Rows(sessions, []), size=self._size(rows))

    def read(self, part: Part) -> Iterator[Imported]:
        content: _Rows = part.content
        yield from content.set_aside
        kind = CapturedPages if self._captures else PageFolder
        pages = kind(self._root, self._recipe, private_data=self._private_data)
        for rows in content.sessions:
            yield from read_session(
                rows, pages, self.source, self._actions.name, self._endings, longest_bytes=self.longest_session_bytes
            )

    def _table(self) -> ActionTable:
        if self._mapping:
            return read_events(self._actions, self._mapping)
        return read_actions(self._actions, self._ignored, are_captured=bool(self._captures))

    def _size(self, rows: int) -> int:
        """How much of the source some rows stand for."""
        return self._capture_bytes * rows // self._rows if self._captures else rows

    def _holds_lists(self) -> bool:
        return any(path.name == PAGE_LIST for path in self._captures)


def _find_actions(folder: Path) -> Path:
    found = [folder / name for name in _ACTION_FILES if (folder / name).is_file()]
    if not found:
        raise ImportFailed(
            f"'{folder}' holds no table of actions ({', '.join(_ACTION_FILES[:3])}): give it by --actions FILE; "
            "`import raw --help` says what stands in it"
        )
    return found[0]
