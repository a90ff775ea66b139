"""Captured pages: what a file has of each, and why one may be of no use.

A file of captures (HAR, WARC, MHTML, or a page of HTML that a list says the address of) is read twice: once from
beginning to end for what is in it (`captures`), which is what an index is made of, and then page by page, where a
session needs one (`body`).
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from enum import StrEnum
from pathlib import Path

import msgspec

from replay_sessions.store.manifest import Rejected


class Cause(StrEnum):
    """Why an event has no page."""

    NO_ADDRESS = "no address"
    NO_TIME = "no time"
    NO_FILE = "no such file of captures"
    NO_CAPTURE = "no capture of its address"
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
