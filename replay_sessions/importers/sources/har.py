"""HAR: what a browser's developer tools, a proxy or Playwright keep of a visit, one JSON document, also gzip'd.

    {"log": {"entries": [{"startedDateTime": …, "request": {"url": …}, "response": {"status": …, "content": {…}}}, …]}}

Pages are documents; what a script fetched from an address is none, where the recorder distinguishes them. A response
that says that nothing had changed (304) shows the page that was captured before it, a redirect the page that it leads
to.
"""

import gzip
import mmap
import re
from base64 import b64decode
from collections.abc import Callable, Iterator
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Raw

from replay_sessions.foundation.durable_files import UNREADABLE, open_unpacked
from replay_sessions.importers.importer import reason_of
from replay_sessions.importers.sources.captures import (
    BadBody,
    Capture,
    Cause,
    PageFile,
    as_utf8,
    charset_of,
    fault_of,
    is_html,
)
from replay_sessions.importers.sources.join_keys import is_page_address, seconds
from replay_sessions.simplify.parsing import MAX_BYTES
from replay_sessions.store.manifest import Rejected

_LONGEST_BYTES = 512 << 20  # unpacked; browsers give up before
_PAGES = ("document", "")  # of Chromium's resource types; others' recorders tell none
_NOT_MODIFIED = 304
_UNKNOWN_TYPE = "x-unknown"  # HAR's word
_JSON_BLANK = re.compile(rb"\\[nrt]")
_MARK_BYTES = 3  # a byte order mark counts in the size of a body, and stands in no text


class _Content(msgspec.Struct):
    mimeType: str | None = None  # noqa: N815 - HAR's word
    size: float | None = None
    encoding: str | None = None
    text: Raw = Raw(b"null")

    @property
    def type(self) -> str:
        return "" if self.mimeType in (None, _UNKNOWN_TYPE) else str(self.mimeType)

    @property
    def has_text(self) -> bool:
        return len(memoryview(self.text)) > len('""') and memoryview(self.text)[0] == ord('"')

    @property
    def beginning(self) -> bytes:
        """Some of the text, to tell what it is where nothing else does."""
        if not self.has_text or self.encoding == "base64":
            return b""
        return _JSON_BLANK.sub(b" ", bytes(memoryview(self.text)[1:1024]))


class _Response(msgspec.Struct):
    status: float = 0
    redirectURL: str | None = None  # noqa: N815
    content: _Content = msgspec.field(default_factory=_Content)


class _Request(msgspec.Struct):
    url: str


class _Entry(msgspec.Struct):
    startedDateTime: str  # noqa: N815
    request: _Request
    response: _Response = msgspec.field(default_factory=_Response)
    kind: str | None = msgspec.field(default=None, name="_resourceType")


class _Log(msgspec.Struct):
    entries: list[Raw]


class _Document(msgspec.Struct):
    log: _Log


class HarFile(PageFile):
    """A HAR file; its entries are its places."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._last: tuple[int, _Entry] | None = None

    def captures(self, wanted: Callable[[str], bool]) -> Iterator[Capture | Rejected]:
        try:
            entries = self._entries
        except BadBody as error:
            yield Rejected(where=self.path.name, reason=error.detail)
            return
        for position in range(len(entries)):
            try:
                capture = self._capture(position, self._entry(position), wanted)
            except BadBody as error:
                yield Rejected(where=f"{self.path.name}, entry {position + 1}", reason=str(error))
                continue
            if capture is not None:
                yield capture

    def body(self, position: int) -> bytes:
        return self._body(self._entry(position))

    def _capture(self, position: int, entry: _Entry, wanted: Callable[[str], bool]) -> Capture | None:
        address, response = entry.request.url, entry.response
        if not is_page_address(address):
            return None
        time = seconds(entry.startedDateTime)
        if time is None:
            raise BadBody(
                Cause.UNDECODABLE, f"startedDateTime is {entry.startedDateTime[:40]!r}, and a time was expected"
            )
        capture = partial(Capture, address=address, time=time, position=position)
        content = response.content
        if 300 <= response.status < 400 and not (response.status == _NOT_MODIFIED and content.has_text):
            if response.status == _NOT_MODIFIED:
                return capture(leads_to=address, leads_before=time)
            return capture(leads_to=response.redirectURL) if response.redirectURL else None
        is_wanted = wanted(address)
        if (entry.kind or "") not in _PAGES or not is_html(content.type, content.beginning):
            return capture(cause=Cause.NOT_HTML) if is_wanted else None
        return capture(cause=fault_of(partial(self._body, entry)) if is_wanted else None)

    def _body(self, entry: _Entry) -> bytes:
        content = entry.response.content
        if not content.has_text:
            raise BadBody(Cause.NOT_SAVED)
        if len(memoryview(content.text)) > 2 * MAX_BYTES:
            raise BadBody(Cause.TOO_LARGE)
        charset = charset_of(content.type)
        try:
            text = msgspec.json.decode(content.text, type=str)
            if content.encoding == "base64":
                body = b64decode(text, validate=True)
                missing = content.size is not None and len(body) < content.size
                body = as_utf8(body, charset)
            else:
                body = text.encode("utf-8", "replace")
                is_wide = charset.startswith(("utf-16", "utf16"))
                missing = content.size is not None and len(body) + _MARK_BYTES < content.size and not is_wide
        except ValueError as error:
            raise BadBody(Cause.UNDECODABLE, str(error)) from error
        if missing:
            raise BadBody(Cause.TRUNCATED, f"{len(body):,} of {content.size:,.0f} bytes")
        return body

    def _entry(self, position: int) -> _Entry:
        if self._last is None or self._last[0] != position:
            try:
                self._last = (position, msgspec.json.decode(self._entries[position], type=_Entry))
            except (IndexError, ValueError, RecursionError) as error:
                raise BadBody(Cause.UNDECODABLE, f"no entry of a HAR file: {reason_of(error)}") from error
        return self._last[1]

    @cached_property
    def _entries(self) -> list[Raw]:
        try:
            return msgspec.json.decode(self._content(), type=_Document).log.entries
        except (ValueError, RecursionError, *UNREADABLE) as error:
            reason = reason_of(error)
            where = "" if "byte" in reason else f" (byte {self.path.stat().st_size:,})"  # where it ends
            raise BadBody(
                Cause.UNDECODABLE, f"no HAR file, or one that is damaged or cut: {reason}{where}; export it again"
            ) from error

    def _content(self) -> Any:
        """What the file holds; where it is not packed the system reads it as it is needed."""
        size = self.path.stat().st_size
        with open_unpacked(self.path) as file:
            if isinstance(file, gzip.GzipFile):
                content = file.read(_LONGEST_BYTES + 1)
            else:
                content = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) if size else b""
        if len(content) > _LONGEST_BYTES:
            raise BadBody(
                Cause.TOO_LARGE, f"a HAR file of more than {_LONGEST_BYTES >> 20} MiB: cut it, one file a visit"
            )
        return memoryview(content)[3:] if content[:3] == b"\xef\xbb\xbf" else content
