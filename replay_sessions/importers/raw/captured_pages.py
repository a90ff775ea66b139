"""Actions with an address and a time -> the captured page that was on the screen, or why there is none.

    captures of all files -> index (sources/capture_index.py) -> for each action its page, or the cause why it has none

Every action without a page is counted by its cause, listed with the reason in the store's `rejected.jsonl`, and summed
up in a few lines with examples. Where they are more than a share of all actions, nothing is imported: pages and events
are then seldom of one shop and time.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from functools import cached_property, lru_cache
from pathlib import Path

import msgspec
import pyarrow as pa

from replay_sessions.foundation.errors import BadConfig, BadSession, ImportFailed, check_at_least
from replay_sessions.importers.importer import Part, find_files
from replay_sessions.importers.logged_pages import CACHED_PAGES, Pages, RawPage, Row, Unresolved, read_saved_page
from replay_sessions.importers.raw.action_table import ROW, ActionTable
from replay_sessions.importers.raw.page_files import PAGE_FILE_ENDINGS, PAGE_LIST, open_page_file
from replay_sessions.importers.sessions import ACTION_TYPES
from replay_sessions.importers.sources.capture_index import CaptureIndex, CapturePosition, Tolerance
from replay_sessions.importers.sources.captures import BadBody, Cause, PageFile
from replay_sessions.importers.sources.join_keys import TRACKING_PARAMETERS, AddressReader, moment
from replay_sessions.private_data import remove_from_text
from replay_sessions.simplify import Recipe
from replay_sessions.simplify.media import ViewportName
from replay_sessions.store.manifest import Rejected

_JOINED_COLUMNS = ("session_id", "type", "page", "url", "timestamp", ROW)
_STEP_BYTES = 64 << 20  # how much of a large file is read before progress is reported
_EXAMPLES = 3
_OPEN_FILES = 2
_REMEDIES = {
    Cause.NO_CAPTURE: "--ignore-parameters names parameters that do not tell pages apart",
    Cause.LATER: "--late-s allows for clocks that differ",
    Cause.STALE: "--stale-minutes says how old a capture may be",
    Cause.UNREAD: "{unread}",
    Cause.NO_FILE: "--pages-by-session and the column page name files of captures",
}


class Joining(msgspec.Struct, frozen=True, kw_only=True):
    """How pages that were captured are found.

    Attributes:
        ignore_parameters: Parameters of addresses that do not tell pages apart, as A,B*, beside those of trackers.
        late_s: A page captured so many seconds after an action counts where none was before it, as clocks differ.
        stale_minutes: A page that was captured earlier than this before an action does not count; None: any does.
        pages_by_session: A session's pages are looked for only in the file of captures that is named as its id.
        max_without_page: Where a larger share of the actions has no page, nothing is imported.
    """

    ignore_parameters: str = ""
    late_s: float = 0
    stale_minutes: float | None = None
    pages_by_session: bool = False
    max_without_page: float = 0.5

    def __post_init__(self) -> None:
        check_at_least(0, late_s=self.late_s, stale_minutes=self.stale_minutes)
        if not 0 <= self.max_without_page <= 1:
            raise BadConfig(f"--max-without-page is {self.max_without_page:g}, and a share from 0 to 1 was expected")

    @property
    def tolerance(self) -> Tolerance:
        return Tolerance(late_s=self.late_s, stale_s=self.stale_minutes and self.stale_minutes * 60)


def find_page_files(source: Path) -> list[Path]:
    """The files of captures that a source is or holds, in the order of their paths; none in a folder of mere HTML.

    Raises:
        ImportFailed: It is a file of another kind, or not there.
    """
    empty = (
        f"'{source}' is no file of captured pages, one that ends in {', '.join(PAGE_FILE_ENDINGS)}; a folder of "
        f"HTML files, with a list of their addresses called {PAGE_LIST} or without, is read too"
    )
    missing = f"there is no file or folder '{source}', and pages were expected"
    files = find_files(source, (*PAGE_FILE_ENDINGS, PAGE_LIST), None if source.is_dir() else empty, missing)
    return [path for path in files if path.name == PAGE_LIST or path.name.lower().endswith(PAGE_FILE_ENDINGS)]


class CaptureJoin:
    """Joins the rows of a table to the captures of some files."""

    def __init__(self, root: Path, files: list[Path], joining: Joining, table: ActionTable) -> None:
        self._root = root
        self._files = files
        self._joining = joining
        self._table = table
        self._counts: Counter[Cause | None] = Counter()  # of actions, by why they have no page; None: they have one
        self._examples: defaultdict[Cause, list[str]] = defaultdict(list)
        self._unread: list[Rejected] = []  # what of the files could not be read
        self._names = _names_of(root, files)
        ignored = filter(None, joining.ignore_parameters.split(","))
        urls = (row["url"] for batch in table.batches(("url",)) for row in batch)
        self._index = CaptureIndex(AddressReader((*TRACKING_PARAMETERS, *ignored)), filter(None, urls))

    def read_captures(self) -> Iterator[Part]:
        """Reads the files from beginning to end; a part holds what of them could not be read."""
        for number, path in enumerate(self._files):
            done, rejected = 0, []
            for item in open_page_file(path).captures(self._index.wants):
                if isinstance(item, Rejected):
                    folder = path.relative_to(self._root).parent
                    rejected.append(Rejected(where=(folder / item.where).as_posix(), reason=item.reason))
                    self._unread.append(rejected[-1])
                    continue
                self._index.add(number, item)
                if item.done_bytes - done >= _STEP_BYTES:
                    yield Part(rejected, item.done_bytes - done)
                    done, rejected = item.done_bytes, []
            yield Part(rejected, path.stat().st_size - done)

    def join(self) -> ActionTable:
        """The table with the name of a page in each row, or why there is none.

        Raises:
            ImportFailed: Too many actions have no page.
        """
        columns: dict[str, list[str | None]] = {"page": [], "no_page": [], "no_page_why": []}
        for row in (row for batch in self._table.batches(_JOINED_COLUMNS) for row in batch):
            match, detail = self._find(row)
            cause = match if isinstance(match, Cause) else None
            page = None
            if isinstance(match, CapturePosition):
                page = f"{self._files[match.file].relative_to(self._root).as_posix()}#{match.position}"
            columns["page"].append(page)
            columns["no_page"].append(cause and str(cause))
            columns["no_page_why"].append(cause and f"no page: {cause}{detail}")
            if row["type"] in ACTION_TYPES:
                self._counts[cause] += 1
                if cause and len(self._examples[cause]) < _EXAMPLES:
                    self._examples[cause].append(remove_from_text(f"row {row[ROW]}{detail}"))
        actions = self._counts.total()
        if actions - self._counts[None] > self._joining.max_without_page * actions:
            raise ImportFailed(
                f"{self._share()}, and at most {self._joining.max_without_page:.0%} may lack one (--max-without-page): "
                f"{'; '.join(self._causes())}"
            )
        return self._table.with_columns({name: pa.array(values, pa.string()) for name, values in columns.items()})

    def report(self) -> list[str]:
        """What could not be joined, in a few lines."""
        causes = [f"  {cause}" for cause in self._causes()]
        return [f"pages: {self._share()}{'; the rest is left out:' if causes else ''}", *causes]

    def _share(self) -> str:
        joined, actions = self._counts[None], self._counts.total()
        share = f" ({joined / actions:.0%})" if actions else ""
        return f"{joined:,} of {actions:,} actions{share} have a page among {len(self._index):,} captures"

    def _causes(self) -> Iterator[str]:
        for cause, count in self._counts.most_common():
            if cause:
                unread = "; ".join(f"{item.where}: {item.reason}" for item in self._unread[:_EXAMPLES])
                remedy = f" ({_REMEDIES[cause].format(unread=unread)})" if cause in _REMEDIES else ""
                yield f"{count:,} {cause}{remedy}, such as {', '.join(self._examples[cause])}"

    def _find(self, row: Row) -> tuple[CapturePosition | Cause, str]:
        """The page of a row, or the cause why there is none and what it was looked for by."""
        address, time = row["url"] or "", moment(row["timestamp"])
        query = f" [{address[:200]} at {row['timestamp']}]"
        if not address:
            return Cause.NO_ADDRESS, ""
        if time is None:
            return Cause.NO_TIME, query
        name = row["session_id"] if self._joining.pages_by_session else row["page"]
        file = self._names.get(name) if name else None
        if name and file is None:
            return Cause.NO_FILE, f" [{name}]"
        match = self._index.find(address, time, self._joining.tolerance, file)
        if match == Cause.NO_CAPTURE and self._index.has_path(address):
            query = f"{query}, whose path was captured with other parameters"
        return Cause.UNREAD if match == Cause.NO_CAPTURE and self._unread else match, query


class PageFolder(Pages):
    """The pages of a raw log by the names of their files, the last few of them cached simplified.

    Args:
        purchase_selector: A click on what this CSS selector matches buys.
    """

    def __init__(
        self,
        folder: Path,
        recipe: Recipe | None,
        *,
        private_data: bool,
        purchase_selector: str | None,
        viewport: ViewportName,
    ) -> None:
        self.removes_private_data = private_data
        self._folder = folder
        self._recipe = recipe
        self._purchase_selector = purchase_selector
        self._viewport = viewport
        self._cached_page = lru_cache(CACHED_PAGES)(self._read_page)

    def page(self, row: Row) -> RawPage:
        if cause := row.get("no_page"):
            raise Unresolved(row.get("no_page_why") or cause, f"without a page: {cause}")
        return self._cached_page(row["page"] or "")

    def is_purchase(self, row: Row, page: RawPage, name: str) -> bool:
        return self._purchase_selector is not None and page.is_among(self._purchase_selector, name)

    def content(self, file: str) -> bytes:
        """The bytes of a page.

        Raises:
            Unresolved: There is none, or it cannot be read.
        """
        return read_saved_page(self._folder, file)

    def _read_page(self, file: str) -> RawPage:
        content = self.content(file)
        try:
            return RawPage(content, self._recipe, private_data=self.removes_private_data, viewport=self._viewport)
        except BadSession as error:
            raise Unresolved(f"page '{file}': {error}") from error


class CapturedPages(PageFolder):
    """Captured pages by the places that `CaptureJoin` found."""

    @cached_property
    def _open(self) -> Callable[[Path], PageFile]:
        return lru_cache(_OPEN_FILES)(open_page_file)

    def content(self, file: str) -> bytes:
        name, _, position = file.rpartition("#")
        try:
            return self._open(self._folder / name).body(int(position))
        except (BadBody, OSError) as error:
            raise Unresolved(f"page '{file}': {getattr(error, 'strerror', None) or error}") from error


def _names_of(root: Path, files: list[Path]) -> dict[str, int]:
    """Files by what rows may call them: the path, or the name, with or without its endings, where only one has it."""
    names: defaultdict[str, set[int]] = defaultdict(set)
    for number, path in enumerate(files):
        for name in (path.relative_to(root).as_posix(), path.name):
            ending = next((ending for ending in PAGE_FILE_ENDINGS if name.lower().endswith(ending)), "")
            names[name].add(number)
            names[name[: len(name) - len(ending)]].add(number)
    return {name: numbers.pop() for name, numbers in names.items() if len(numbers) == 1}
