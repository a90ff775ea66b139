"""What logged events and captured pages are joined by: the addresses of pages and points in time.

Two addresses are of one page if they differ in nothing but the fragment, parameters that only tell where a visitor came
from (`utm_source`, `gclid` …), the case of scheme and host, a default port, or how characters are escaped. The order of
parameters counts: it is the shop's.

Logs write times as ISO 8601 (with or without zone) or as numbers since some start. Where only their order counts,
numbers need no unit; a log that mixes both, or leaves some out, is kept in the order of the file where it says nothing.
Where pages are found by time (`moment`), numbers are since 1970, and their size gives their unit.
"""

import re
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from functools import lru_cache
from hashlib import blake2b
from typing import TypeVar
from urllib.parse import quote, urljoin, urlsplit

import msgspec

Event = TypeVar("Event")
TRACKING_PARAMETERS = (
    "utm_*", "gclid", "gclsrc", "dclid", "gbraid", "wbraid", "gad_*", "_gl", "_ga", "fbclid", "msclkid", "ttclid",
    "twclid", "yclid", "srsltid", "igshid", "mc_cid", "mc_eid", "_hsenc", "_hsmi",
)  # fmt: skip

_DEFAULT_PORTS = {"http": ":80", "https": ":443"}
_NO_PAGES = ("about", "blob", "cid", "data", "dns", "javascript", "mailto", "tel", "urn", "whois")
_ESCAPE = re.compile(r"%[0-9a-fA-F]{2}")
_UNESCAPED = "%/:@!$&'()*+,;=~-._?[]|"
_LONGEST = 16_384  # characters; browsers and servers refuse longer ones
_UNITS = (1, 1e3, 1e6, 1e9)  # numbers in a second
_FIRST = 1e8  # seconds: in 1973; a hundred times that is in 2286


class AddressReader(msgspec.Struct, frozen=True):
    """Brings addresses into one form.

    Attributes:
        ignored: Parameters that do not tell pages apart; `*` stands for anything.
    """

    ignored: tuple[str, ...] = TRACKING_PARAMETERS

    def plain(self, address: str, base: str = "") -> str | None:
        """An address in the one form; None where it is none of a page.

        >>> AddressReader().plain("HTTPS://Shop.example:443/a b?q=red&utm_source=mail#top")
        'https://shop.example/a%20b?q=red'
        >>> AddressReader().plain("../2?gclid=x", base="https://shop.example/p/1")
        'https://shop.example/2'
        >>> AddressReader().plain("data:text/html,x") is None
        True
        """
        try:
            parts = urlsplit(urljoin(base, address.strip()) if base else address.strip())
            host = parts.netloc.rpartition("@")[2].lower()
            if not is_page_address(address) or not parts.scheme or not (host or parts.path):
                return None
        except ValueError:
            return None
        host = _ascii(host.removesuffix(_DEFAULT_PORTS.get(parts.scheme, " ")))
        pairs = [
            pair for pair in parts.query.split("&") if pair and not _is_ignored(pair.partition("=")[0], self.ignored)
        ]
        query = f"?{_escaped('&'.join(pairs))}" if pairs else ""
        return f"{parts.scheme}://{host}{_escaped(parts.path) or '/'}{query}"


@lru_cache(10_000)  # a log may hold any number of names
def _is_ignored(parameter: str, ignored: tuple[str, ...]) -> bool:
    return any(fnmatchcase(parameter, pattern) for pattern in ignored)


def is_page_address(address: str) -> bool:
    """Whether a page may have been loaded from there.

    >>> is_page_address("https://shop.example/"), is_page_address("about:blank"), is_page_address("")
    (True, False, False)
    """
    scheme = address.strip().partition(":")[0].lower()
    return bool(address.strip()) and len(address) <= _LONGEST and scheme not in _NO_PAGES


def key_of(plain: str) -> int:
    """A signed number of 64 bits for an address in the one form: an index of millions holds no texts."""
    return int.from_bytes(blake2b(plain.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "big", signed=True)


def _escaped(text: str) -> str:
    return _ESCAPE.sub(lambda escape: escape[0].upper(), quote(text, safe=_UNESCAPED, errors="replace"))


def _ascii(host: str) -> str:
    """A host as it goes over the wire.

    >>> _ascii("müller.example")
    'xn--mller-kva.example'
    """
    if host.isascii():
        return host
    try:
        return host.encode("idna").decode()
    except UnicodeError:
        return host


def seconds(time: str | float | None) -> float | None:
    """A point in time as a number that orders it among others of the same log; None where it cannot be read.

    >>> seconds("2025-04-14T21:52:57.792Z") == seconds("2025-04-14 23:52:57.792+02:00")
    True
    >>> seconds("17.5"), seconds("yesterday"), seconds(None)
    (17.5, None, None)
    """
    if time is None:
        return None
    try:
        number = float(time)
        return number if abs(number) < float("inf") else None  # "nan" and "inf" order nothing
    except ValueError:
        pass
    try:
        moment = datetime.fromisoformat(str(time).strip())
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        return None


def moment(time: str | None) -> float | None:
    """A point in time as seconds since 1970; None where it cannot be read, or is none of a calendar.

    Numbers are seconds, milliseconds, microseconds or nanoseconds: from 1973 to 2286 their sizes do not overlap.

    >>> moment("2025-04-14T21:52:57Z") == moment("1744667577") == moment("1744667577000000")
    True
    >>> moment("17.5") is None
    True
    """
    number = seconds(time)
    if number is None:
        return None
    try:
        float(time or "")
    except ValueError:
        return number  # of a calendar
    for unit in _UNITS:
        if _FIRST <= number / unit < 100 * _FIRST:
            return number / unit
    return None


def in_time_order(events: Sequence[Event], time_of: Callable[[Event], str | float | None]) -> list[Event]:
    """The events by time; equal times keep their order, and an event without one stays behind the one before it.

    >>> in_time_order(["2 b", "1 a", "? c", "1 d"], lambda event: event.split()[0])
    ['1 a', '? c', '1 d', '2 b']
    """
    latest = float("-inf")

    def time_up_to(event: Event) -> float:
        nonlocal latest
        time = seconds(time_of(event))
        latest = latest if time is None else time
        return latest

    return sorted(events, key=time_up_to)
