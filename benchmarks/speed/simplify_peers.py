"""Prunes pages with BeautifulSoup and lxml, as a peer of the simplifier.

It does the same as BrowserGym's pruning: it removes scripts and bare wrappers and prints the rest. In BrowserGym the
browser provides names and hidden nodes.
"""

import re

from bs4 import BeautifulSoup

_USELESS = frozenset({"br", "link", "script", "style"})
_WRAPPERS = frozenset({"div", "i", "p", "span"})


def prune(source: bytes) -> str:
    """Returns a page without scripts, styles, comments and wrappers without attributes."""
    page = re.sub(r"<!--(.*?)-->", "", source.decode("utf-8", "replace").replace("\n", " "))
    soup = BeautifulSoup(page, "lxml")
    for tag in reversed(soup.find_all()):
        if tag.name in ("body", "html"):
            tag.unwrap()
        elif tag.name in _USELESS:
            tag.decompose()
        elif tag.name in _WRAPPERS and not tag.attrs:
            if tag.contents:
                tag.unwrap()
            else:
                tag.decompose()
    return str(soup.prettify())
