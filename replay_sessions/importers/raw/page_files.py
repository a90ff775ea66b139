"""Files of captured pages: a HAR, WARC or MHTML file, a list of saved pages, or a folder of any of them.

pages.csv    file,url,timestamp     a table of the HTML files of its folder: which address each was, and when
             home.html,https://shop.example/,2025-04-14T21:52:57Z

MHTML is a page as a browser saved it (`Save as …, single file`), an e-mail whose first part is the page; also gzip'd.
Its address and the time when it was saved stand in its headers. What the page holds is its state at that time.
"""

import email
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from email.errors import CloseBoundaryNotFoundDefect, MessageError, StartBoundaryNotFoundDefect
from email.message import Message
from email.parser import BytesHeaderParser
from email.utils import parsedate_to_datetime
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from replay_sessions.foundation.durable_files import UNREADABLE, open_unpacked
from replay_sessions.foundation.errors import ImportFailed
from replay_sessions.importers.importer import listed, reason_of
from replay_sessions.importers.logged_pages import Unresolved, read_saved_page
from replay_sessions.importers.raw.action_table import read_rows
from replay_sessions.importers.sources.captures import (
    BadBody,
    Capture,
    Cause,
    PageFile,
    as_utf8,
    fault_of,
    is_html,
)
from replay_sessions.importers.sources.har import HarFile
from replay_sessions.importers.sources.join_keys import is_page_address, moment, seconds
from replay_sessions.importers.sources.warc import WarcFile
from replay_sessions.simplify.parsing import MAX_BYTES
from replay_sessions.store.manifest import Rejected

PAGE_LIST = "pages.csv"
_COLUMNS = ("file", "url", "timestamp")
_HEADER_BYTES = 64 << 10
_SHADOW_ROOT = re.compile(rb"(<template(?=\s)[^>]{0,1000}?\sshadow)(mode\s*=)", re.IGNORECASE)  # as Chrome saves them
_DAMAGED = (MessageError, ValueError, LookupError, RecursionError, AssertionError)  # what Python's parser may raise


class PageList(PageFile):
    """A table of saved pages; its rows are its places."""

    def captures(self, wanted: Callable[[str], bool]) -> Iterator[Capture | Rejected]:
        for position, (number, row) in enumerate(self._rows):
            where = f"{self.path.name}:{number}"
            if isinstance(row, Exception):
                yield Rejected(where=where, reason=str(row))
                continue
            time = moment(row["timestamp"])
            if time is None or not is_page_address(row["url"]):
                lacking = "timestamp" if time is None else "url"
                yield Rejected(where=where, reason=f"its {lacking} is none: {row[lacking]!r}")
                continue
            cause = fault_of(partial(self.body, position)) if wanted(row["url"]) else None
            yield Capture(address=row["url"], time=time, position=position, cause=cause)

    def body(self, position: int) -> bytes:
        name = self._rows[position][1]["file"]
        try:
            content = read_saved_page(self.path.parent, name)
        except Unresolved as error:
            cause = Cause.TRUNCATED if isinstance(error.__cause__, EOFError) else Cause.NOT_SAVED
            raise BadBody(cause, str(error)) from error
        if len(content) > MAX_BYTES:
            raise BadBody(Cause.TOO_LARGE)
        if not content.strip():
            raise BadBody(Cause.NOT_SAVED, f"'{name}' is empty")
        return content

    @cached_property
    def _rows(self) -> list[tuple[str, Any]]:
        header: list[str] = []
        rows = list(read_rows(self.path, "list of pages", header=header))
        if lacking := [name for name in _COLUMNS if name not in header]:
            raise ImportFailed(
                f"'{self.path}' has no column {lacking[0]!r}, but {listed(header)}: {', '.join(_COLUMNS)} were expected"
            )
        return rows


class MhtmlFile(PageFile):
    """An MHTML file, which is one capture."""

    def captures(self, wanted: Callable[[str], bool]) -> Iterator[Capture | Rejected]:
        try:
            with _parsing():
                headers = BytesHeaderParser().parsebytes(self._content(_HEADER_BYTES))
                address = _text(headers, "Snapshot-Content-Location") or _text(headers, "Content-Location")
                if not address:
                    address = _text(_page_of(self._message()), "Content-Location")
                time = _time_of(_text(headers, "Date"))
        except BadBody as error:
            yield Rejected(where=self.path.name, reason=str(error))
            return
        if time is None or not is_page_address(address):
            lacking = "Date" if time is None else "Snapshot-Content-Location or Content-Location"
            yield Rejected(where=self.path.name, reason=f"it has no header {lacking} that tells one")
            return
        cause = fault_of(partial(self.body, 0)) if wanted(address) else None
        yield Capture(address=address, time=time, position=0, cause=cause)

    def body(self, position: int) -> bytes:
        message = self._message()
        page = _page_of(message)
        with _parsing():
            body = page.get_payload(decode=True)
            charset = page.get_content_charset("")
        if not isinstance(body, bytes) or not body.strip():
            raise BadBody(Cause.NOT_SAVED)
        if page.defects:
            raise BadBody(Cause.UNDECODABLE, type(page.defects[0]).__name__)
        parts = message.get_payload()
        if isinstance(parts, list) and parts[-1] is page and _is_cut(message):
            raise BadBody(Cause.TRUNCATED, "the end of its last part is missing")
        return _SHADOW_ROOT.sub(rb"\1root\2", as_utf8(body, charset))

    def _message(self) -> Message:
        content = self._content(MAX_BYTES + 1)
        if len(content) > MAX_BYTES:
            raise BadBody(Cause.TOO_LARGE)
        with _parsing():
            return email.message_from_bytes(content)

    def _content(self, size: int) -> bytes:
        with _parsing(), open_unpacked(self.path) as file:
            return file.read(size)


@contextmanager
def _parsing() -> Iterator[None]:
    """Raises BadBody where a file cannot be read, or not as a message."""
    try:
        yield
    except (*UNREADABLE, *_DAMAGED) as error:
        raise BadBody(Cause.UNDECODABLE, reason_of(error)) from error


def _page_of(message: Message) -> Message:
    """The part that `start` names, or else the first that is a page.

    Raises:
        BadBody: There is none.
    """
    parts = message.get_payload() if message.is_multipart() else [message]
    pages = [part for part in parts if isinstance(part, Message) and is_html(part.get_content_type(), b"")]
    if not pages:
        raise BadBody(Cause.NOT_HTML, "none of its parts is a page")
    start = message.get_param("start")
    return next((page for page in pages if isinstance(start, str) and _text(page, "Content-ID") == start), pages[0])


def _is_cut(message: Message) -> bool:
    return any(
        isinstance(defect, CloseBoundaryNotFoundDefect | StartBoundaryNotFoundDefect) for defect in message.defects
    )


def _text(message: Message, name: str) -> str:
    """A header that may go on over several lines."""
    return "".join(str(message.get(name) or "").splitlines()).strip()


def _time_of(date: str) -> float | None:
    try:
        return parsedate_to_datetime(date).timestamp()
    except (TypeError, ValueError, OverflowError):
        return seconds(date) if date else None


_KINDS: dict[str, type[PageFile]] = {
    ".har": HarFile, ".har.gz": HarFile,
    ".warc": WarcFile, ".warc.gz": WarcFile, ".arc": WarcFile, ".arc.gz": WarcFile,
    ".mhtml": MhtmlFile, ".mht": MhtmlFile, ".mhtml.gz": MhtmlFile, ".mht.gz": MhtmlFile,
}  # fmt: skip
PAGE_FILE_ENDINGS = tuple(_KINDS)


def open_page_file(path: Path) -> PageFile:
    """The pages of a file that ends in one of `PAGE_FILE_ENDINGS`, or is a list of pages."""
    if path.name == PAGE_LIST:
        return PageList(path)
    return next(kind for ending, kind in _KINDS.items() if path.name.lower().endswith(ending))(path)
