"""Actions that tell an address and a time -> where the page stands that was shown; what could not be joined, and why.

    captures of all files -> index (sources/capture_index.py) -> for each action its page, or the cause why it has none

Every action without a page is counted by its cause, listed with the reason in the store's `set_aside.jsonl`, and told
in a few lines with examples. Where they are more than a share of all actions, nothing is imported: pages and events are
then seldom of one shop and time.
"""

from collections import Counter
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

import msgspec
import pyarrow as pa

from replay_sessions.errors import BadConfig, ImportFailed
from replay_sessions.importers.raw.endings import ACTION_TYPES
from replay_sessions.importers.raw.rows import NO_PAGE, NO_PAGE_WHY, ROW, ActionTable, Row
from replay_sessions.importers.raw.steps import PageFolder
from replay_sessions.importers.raw.targets import Unresolved
from replay_sessions.importers.sources.addresses import TRACKING_PARAMETERS, AddressReader
from replay_sessions.importers.sources.capture_index import CaptureIndex, CapturePlace, Tolerance
from replay_sessions.importers.sources.captures import BadBody, Cause
from replay_sessions.importers.sources.page_files import PAGE_FILE_ENDINGS, open_page_file
from replay_sessions.importers.sources.timestamps import moment
from replay_sessions.simplify import Recipe
from replay_sessions.simplify.private_data import remove_from_text
from replay_sessions.store.manifest import SetAside

__all__ = ["AS_CAPTURED", "CaptureJoin", "CapturedPages", "Joining"]

_JOINED_COLUMNS = ("session_id", "type", "page", "url", "timestamp", ROW)
_STEP_BYTES = 64 << 20  # how much of a large file is read before it is told
_EXAMPLES = 3
_OPEN_FILES = 2
_REMEDIES = {
    Cause.NO_CAPTURE: "--ignore-parameters names parameters that do not tell pages apart",
    Cause.LATER: "--late-s allows for clocks that differ",
    Cause.STALE: "--stale-minutes says how old a capture may be",
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

    def check(self) -> None:
        """Raises BadConfig where one of them means nothing."""
        if not self.late_s >= 0:
            raise BadConfig(f"--late-s is {self.late_s:g}, and 0 or more was expected")
        if self.stale_minutes is not None and not self.stale_minutes >= 0:
            raise BadConfig(f"--stale-minutes is {self.stale_minutes:g}, and 0 or more was expected")
        if not 0 <= self.max_without_page <= 1:
            raise BadConfig(f"--max-without-page is {self.max_without_page:g}, and a share from 0 to 1 was expected")

    def told(self) -> dict[str, str]:
        """What of it differs from the defaults, for the manifest."""
        given = msgspec.structs.asdict(self).items()
        return {name: str(value) for name, value in given if value != getattr(AS_CAPTURED, name)}

    @property
    def tolerance(self) -> Tolerance:
        return Tolerance(late_s=self.late_s, stale_s=self.stale_minutes and self.stale_minutes * 60)


AS_CAPTURED = Joining()


class CaptureJoin:
    """Joins the rows of a table to the captures of some files.

    Attributes:
        joined: How many actions have a page.
        without: How many have none, by the cause.
        examples: The first reasons of each cause.
        captures: How many pages were found in the files.
    """

    def __init__(self, root: Path, files: list[Path], joining: Joining) -> None:
        self.joined = 0
        self.without: Counter[Cause] = Counter()
        self.examples: dict[Cause, list[str]] = {}
        self.captures = 0
        self._root = root
        self._files = files
        self._joining = joining
        ignored = filter(None, joining.ignore_parameters.split(","))
        self._reader = AddressReader((*TRACKING_PARAMETERS, *ignored))
        self._names = _names_of(root, files)
        self._index: CaptureIndex | None = None

    def read_captures(self, table: ActionTable) -> Iterator[tuple[int, list[SetAside]]]:
        """Reads the files from beginning to end; yields how much was read, and what could not be."""
        urls = (row["url"] for batch in table.batches(("url",)) for row in batch)
        self._index = CaptureIndex(self._reader, (url for url in urls if url))
        for number, path in enumerate(self._files):
            read, set_aside = 0, []
            for found in open_page_file(path).captures(self._index.wants):
                if isinstance(found, SetAside):
                    folder = path.relative_to(self._root).parent
                    set_aside.append(SetAside(where=(folder / found.where).as_posix(), reason=found.reason))
                    continue
                self._index.add(number, found)
                if found.done_bytes - read >= _STEP_BYTES:
                    yield found.done_bytes - read, set_aside
                    read, set_aside = found.done_bytes, []
            yield path.stat().st_size - read, set_aside
        self.captures = len(self._index)

    def join(self, table: ActionTable) -> ActionTable:
        """The table with the place of a page in each row, or why there is none.

        Raises:
            ImportFailed: Too many actions have no page.
        """
        columns: dict[str, list[str | None]] = {"page": [], NO_PAGE: [], NO_PAGE_WHY: []}
        for batch in table.batches(_JOINED_COLUMNS):
            for row in batch:
                found, why = self._find(row)
                is_lost = isinstance(found, Cause)
                columns["page"].append(None if isinstance(found, Cause) else self._shown(found))
                columns[NO_PAGE].append(str(found) if is_lost else None)
                columns[NO_PAGE_WHY].append(f"no page: {found}{why}" if is_lost else None)
                if row["type"] in ACTION_TYPES:
                    self._count(row, found, why)
        actions = self.joined + self.without.total()
        if self.without.total() > self._joining.max_without_page * actions:
            raise ImportFailed(
                f"{self._share()}, and at most {self._joining.max_without_page:.0%} may lack one (--max-without-page): "
                f"{'; '.join(self._causes())}"
            )
        return table.with_columns({name: pa.array(values, pa.string()) for name, values in columns.items()})

    def report(self) -> list[str]:
        """What could not be joined, in a few lines."""
        if not self.without:
            return [f"pages: {self._share()}"]
        return [f"pages: {self._share()}; the rest is left out:", *(f"  {cause}" for cause in self._causes())]

    def _share(self) -> str:
        actions = self.joined + self.without.total()
        share = f" ({self.joined / actions:.0%})" if actions else ""
        return f"{self.joined:,} of {actions:,} actions{share} have a page among {self.captures:,} captures"

    def _causes(self) -> Iterator[str]:
        for cause, count in self.without.most_common():
            remedy = f" ({_REMEDIES[cause]})" if cause in _REMEDIES else ""
            yield f"{count:,} {cause}{remedy}, such as {', '.join(self.examples[cause])}"

    def _count(self, row: Row, found: CapturePlace | Cause, why: str) -> None:
        if not isinstance(found, Cause):
            self.joined += 1
            return
        self.without[found] += 1
        examples = self.examples.setdefault(found, [])
        if len(examples) < _EXAMPLES:
            examples.append(remove_from_text(f"row {row[ROW]}{why}"))

    def _find(self, row: Row) -> tuple[CapturePlace | Cause, str]:
        """The page of a row, or the cause why there is none and what it was looked for by."""
        assert self._index is not None
        address, time = row["url"] or "", moment(row["timestamp"])
        sought = f" [{address[:200]} at {row['timestamp']}]"
        if not address:
            return Cause.NO_ADDRESS, ""
        if time is None:
            return Cause.NO_TIME, sought
        named = row["session_id"] if self._joining.pages_by_session else row["page"]
        file = self._names.get(named) if named else None
        if named and file is None:
            return Cause.NO_FILE, f" [{named}]"
        found = self._index.find(address, time, self._joining.tolerance, file)
        if found == Cause.NO_CAPTURE and self._index.has_path(address):
            sought = f"{sought}, whose path was captured with other parameters"
        return found, sought

    def _shown(self, place: CapturePlace) -> str:
        return f"{self._files[place.file].relative_to(self._root).as_posix()}#{place.place}"


class CapturedPages(PageFolder):
    """Captured pages by the places that `CaptureJoin` found, the last few of them kept simplified."""

    def __init__(self, root: Path, recipe: Recipe | None, *, private_data: bool = True) -> None:
        super().__init__(root, recipe, private_data=private_data)
        self._root = root
        self._open = lru_cache(_OPEN_FILES)(open_page_file)

    def content(self, file: str) -> bytes:
        name, _, place = file.rpartition("#")
        try:
            return self._open(self._root / name).body(int(place))
        except (BadBody, OSError) as error:
            raise Unresolved(f"page '{file}': {getattr(error, 'strerror', None) or error}") from error


def _names_of(root: Path, files: list[Path]) -> dict[str, int]:
    """Files by what rows may call them: the path, or the name, with or without its endings, where only one has it."""
    names: dict[str, set[int]] = {}
    for number, path in enumerate(files):
        shown = path.relative_to(root).as_posix()
        for name in (shown, path.name):
            ending = next((ending for ending in PAGE_FILE_ENDINGS if name.lower().endswith(ending)), "")
            names.setdefault(name, set()).add(number)
            names.setdefault(name[: len(name) - len(ending)], set()).add(number)
    return {name: numbers.pop() for name, numbers in names.items() if len(numbers) == 1}
