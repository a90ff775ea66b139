"""Normalizes the addresses of pages, so that a logged address can be compared with an address in a page.

Two addresses denote the same page if they only differ in the fragment, in parameters that tell where a visitor came
from (`utm_source`, `gclid` …), in the case of scheme and host, in a default port, or in how characters are escaped. The
order of parameters counts, because the shop may depend on it.
"""

import re
from urllib.parse import quote, urljoin, urlsplit

_TRACKING_PARAMETER = re.compile(
    r"(?:utm_[^=]*|gad_[^=]*|gclid|gclsrc|dclid|gbraid|wbraid|_gl|_ga|fbclid|msclkid|ttclid|twclid|yclid|srsltid|igshid"
    r"|mc_cid|mc_eid|_hsenc|_hsmi)(?:=|$)"
)
_DEFAULT_PORTS = {"http": ":80", "https": ":443"}
_SCHEMES = "about blob cid data dns javascript mailto tel urn whois"
_NO_PAGES = _SCHEMES.split()
_ESCAPE = re.compile(r"%[0-9a-fA-F]{2}")
_UNESCAPED = "%/:@!$&'()*+,;=~-._?[]|"
_LONGEST = 16_384  # characters; browsers and servers refuse longer ones


def plain_address(address: str, base: str) -> str | None:
    """Returns a page's address in normal form, or None if it is not the address of a page.

    >>> plain_address("HTTPS://Shop.example:443/a b?q=red&utm_source=mail#top", base="")
    'https://shop.example/a%20b?q=red'
    >>> plain_address("../2?gclid=x", base="https://shop.example/p/1")
    'https://shop.example/2'
    >>> plain_address("data:text/html,x", base="") is None
    True
    """
    address = address.strip()
    if not address or len(address) > _LONGEST or address.partition(":")[0].lower() in _NO_PAGES:
        return None
    try:
        parts = urlsplit(urljoin(base, address) if base else address)
    except ValueError:
        return None
    host = parts.netloc.rpartition("@")[2].lower()
    if not parts.scheme or not (host or parts.path):
        return None
    host = _ascii(host.removesuffix(_DEFAULT_PORTS.get(parts.scheme, " ")))
    pairs = [pair for pair in parts.query.split("&") if pair and not _TRACKING_PARAMETER.match(pair)]
    query = f"?{_escaped('&'.join(pairs))}" if pairs else ""
    return f"{parts.scheme}://{host}{_escaped(parts.path) or '/'}{query}"


def _escaped(text: str) -> str:
    return _ESCAPE.sub(lambda escape: escape[0].upper(), quote(text, safe=_UNESCAPED, errors="replace"))


def _ascii(host: str) -> str:
    """Returns a host in the ASCII form of network protocols.

    >>> _ascii("müller.example")
    'xn--mller-kva.example'
    """
    if host.isascii():
        return host
    try:
        return host.encode("idna").decode()
    except UnicodeError:
        return host
