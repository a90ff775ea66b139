"""The importer `opera`: OPeRA (arXiv 2506.05606), people shopping on Amazon, from a local copy or the hub.

    shop-r1 import opera OPeRA --out STORE                         the filtered version
    shop-r1 import opera OPeRA --version full --split-by official --out STORE
    shop-r1 import opera NEU-HAI/OPeRA --out STORE                 fetched, at a pinned revision

It joins users, sessions and actions: tables.py finds the rows of each session, and builds personas from surveys and
interviews. Every session has its official split, which `--split-by official` uses. The official splits share no
sessions but share users (12 of the 15 test users are in train as well), so the default splits by user.

    click                 a click; semantic_id is the name, verbatim, and click_type is kept
    input                 typed and not known to be submitted, because the log does not say that it was sent
    terminate             terminate; the full version logs none
    scroll                a scroll; of scrolls without another event between them the first stays, with its page, and
                          Step.merged counts the others
    navigation, tab_activate (also written tabActivate)    no action: left out, counted, Step.gap counts it

`simplified_html` is the page before the action. `simplified_html_new_page` is not needed, because the next action has
its own page. A null semantic_id becomes an empty name and a null page an empty page: the step is still scored by its
type, and `check` warns of it. Texts such as "nan" and "null", which CSV files and pandas leave in place of nothing, are
missing values too, and are counted. `input_text` stays, because a shopper can type them, and so does a name that an
element of the page has.
"""

from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from replay_sessions.foundation.times import in_time_order
from replay_sessions.importers.hub.download import fetch
from replay_sessions.importers.importer import TOO_LONG, Importer, Part, Read, SessionRows
from replay_sessions.importers.logged_pages import InlinePages, PageOptions
from replay_sessions.importers.opera.tables import (
    OperaSession,
    OperaVersion,
    RowGroup,
    find_sessions,
    find_tables,
    missing_columns,
)
from replay_sessions.importers.sessions import build_session, number_actions
from replay_sessions.importers.sources.record_files import ParquetSource
from replay_sessions.importers.sources.row_tables import Row
from replay_sessions.store.manifest import Rejected

ActionRow = dict[str, str | None]

_COLUMNS = [
    "session_id", "timestamp", "action_type", "click_type", "semantic_id", "url", "simplified_html", "rationale",
    "input_text",
]  # fmt: skip
_MAY_BE_MISSING = ("click_type", "semantic_id", "url", "simplified_html", "rationale")
_TYPES = ("click", "input", "terminate", "scroll")
_MERGED = "a scroll directly after a scroll, merged into it"
HUB_ID = "NEU-HAI/OPeRA"
REVISION = "6f26a2c5cc69084f1714e39db9776e61791344d6"  # as cited by others; this project could not fetch it itself
_PART_ROWS = 256  # a median page has 100 kB, and the longest 600 kB

_HELP = f"""\
  shop-r1 import opera OPeRA --out stores/opera
  shop-r1 import opera {HUB_ID} --out stores/opera

SOURCE is a folder in OPeRA's own layout, OPeRA_filtered/action/train-*.parquet and so
on, or its id on the hub, which needs pip install 'shop-r1[hub]' and a network. Where
there is none, fetch it elsewhere and copy the folder:

  hf download {HUB_ID} --repo-type dataset --local-dir OPeRA \\
    --revision {REVISION} \\
    --include 'OPeRA_filtered/*/*.parquet'"""


class OperaOptions(PageOptions):
    """The options of the importer `opera`.

    Attributes:
        version: full also logs scrolls, which are actions, consecutive ones merged, and navigation and tabs, which are
            left out and counted, also in Step.gap.
        revision: The commit of the hub's data.
    """

    version: OperaVersion = "filtered"
    revision: str = REVISION


class OperaImporter(Importer):
    """An importer of OPeRA; see the module."""

    Options = OperaOptions
    name = "opera"
    help_text = _HELP
    batch_size = 1  # a part is large enough

    def __init__(self, source: Path, options: OperaOptions | None = None) -> None:
        super().__init__(source, options)
        options = self.options
        version = options.version
        self.settings |= {
            "version": version,
            **options.described(),
        }
        # The screenshots are left out, because they have tens of gigabytes.
        patterns = [f"OPeRA_{version}/{table}/*" for table in ("action", "session", "user")]
        folder = fetch(source, options.revision, patterns)
        self.settings["source"] = folder.name
        self._tables = find_tables(folder.absolute(), version)  # absolute, because other machines may read it
        if not self._tables["user"]:
            self.notes.append("no user table was found: sessions come without personas")
        if not self._tables["session"]:
            self.notes.append("no session table was found: users are read from the sessions' ids")

    def split(self) -> Iterator[Part | Read]:
        entries, others = find_sessions(self._tables)
        self.size = sum(entry.rows for entry in entries)
        sessions: list[OperaSession] = []
        for number, entry in enumerate(entries, start=1):
            sessions.append(entry)
            if (rows := sum(entry.rows for entry in sessions)) >= _PART_ROWS or number == len(entries):
                yield Part(sessions, rows, sessions[0].row_groups[0][0])
                sessions = []
        yield others

    def read(self, source: list[OperaSession], options: OperaOptions) -> Iterator[Read]:
        """Reads several sessions together, because they may share row groups."""
        for entry, session in zip(source, _read_rows(source), strict=True):
            if session.is_too_long:
                yield Read(rejected=[Rejected(where=entry.session_id, reason=TOO_LONG)])
                continue
            rows: list[Row] = []
            changed_values: list[str] = []
            for row in in_time_order(session.rows, lambda row: row["timestamp"]):
                missing = missing_columns(row, _MAY_BE_MISSING)
                if f'name="{row["semantic_id"]}"' in (row["simplified_html"] or ""):
                    missing.pop("semantic_id", None)
                changed_values += missing.values()
                rows.append(_row(row | dict.fromkeys(missing), entry))
                if rows[-1]["type"] == "scroll" and len(rows) > 1 and rows[-2]["type"] == "scroll":
                    changed_values.append(_MERGED)
                    _merge(rows[-2], rows.pop())
            read = build_session(
                number_actions(rows),
                InlinePages(options),
                source=self.name,
                row_prefix=f"{entry.session_id}, step ",
                persona=entry.persona,
            )
            read.changed_values = changed_values
            yield read


def _read_rows(entries: list[OperaSession]) -> list[SessionRows]:
    """Returns the action rows of each session, in the order of the files."""
    sessions = [SessionRows() for _ in entries]
    by_group: defaultdict[RowGroup, dict[str | None, SessionRows]] = defaultdict(dict)
    for entry, session in zip(entries, sessions, strict=True):
        for group in entry.row_groups:
            by_group[group][entry.session_id] = session
    for file, number in sorted(by_group):
        for row in ParquetSource(file).texts(_COLUMNS, [number]):
            if (session_rows := by_group[file, number].get(row["session_id"])) is not None:
                session_rows.add(row, sum(len(text) for text in row.values() if text))
    return sessions


def _merge(scroll: Row, later: Row) -> None:
    """Merges a scroll into the scroll directly before it, whose page and time stay."""
    scroll["merged"] = scroll.get("merged", 0) + 1
    scroll["rationale"] = scroll["rationale"] or later["rationale"]


def _row(row: ActionRow, entry: OperaSession) -> Row:
    """Converts an action to a row of the common form, without empty values."""
    event = row["action_type"]
    name = row["semantic_id"] or ""
    return {
        "session_id": entry.session_id,
        "user_id": entry.user_id,
        "split": entry.split,
        "type": event if event in _TYPES else None,
        "event": event,
        "page": row["simplified_html"],
        "name": name,
        "element_text": name,
        "text": row["input_text"],
        "rationale": (row["rationale"] or "").strip(),
        **{column: row[column] or None for column in ("click_type", "url", "timestamp")},
    }
