"""WARC (and ARC): what crawlers and recording proxies keep, through the package warcio; plain or gzip'd by record.

A file may be larger than any memory: it is read once from beginning to end for what is in it, and a page is read where
it stands. A `revisit` shows the page of the capture that it refers to, a redirect the page that it leads to.
"""

import io
from collections.abc import Callable, Iterator
from contextlib import redirect_stderr, suppress
from functools import partial
from pathlib import Path
from typing import Any

from replay_sessions.foundation.plugins import load_with_extra
from replay_sessions.importers.sources.captures import (
    BadBody,
    Capture,
    Cause,
    PageFile,
    as_utf8,
    charset_of,
    is_html,
    joined_chunks,
    unpacked,
)
from replay_sessions.importers.sources.join_keys import is_page_address, seconds
from replay_sessions.simplify.parsing import MAX_BYTES
from replay_sessions.store.manifest import Rejected

_RECORDS = ("response", "resource", "revisit")
_LONGEST_LINE = 64 << 10
_MOST_LINES = 1_000  # of one record's headers
_LONGEST_MESSAGE = 300  # characters of warcio's message


class WarcFile(PageFile):
    """A WARC file; the offsets of its records are its places."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._iterator: Any = load_with_extra("warcio.archiveiterator:ArchiveIterator", "warc")
        self._headers: Any = load_with_extra("warcio.statusandheaders:StatusAndHeadersParser", "warc")
        self._failures = (
            load_with_extra("warcio.exceptions:ArchiveLoadFailed", "warc"),
            load_with_extra("warcio.statusandheaders:StatusAndHeadersParserException", "warc"),
            EOFError,
            OSError,
            ValueError,
        )

    def captures(self, wanted: Callable[[str], bool]) -> Iterator[Capture | Rejected]:
        with self.path.open("rb") as file:
            records = self._records(file)
            while True:
                position = records.offset
                try:
                    with redirect_stderr(io.StringIO()):  # warcio writes there what stands in a record's place
                        record = next(records, None)
                        if record is None:
                            break
                        position = records.offset  # behind members of the file that hold nothing
                        capture = self._capture(record, position, wanted)
                        records.read_to_end()
                    is_cut = record.length is None or record.raw_stream.limit > 0
                except self._failures as error:
                    yield Rejected(where=self._where(position), reason=f"what follows is not read: {_reason_of(error)}")
                    return
                if capture is not None:
                    yield capture
                if is_cut:
                    yield Rejected(
                        where=self._where(position), reason="the file is damaged here, or cut: fetch it again"
                    )
            if position < self.path.stat().st_size:
                yield Rejected(where=self._where(position), reason="what follows is no record: fetch it again")

    def body(self, position: int) -> bytes:
        with self.path.open("rb") as file:
            file.seek(position)
            try:
                with redirect_stderr(io.StringIO()):
                    record = next(self._records(file))
                    return self._body(record, self._http_headers(record))
            except (StopIteration, *self._failures) as error:
                raise BadBody(Cause.UNDECODABLE, _reason_of(error)) from error

    def _records(self, file: Any) -> Any:
        records = self._iterator(file, no_record_parse=True, arc2warc=True)
        records.reader = _bounded(type(records.reader))(file)
        return records

    def _capture(self, record: Any, position: int, wanted: Callable[[str], bool]) -> Capture | Rejected | None:
        address = record.rec_headers.get_header("WARC-Target-URI") or ""
        if record.rec_type not in _RECORDS or not is_page_address(address):
            return None
        time = seconds(record.rec_headers.get_header("WARC-Date"))
        if time is None:
            return Rejected(where=self._where(position), reason="a record whose WARC-Date is no time")
        capture = partial(Capture, address=address, time=time, position=position, done_bytes=position)
        if record.rec_type == "revisit":
            referred = seconds(record.rec_headers.get_header("WARC-Refers-To-Date"))
            target = record.rec_headers.get_header("WARC-Refers-To-Target-URI") or address
            return capture(leads_to=target, leads_before=time if referred is None else min(referred, time))
        headers = self._http_headers(record)
        status = _status(headers)
        if status == 304:
            return capture(leads_to=address, leads_before=time)
        if 300 <= status < 400:
            location = headers.get_header("Location")
            return capture(leads_to=location) if location else None
        is_wanted = wanted(address)
        content_type = _content_type(record, headers)
        if content_type and not is_html(content_type, b""):
            return capture(cause=Cause.NOT_HTML) if is_wanted else None
        if not is_wanted:
            return capture() if content_type else None
        body = b""
        try:
            body = self._body(record, headers)
        except BadBody as error:
            return capture(cause=error.cause)
        return capture(cause=None if is_html(content_type, body) else Cause.NOT_HTML)

    def _http_headers(self, record: Any) -> Any:
        """The headers of a response; None where a record holds the page alone."""
        if record.rec_type != "response" or record.length == 0:
            return None
        with suppress(EOFError):
            return self._headers(["HTTP/"], verify=False).parse(record.raw_stream)
        return None

    def _body(self, record: Any, headers: Any) -> bytes:
        if record.rec_headers.get_header("WARC-Truncated"):
            raise BadBody(Cause.TRUNCATED, f"WARC-Truncated: {record.rec_headers.get_header('WARC-Truncated')[:40]}")
        if (record.length or 0) > MAX_BYTES:
            raise BadBody(Cause.TOO_LARGE)
        body = record.raw_stream.read(MAX_BYTES + 1)
        if getattr(record.raw_stream, "limit", 0) > 0:
            raise BadBody(Cause.TRUNCATED, f"{record.raw_stream.limit:,} bytes are missing")
        if headers is not None:
            length = headers.get_header("Content-Length") or ""
            if "chunked" in (headers.get_header("Transfer-Encoding") or "").lower():
                body = joined_chunks(body)
            elif length.isdecimal() and len(length) < 16 and len(body) < int(length):
                raise BadBody(Cause.TRUNCATED, f"{len(body):,} of {int(length):,} bytes")
            body = unpacked(body, headers.get_header("Content-Encoding") or "")
        if not body.strip():
            raise BadBody(Cause.NOT_SAVED)
        return as_utf8(body, charset_of(_content_type(record, headers)))

    def _where(self, position: int) -> str:
        return f"{self.path.name}, byte {position:,}"


def _reason_of(error: Exception) -> str:
    """What warcio says, in a line; of a file that is gzip'd as a whole it says much."""
    reason = " ".join(str(error).split())
    if "recompress" in reason:
        return "it is gzip'd as a whole; pack it record by record: warcio recompress OLD NEW"
    return reason[:_LONGEST_MESSAGE] or "it ends too early"


def _status(headers: Any) -> int:
    code = headers.get_statuscode() if headers is not None and headers.statusline else ""
    return int(code) if code.isdecimal() and len(code) == 3 else 0


def _content_type(record: Any, headers: Any) -> str:
    if record.rec_type == "resource":
        return record.rec_headers.get_header("Content-Type") or ""
    return (headers.get_header("Content-Type") if headers is not None else None) or ""


def _bounded(reader: type[Any]) -> type[Any]:
    """A reader of warcio's whose lines, and headers of a record, do not grow with what a small file unpacks to."""

    class BoundedReader(reader):  # type: ignore[misc]  # warcio ships no types
        lines = 0

        def read(self, length: int | None = None) -> bytes:
            self.lines = 0
            return super().read(length)  # type: ignore[no-any-return]

        def readline(self, length: int | None = None) -> bytes:
            self.lines += 1
            if self.lines > _MOST_LINES:
                raise ValueError(f"headers of more than {_MOST_LINES:,} lines")
            return super().readline(min(length or _LONGEST_LINE, _LONGEST_LINE))  # type: ignore[no-any-return]

    return BoundedReader
