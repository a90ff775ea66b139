"""Importer `raw`: a shop's own log, as raw pages and a table of actions, through the simplifier.

    visits/                        python -m replay_sessions import raw visits --recipe my_shop.toml --out stores/mine
      actions.csv                  python -m replay_sessions check stores/mine
      home.html  results.html.gz

One row an action; raw_rows.py lists the columns, docs/raw_logs.md works an example through. Pages are simplified by the
site's recipe, which also takes private data out of them; so it is of all else but ids. What was acted
on is given by a CSS selector, the element's text or its name in the simplified page (raw_targets.py). An action whose
page or element is not found is left out, counted and listed with the reason; the next step's `gap` says so.
"""

from collections.abc import Iterator
from pathlib import Path
from textwrap import fill
from typing import ClassVar, Self

import msgspec

from replay_sessions.errors import ImportFailed
from replay_sessions.importers.importer import Imported, Importer, Part, state_of_files
from replay_sessions.importers.raw.endings import NO_ENDINGS, Endings, endings_of
from replay_sessions.importers.raw.rows import COLUMNS, REQUIRED_COLUMNS, Row, read_actions
from replay_sessions.importers.raw.steps import PageFolder, read_session
from replay_sessions.simplify import load_recipe
from replay_sessions.simplify.recipes import Rule
from replay_sessions.store.file_names import check_name
from replay_sessions.store.manifest import SetAside

__all__ = ["RawImporter"]

_ACTION_FILES = ("actions.csv", "actions.tsv", "actions.jsonl", "actions.csv.gz", "actions.jsonl.gz")
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
        actions: The table; None: SOURCE/actions.csv, .tsv or .jsonl, also .gz.
        recipe: How the site's pages are simplified, a NAME or a FILE; None: it is found by the site.
        ignore_columns: Columns that are there and not wanted, as A,B.
        keep_private_data: Do not take names, addresses and numbers out.
    """

    actions: Path | None = None
    recipe: str | None = None
    ignore_columns: str = ""
    keep_private_data: bool = False


class RawImporter(Importer):
    """Reads raw pages and a table of actions; see the module."""

    Options: ClassVar[type[msgspec.Struct]] = RawOptions

    def __init__(
        self,
        folder: Path,
        actions: Path | None = None,
        *,
        recipe: str | None = None,
        private_data: bool = True,
        ignored_columns: frozenset[str] = frozenset(),
        endings: Endings = NO_ENDINGS,
    ) -> None:
        if not folder.is_dir():
            raise ImportFailed(f"there is no folder '{folder}', and a folder of pages was expected")
        self.source = "raw"
        self.notes = []
        self.unit = "actions"
        self._folder = folder.absolute()
        self._actions = actions or _find_actions(folder)
        check_name(self._folder)
        check_name(self._actions)
        self._ignored = ignored_columns
        table = read_actions(self._actions, self._ignored)  # read again for its parts: workers need not hold it
        self.size = len(table)
        self._recipe = load_recipe(recipe) if recipe else None
        self._private_data = private_data
        self.options = {"actions": self._actions.name, "recipe": recipe or "by site"}
        self.options["private_data"] = "removed" if private_data else "kept"
        endings.check()
        self._endings = endings
        self.options |= endings.told()
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
            recipe=options.recipe,
            private_data=not options.keep_private_data,
            ignored_columns=frozenset(filter(None, options.ignore_columns.split(","))),
            endings=endings_of(options),
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
        return state_of_files(sorted([self._actions, *(path for path in self._folder.rglob("*") if path.is_file())]))

    def rules(self) -> tuple[Rule, ...] | None:
        return self._recipe.rules if self._recipe else None

    def parts(self) -> Iterator[Part]:
        table = read_actions(self._actions, self._ignored)
        if table.set_aside:
            yield Part(content=_Rows([], table.set_aside), size=0)
        sessions: list[list[Row]] = []
        rows = 0
        for session in table.sessions():
            sessions.append(session)
            rows += len(session)
            if rows >= _PART_ROWS:
                yield Part(content=_Rows(sessions, []), size=rows)
                sessions, rows = [], 0
        if sessions:
            yield Part(content=_Rows(sessions, []), size=rows)

    def read(self, part: Part) -> Iterator[Imported]:
        content: _Rows = part.content
        yield from content.set_aside
        pages = PageFolder(self._folder, self._recipe, private_data=self._private_data)
        for rows in content.sessions:
            yield from read_session(
                rows, pages, self.source, self._actions.name, self._endings, longest_bytes=self.longest_session_bytes
            )


def _find_actions(folder: Path) -> Path:
    found = [folder / name for name in _ACTION_FILES if (folder / name).is_file()]
    if not found:
        raise ImportFailed(
            f"'{folder}' holds no table of actions ({', '.join(_ACTION_FILES[:3])}): give it by --actions FILE; "
            "`import raw --help` says what stands in it"
        )
    return found[0]
