"""Captured pages: what a file has of each, why one may be of no use, and what its body is as a page.

A file of captures (HAR, WARC, MHTML, or a page of HTML that a list says the address of) is read twice: once from
beginning to end for what is in it (`captures`), which is what an index is made of, and then page by page, where a
session needs one (`body`).

The body of a response, as it went over the wire, becomes a page's bytes: chunks joined, unpacked, in UTF-8. Whatever
ends too early is an error, since half a page looks like a complete one; what a bomb unpacks to is read no further than
any page may be long. The charset that a response declares goes before the page's own, as in a browser.
"""

import codecs
import re
import zlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from email.message import Message
from enum import StrEnum
from pathlib import Path

import msgspec

from replay_sessions.foundation.errors import MissingExtra
from replay_sessions.simplify.parsing import MAX_BYTES
from replay_sessions.store.manifest import Rejected


class Cause(StrEnum):
    """Why an event has no page."""

    NO_ADDRESS = "no address"
    NO_TIME = "no time"
    NO_FILE = "no such file of captures"
    NO_CAPTURE = "no capture of its address"
    UNREAD = "no capture of its address in what could be read"
    LATER = "only later captures"
    STALE = "only older captures"
    NOT_HTML = "not HTML"
    NOT_SAVED = "body not saved"
    TRUNCATED = "truncated body"
    TOO_LARGE = "body too large"
    UNDECODABLE = "body cannot be decoded"
    NO_TARGET = "leads to a page that was not captured"


class BadBody(Exception):
    """The body of a capture that cannot be had as a whole."""

    def __init__(self, cause: Cause, detail: str = "") -> None:
        super().__init__(f"{cause} ({detail})" if detail else str(cause))
        self.cause = cause
        self.detail = detail or str(cause)


class Capture(msgspec.Struct, frozen=True, kw_only=True):
    """One capture of an address.

    Attributes:
        time: When it was made, in seconds since 1970.
        position: Where in its file it stands.
        cause: Why it is of no use.
        leads_to: The address whose page was seen: of a redirect, or a capture that says that nothing had changed.
        leads_before: That capture was made no later than this; None: it may be newer than this one.
        done_bytes: How much of the file was read so far.
    """

    address: str
    time: float
    position: int
    cause: Cause | None = None
    leads_to: str | None = None
    leads_before: float | None = None
    done_bytes: int = 0


class PageFile(ABC):
    """A file that holds captures."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @abstractmethod
    def captures(self, wanted: Callable[[str], bool]) -> Iterator[Capture | Rejected]:
        """What is in the file: all pages, whatever else stands at an address that is wanted, and what cannot be read.

        Bodies are looked at only where the address is wanted.
        """

    @abstractmethod
    def body(self, position: int) -> bytes:
        """The page of a capture, in UTF-8 or an encoding that it declares itself.

        Raises:
            BadBody: It cannot be had.
        """


def fault_of(read: Callable[[], bytes]) -> Cause | None:
    """Why a body cannot be had; None if it can."""
    try:
        read()
    except BadBody as error:
        return error.cause
    return None


_HTML = ("text/html", "application/xhtml+xml")
_GZIP_MAGIC = b"\x1f\x8b"
_BYTE_ORDER_MARKS = (codecs.BOM_UTF8, codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_AS_BROWSERS_READ = {"iso8859-1": "cp1252", "ascii": "cp1252"}  # Python's names; browsers know no Latin-1
_CHUNK_SIZE = re.compile(rb"[^\S\n]*([0-9a-fA-F]{1,16})[^\S\n]*(?:;[^\n]{0,1000})?\n")
_BLANKS = b" \t\r\n\f\x00\xef\xbb\xbf"


def is_html(content_type: str, body: bytes) -> bool:
    """Whether a response is a page, by its type, or where it has none by how it begins.

    >>> is_html("text/html; charset=utf-8", b""), is_html("", b" <!doctype html>"), is_html("application/json", b"<")
    (True, True, False)
    """
    kind = content_type.partition(";")[0].strip().lower()
    return kind in _HTML if kind else body[:1024].lstrip(_BLANKS).startswith(b"<")


def charset_of(content_type: str) -> str:
    """
    >>> charset_of('text/html; charset="UTF-8"'), charset_of("text/html")
    ('utf-8', '')
    """
    message = Message()
    message["content-type"] = " ".join(content_type.split())
    try:
        return message.get_content_charset("")
    except (LookupError, ValueError):  # of a parameter in several pieces
        return ""


def as_utf8(body: bytes, charset: str) -> bytes:
    """A page in UTF-8 where its charset is declared beside it; else as it is, to be read as it says itself."""
    if body.startswith(_BYTE_ORDER_MARKS):
        return body
    try:
        name = codecs.lookup(charset).name
        if not name.startswith("utf-8"):
            return body.decode(_AS_BROWSERS_READ.get(name, name), "replace").encode("utf-8", "replace")
    except (LookupError, ValueError):  # no charset, or one that nobody knows; one that is no text encoding
        return body
    return body


def joined_chunks(body: bytes) -> bytes:
    """The body of a response whose transfer encoding is `chunked`; one whose chunks were joined already as it is.

    Raises:
        BadBody: It ends before its last chunk.
    """
    chunks: list[bytes] = []
    position = 0
    while match := _CHUNK_SIZE.match(body, position):
        size = int(match[1], 16)
        if not size:
            return b"".join(chunks)
        chunks.append(body[match.end() : match.end() + size])
        position = match.end() + size + len(b"\r\n")
        if position > len(body):
            break
    if not chunks:
        return body
    raise BadBody(Cause.TRUNCATED, f"after {min(position, len(body)):,} bytes")


def unpacked(body: bytes, encodings: str) -> bytes:
    """A body without its content encodings (`gzip`, `deflate`, `br`), the last of which was applied last.

    Some archives keep the header of a body that they have unpacked: what is not packed stays as it is.

    Raises:
        BadBody: It is damaged, too long, or packed in another way.
    """
    for encoding in reversed([name.strip().lower() for name in encodings.split(",")]):
        if encoding in ("gzip", "x-gzip"):
            body = _inflated(body, 16 + zlib.MAX_WBITS) if body[:2] == _GZIP_MAGIC else body
        elif encoding == "deflate":
            body = _deflated(body)
        elif encoding == "br":
            body = _brotli(body)
        elif encoding not in ("", "identity"):
            raise BadBody(Cause.UNDECODABLE, f"its encoding {encoding[:20]!r} is not read")
        if len(body) > MAX_BYTES:
            raise BadBody(Cause.TOO_LARGE, f"more than {MAX_BYTES:,} bytes")
    return body


def _deflated(body: bytes) -> bytes:
    """Servers send it with or without zlib's header."""
    for bits in (zlib.MAX_WBITS, -zlib.MAX_WBITS):
        try:
            return _inflated(body, bits)
        except BadBody as error:
            if error.cause != Cause.UNDECODABLE:
                raise
    return _plain_page(body, "deflate")


def _inflated(body: bytes, bits: int) -> bytes:
    stream = zlib.decompressobj(bits)
    try:
        content = stream.decompress(body, MAX_BYTES + 1)
    except zlib.error as error:
        raise BadBody(Cause.UNDECODABLE, str(error)) from error
    if not stream.eof and len(content) <= MAX_BYTES:
        raise BadBody(Cause.TRUNCATED, "it is packed, and its end is missing")
    return content


def _brotli(body: bytes) -> bytes:
    try:
        import brotli  # noqa: PLC0415 - the extra warc is optional
    except ImportError as error:
        raise MissingExtra("pages packed by brotli need its package: pip install 'shop-r1[warc]'") from error
    stream = brotli.Decompressor()
    try:
        pieces = [stream.process(body, output_buffer_limit=MAX_BYTES)]
        size = len(pieces[0])
        while not stream.is_finished() and size <= MAX_BYTES:
            if stream.can_accept_more_data():
                raise BadBody(Cause.TRUNCATED, "it is packed, and its end is missing")
            pieces.append(stream.process(b"", output_buffer_limit=MAX_BYTES))
            size += len(pieces[-1])
    except brotli.error:
        return _plain_page(body, "br")
    return b"".join(pieces)


def _plain_page(body: bytes, encoding: str) -> bytes:
    if is_html("", body):
        return body
    raise BadBody(Cause.UNDECODABLE, f"it is said to be packed by {encoding!r}, and is not")
