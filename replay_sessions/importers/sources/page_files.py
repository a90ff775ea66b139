"""Files of captured pages: a HAR, WARC or MHTML file, a list of saved pages, or a folder of any of them.

pages.csv    file,url,timestamp     a table of the HTML files of its folder: which address each was, and when
             home.html,https://shop.example/,2025-04-14T21:52:57Z
"""

import csv
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from replay_sessions.foundation.errors import ImportFailed
from replay_sessions.importers.importer import listed
from replay_sessions.importers.sources.captures import BadBody, Capture, Cause, PageFile, fault_of, read_saved_page
from replay_sessions.importers.sources.har import HarFile
from replay_sessions.importers.sources.join_keys import is_page_address, moment
from replay_sessions.importers.sources.mhtml import MhtmlFile
from replay_sessions.importers.sources.warc import WarcFile
from replay_sessions.simplify.parsing import MAX_BYTES
from replay_sessions.store.manifest import Rejected

PAGE_LIST = "pages.csv"
_COLUMNS = ("file", "url", "timestamp")
_KINDS: dict[str, type[PageFile]] = {
    ".har": HarFile, ".har.gz": HarFile,
    ".warc": WarcFile, ".warc.gz": WarcFile, ".arc": WarcFile, ".arc.gz": WarcFile,
    ".mhtml": MhtmlFile, ".mht": MhtmlFile, ".mhtml.gz": MhtmlFile, ".mht.gz": MhtmlFile,
}  # fmt: skip
PAGE_FILE_ENDINGS = tuple(_KINDS)


class PageList(PageFile):
    """A table of saved pages; its rows are its places."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._rows: list[dict[str, str]] | None = None

    def captures(self, wanted: Callable[[str], bool]) -> Iterator[Capture | Rejected]:
        for position, row in enumerate(self._table()):
            where = f"{self.path.name}:{position + 2}"
            time = moment(row["timestamp"])
            if time is None or not is_page_address(row["url"] or ""):
                lacking = "timestamp" if time is None else "url"
                yield Rejected(where=where, reason=f"its {lacking} is none: {row[lacking]!r}")
                continue
            cause = fault_of(partial(self.body, position)) if wanted(row["url"]) else None
            yield Capture(address=row["url"], time=time, position=position, cause=cause)

    def body(self, position: int) -> bytes:
        name = self._table()[position]["file"] or ""
        content = read_saved_page(self.path.parent, name)
        if len(content) > MAX_BYTES:
            raise BadBody(Cause.TOO_LARGE)
        if not content.strip():
            raise BadBody(Cause.NOT_SAVED, f"'{name}' is empty")
        return content

    def _table(self) -> list[dict[str, str]]:
        if self._rows is None:
            try:
                with self.path.open(encoding="utf-8-sig", newline="") as file:
                    reader = csv.DictReader(file)
                    lacking = [name for name in _COLUMNS if name not in (reader.fieldnames or ())]
                    if lacking:
                        raise ImportFailed(
                            f"'{self.path}' has no column {lacking[0]!r}, but {listed(reader.fieldnames or ())}: "
                            f"{', '.join(_COLUMNS)} were expected"
                        )
                    self._rows = list(reader)
            except (OSError, ValueError, csv.Error) as error:
                raise ImportFailed(f"cannot read the list of pages '{self.path}': {error}") from error
        return self._rows


def open_page_file(path: Path) -> PageFile:
    """The pages of a file that ends in one of `PAGE_FILE_ENDINGS`, or is a list of pages."""
    if path.name == PAGE_LIST:
        return PageList(path)
    return next(kind for ending, kind in _KINDS.items() if path.name.lower().endswith(ending))(path)
