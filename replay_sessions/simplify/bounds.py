"""Keeps pages away that no browser would show and that would take a parser minutes or gigabytes.

HTML's own rules make a parser look through all open elements at every tag, repeat unclosed `<font color=…>` in every
block that follows, and compare every attribute of a tag with all others: a page of a megabyte that is made of nothing
else costs minutes. Ordinary pages pass with two looks that cost next to nothing; what looks odd is counted out.
"""

import re

from replay_sessions.errors import BadSession

__all__ = ["MAX_BYTES", "check_bounds"]

MAX_BYTES = 256 * 1024 * 1024
_MAX_DEPTH = 10_000
_MAX_ATTRIBUTES = 5_000
_MAX_REPEATED = 10_000_000  # unclosed formatting elements times tags: how many elements they may become
_FEW_TAGS = 20_000  # pages with fewer cannot nest so deep that it matters
_WINDOW = 50_000

_TAG = re.compile(rb"<(/?)([a-zA-Z][a-zA-Z0-9-]*)(\s+[^>])?")
# Tags that end by themselves, and those that are repeated in later blocks while they are open.
_SELF_CLOSING = frozenset(
    b"area base br col dd dt embed hr img input li link meta option p param rp rt source tbody td tfoot th thead tr "
    b"track wbr".split()
)
_FORMATTING = frozenset(b"b big code em font i s small strike strong tt u".split())


def check_bounds(source: bytes) -> None:
    """Raises BadSession for a page that is too large, nests too deep, or has a tag with too many attributes."""
    if len(source) > MAX_BYTES:
        raise BadSession(f"a page of {len(source)} bytes: at most {MAX_BYTES} are read; leave it out or cut it")
    for start in range(0, len(source) - _WINDOW, _WINDOW):
        if source.find(b">", start, start + _WINDOW) < 0:
            _check_attributes(source, start)
    if source.count(b"<") > _FEW_TAGS:
        _check_nesting(source)


def _check_attributes(source: bytes, start: int) -> None:
    """Checks the tag around a stretch without `>`, if there is one."""
    begin = source.rfind(b"<", 0, start)
    if begin < 0 or not source[begin + 1 : begin + 2].isalpha() or source.find(b">", begin, start) >= 0:
        return
    attributes = len(source[begin : start + _WINDOW].split())
    if attributes > _MAX_ATTRIBUTES:
        raise BadSession(f"a page with a tag of more than {_MAX_ATTRIBUTES} attributes: it is damaged; leave it out")


def _check_nesting(source: bytes) -> None:
    opened: dict[bytes, int] = {}
    repeated: dict[bytes, int] = {}
    depth = tags = 0
    for match in _TAG.finditer(source):
        name = match[2].lower()
        if name in _SELF_CLOSING:
            continue
        tags += 1
        if match[1]:
            if opened.get(name, 0):
                opened[name] -= 1
                depth -= 1
            if repeated.get(name, 0):
                repeated[name] -= 1
            continue
        opened[name] = opened.get(name, 0) + 1
        depth += 1
        if match[3] and name in _FORMATTING:
            repeated[name] = repeated.get(name, 0) + 1
        if depth > _MAX_DEPTH or tags * sum(repeated.values()) > _MAX_REPEATED:
            raise BadSession(
                f"a page with more than {_MAX_DEPTH} elements inside each other, or too many left open: it is damaged; "
                "leave it out"
            )
