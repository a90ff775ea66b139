"""The importer `raw`: reads a shop's own log, raw pages and a table of actions, and simplifies the pages.

    visits/                        shop-r1 import raw visits --recipe my_shop.toml --out stores/mine
      actions.csv                  shop-r1 check stores/mine
      home.html  results.html.gz

Each row is an action; raw/action_table.py lists the columns, and docs/raw_logs.md explains an example.

Pages are simplified by the site's recipe. Private data is removed from them and from everything else except ids. A CSS
selector, or the element's id, text, address or name in the simplified page, tells what was acted on (logged_pages.py).
An action is left out, counted and listed with the reason if its page or element is not found. The next step's `gap`
counts it.
"""

from collections.abc import Iterator
from functools import cached_property, lru_cache
from pathlib import Path

from replay_sessions.foundation.durable_files import check_name
from replay_sessions.foundation.errors import BadSession, ImportFailed
from replay_sessions.foundation.help_text import format_choices
from replay_sessions.foundation.times import in_time_order, iso_time, seconds
from replay_sessions.importers.importer import Importer, Part, Read, changed_options
from replay_sessions.importers.logged_pages import CACHED_PAGES, Pages, RawPage, Unresolved, read_saved_page
from replay_sessions.importers.raw.action_table import COLUMNS, REQUIRED_COLUMNS, read_actions
from replay_sessions.importers.raw.endings import Endings, ended_sessions
from replay_sessions.importers.sessions import build_session
from replay_sessions.importers.sources.row_tables import Row
from replay_sessions.simplify import load_recipe
from replay_sessions.simplify.media import ViewportName

_ACTION_FILES = (
    "actions.csv", "actions.tsv", "actions.jsonl", "actions.csv.gz", "actions.jsonl.gz", "actions.parquet",
)  # fmt: skip
_HELP = """\
SOURCE is a folder of pages as a browser held them, with a table of what was done
on them:

  visits/actions.csv
    session_id,user_id,page,type,selector,element_text,text
    v1,u1,home.html,type_and_submit,#search,,red kettle
    v1,u1,results.html,click,,Red kettle 1.7 l,
    v1,u1,product.html,terminate,,,

  shop-r1 import raw visits --out stores/mine
  shop-r1 check stores/mine

columns, in any order (those with * must be there; a cell may be empty):
{columns}
How pages are simplified and named is up to a recipe; see what it
makes of one by

  shop-r1 show visits/home.html --recipe FILE

docs/raw_logs.md goes through all of it."""


class RawOptions(Endings):
    """The options of the importer `raw`.

    Attributes:
        actions: The table; None: SOURCE/actions.csv, .tsv, .jsonl, also .gz, or .parquet.
        recipe: Recipe for the site's pages, a NAME or a FILE; None: it is chosen by the site.
        viewport: Size of the window for which the pages' styles are read.
        ignore_columns: Columns of the table to ignore, as A,B.
        keep_private_data: Do not remove private values.
    """

    actions: Path | None = None
    recipe: str | None = None
    viewport: ViewportName = "desktop"
    ignore_columns: str = ""
    keep_private_data: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.recipe is not None:
            load_recipe(self.recipe)  # reports an unknown name early


class RawImporter(Importer):
    """An importer of raw pages and a table of actions; see the module."""

    Options = RawOptions
    name = "raw"
    batch_size = 64

    def __init__(self, source: Path, options: RawOptions | None = None) -> None:
        super().__init__(source, options)
        options = self.options
        if not source.is_dir():
            raise ImportFailed(f"'{source}' is no folder, and one of pages was expected")
        self._root = source.absolute()
        self._actions = (options.actions or _find_actions(source)).absolute()
        check_name(self._root)
        check_name(self._actions)
        self._table = read_actions(self._actions, frozenset(filter(None, options.ignore_columns.split(","))))
        self.size = len(self._table)
        times = self._table.values("timestamp") if "timestamp" in self._table.columns else []
        if unread := [time for time in times if time and seconds(time) is None]:
            self.warnings.append(
                f"{len(unread):,} timestamps cannot be read, such as {unread[0]!r}: ISO 8601 or a number was expected; "
                "these rows stay in file order, and no pause is found at them"
            )
        endings = changed_options(options, Endings)
        described = {
            "actions": self._actions.name,
            "recipe": options.recipe or "by site",
            "private_data": "none" if options.keep_private_data else "patterns",
            "viewport": options.viewport if options.viewport != "desktop" else None,
            **endings,
        }
        self.settings |= {key: str(value) for key, value in described.items() if value is not None}
        if not endings and "terminate" not in self._table.values("type"):
            self.notes.append(
                "no action is a terminate: --purchase-selector, --purchase-url, --idle-minutes and --terminate-at-end "
                "say where sessions end"
            )
        if options.keep_private_data:
            self.notes.append("private data stays in pages, typed text and rationales")

    @classmethod
    def help(cls) -> str:
        columns = {name + "*" * (name in REQUIRED_COLUMNS): text for name, text in COLUMNS.items()}
        return _HELP.format(columns=format_choices(columns))

    @cached_property
    def _pages(self) -> "PageFolder":
        return PageFolder(self._root, self.options)

    def split(self) -> Iterator[Part | Read]:
        yield Read(rejected=self._table.rejected)
        yield from (Part(rows, len(rows), self._actions) for rows in self._table.sessions())

    def read(self, source: list[Row], options: RawOptions) -> Iterator[Read]:
        dated = [{**row, "timestamp": iso_time(row.get("timestamp"))} for row in source]
        for rows in ended_sessions(in_time_order(dated, lambda row: row["timestamp"]), options):
            yield build_session(rows, self._pages, source=self.name)


def _find_actions(folder: Path) -> Path:
    path = next((folder / name for name in _ACTION_FILES if (folder / name).is_file()), None)
    if path is None:
        raise ImportFailed(
            f"'{folder}' holds no table of actions ({', '.join(_ACTION_FILES[:3])}): give it by --actions FILE; "
            "`import raw --help-all` says what stands in it"
        )
    return path


class PageFolder(Pages):
    """The pages of a raw log by file name; the last few are cached in simplified form."""

    def __init__(self, folder: Path, options: RawOptions) -> None:
        self.removes_private_data = not options.keep_private_data
        self._folder = folder
        self._options = options
        self._recipe = load_recipe(options.recipe) if options.recipe else None
        self._cached_page = lru_cache(CACHED_PAGES)(self._read_page)

    def page(self, row: Row) -> RawPage:
        return self._cached_page(row["page"] or "")

    def is_purchase(self, row: Row, page: RawPage, name: str) -> bool:
        selector = self._options.purchase_selector
        return selector is not None and page.is_among(selector, name)

    def _read_page(self, file: str) -> RawPage:
        content, viewport = read_saved_page(self._folder, file), self._options.viewport
        try:
            return RawPage(content, self._recipe, private_data=self.removes_private_data, viewport=viewport)
        except BadSession as error:
            raise Unresolved(f"page '{file}': {error}") from error
