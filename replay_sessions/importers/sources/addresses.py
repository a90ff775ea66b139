"""Addresses of pages, compared as browsers and trackers write them.

Two addresses are of one page if they differ in nothing but the fragment, parameters that only tell where a visitor came
from (`utm_source`, `gclid` …), the case of scheme and host, a default port, or how characters are escaped. The order of
parameters counts: it is the shop's.
"""

import re
from collections.abc import Collection
from fnmatch import fnmatchcase
from hashlib import blake2b
from urllib.parse import quote, urljoin, urlsplit

TRACKING_PARAMETERS = (
    "utm_*", "gclid", "gclsrc", "dclid", "gbraid", "wbraid", "gad_*", "_gl", "_ga", "fbclid", "msclkid", "ttclid",
    "twclid", "yclid", "srsltid", "igshid", "mc_cid", "mc_eid", "_hsenc", "_hsmi",
)  # fmt: skip

_DEFAULT_PORTS = {"http": ":80", "https": ":443"}
_NO_PAGES = ("about", "blob", "cid", "data", "dns", "javascript", "mailto", "tel", "urn", "whois")
_ESCAPE = re.compile(r"%[0-9a-fA-F]{2}")
_UNESCAPED = "%/:@!$&'()*+,;=~-._?[]|"
_LONGEST = 16_384  # characters; browsers and servers refuse longer ones


class AddressReader:
    """Brings addresses into one form.

    Args:
        ignored: Parameters that do not tell pages apart; `*` stands for anything.
    """

    def __init__(self, ignored: Collection[str] = TRACKING_PARAMETERS) -> None:
        self._ignored = tuple(ignored)
        self._is_ignored: dict[str, bool] = {}

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
        pairs = [pair for pair in parts.query.split("&") if pair and not self._ignores(pair.partition("=")[0])]
        query = f"?{_escaped('&'.join(pairs))}" if pairs else ""
        return f"{parts.scheme}://{host}{_escaped(parts.path) or '/'}{query}"

    def _ignores(self, parameter: str) -> bool:
        ignores = self._is_ignored.get(parameter)
        if ignores is None:
            ignores = any(fnmatchcase(parameter, pattern) for pattern in self._ignored)
            if len(self._is_ignored) < 10_000:  # a log may hold any number of names
                self._is_ignored[parameter] = ignores
        return ignores


def is_page_address(address: str) -> bool:
    """Whether a page may have been loaded from there.

    >>> is_page_address("https://shop.example/"), is_page_address("about:blank"), is_page_address("")
    (True, False, False)
    """
    scheme = address.strip().partition(":")[0].lower()
    return bool(address.strip()) and len(address) <= _LONGEST and scheme not in _NO_PAGES


def key_of(plain: str) -> int:
    """A number of 64 bits for an address in the one form: an index of millions holds no texts."""
    return int.from_bytes(blake2b(plain.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "big")


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
