"""Keeps pages away that no browser would show and that would take a parser minutes or gigabytes.

HTML's own rules make a parser look through all open elements at every tag, repeat unclosed `<font color=…>` in every
block that follows, and compare every attribute of a tag with all others: a page of a megabyte that is made of nothing
else costs minutes. Ordinary pages pass with two looks that cost next to nothing; what looks odd is counted out.
"""

import re

import numpy as np

from replay_sessions.foundation.errors import BadSession

MAX_BYTES = 256 * 1024 * 1024
_MAX_DEPTH = 10_000
_MAX_ATTRIBUTES = 5_000
_MAX_OPTIONS = 20_000  # each makes a parser look at all others of its list
_MAX_REPEATED = 8_000_000  # unclosed formatting elements times tags: how many elements they may become
_FEW_TAGS = 25_000  # pages with fewer cannot nest so deep that it matters
_WINDOW = 50_000
_CHUNK = 1_000_000

_TAG = re.compile(rb"<(/?)([a-zA-Z][a-zA-Z0-9-]*)(\s+[^>])?")
_QUOTED = re.compile(rb"""=\s*(?:"[^"]*+(?:"|\Z)|'[^']*+(?:'|\Z))""")
# Tags that end by themselves, and those that are repeated in later blocks while they are open.
_SELF_CLOSING = frozenset(
    b"area base br col dd dt embed hr img input li link meta option p param rp rt source tbody td tfoot th thead tr "
    b"track wbr".split()
)
_FORMATTING = frozenset(b"b big code em font i s small strike strong tt u".split())
# The first two letters of their tags, a blank after those of one letter; a few other tags begin so too. All with
# the bit set that makes letters lower case.
_LOWER = 0x20
_IS_BEGINNING = np.zeros(0x10000, dtype=bool)
_IS_BEGINNING[[
    (name + blank)[0] << 8 | (name + blank)[1] | _LOWER for name in _FORMATTING for blank in (b" ", b"\t", b"\n", b"\f")
]] = True  # fmt: skip


def check_bounds(source: bytes) -> None:
    """Raises BadSession for a page that is too large, nests too deep, or has a tag with too many attributes."""
    if len(source) > MAX_BYTES:
        raise BadSession(f"a page of {len(source)} bytes: at most {MAX_BYTES} are read; leave it out or cut it")
    start = last_end = 0
    while start < len(source) - _WINDOW:
        end = source.find(b">", start, start + _WINDOW)
        if end < 0:
            end = source.find(b">", start + _WINDOW)
            end = len(source) if end < 0 else end
            _check_attributes(source, last_end, start, end)
            start = end
        else:
            start += _WINDOW
        last_end = end
    if _may_be_odd(source) and _is_odd(source) and _is_odd(_without_scripts(source)):
        raise BadSession(
            f"a page with more than {_MAX_DEPTH} elements inside each other, too many left open, or more than "
            f"{_MAX_OPTIONS} options: it is damaged; leave it out"
        )


def _check_attributes(source: bytes, last_end: int, start: int, end: int) -> None:
    """Checks the tag around a stretch without `>`, if there is one; an earlier tag may end at `last_end`."""
    begin = source.rfind(b"<", last_end, start + 1)
    if begin < 0 or not source[begin + 1 : begin + 2].isalpha() or source.find(b">", begin, start) >= 0:
        return
    attributes = len(_QUOTED.sub(b"", source[begin:end]).split())
    if attributes > _MAX_ATTRIBUTES:
        raise BadSession(f"a page with a tag of more than {_MAX_ATTRIBUTES} attributes: it is damaged; leave it out")


def _may_be_odd(source: bytes) -> bool:
    """Whether a page has so many tags that it takes a closer look to tell."""
    letters = np.frombuffer(source, dtype=np.uint8)
    starts = np.flatnonzero(letters[:-2] == ord("<"))
    tags = len(starts)
    if tags * tags < _MAX_REPEATED:
        return False
    first, second = (letters[starts + offset] | _LOWER for offset in (1, 2))
    formatting = int(_IS_BEGINNING[first.astype(np.uint16) << 8 | second].sum())
    return tags > _FEW_TAGS or tags * formatting > _MAX_REPEATED


def _is_odd(source: bytes) -> bool:
    """Whether the tags of a page, counted out, nest too deep or leave too much open."""
    opened: dict[bytes, int] = {}
    repeated: dict[bytes, int] = {}
    depth = tags = options = 0
    for start in range(0, len(source), _CHUNK):
        for slash, written, attributes in _TAG.findall(source, start, start + _CHUNK):
            name = written.lower()
            if name in _SELF_CLOSING:
                options += name == b"option"
                continue
            tags += 1
            if slash:
                if opened.get(name, 0):
                    opened[name] -= 1
                    depth -= 1
                if name in repeated:
                    repeated[name] = max(0, repeated[name] - 1)
                continue
            opened[name] = opened.get(name, 0) + 1
            depth += 1
            if attributes and name in _FORMATTING:
                repeated[name] = repeated.get(name, 0) + 1
            if (
                depth > _MAX_DEPTH
                or options > _MAX_OPTIONS
                or (repeated and tags * sum(repeated.values()) > _MAX_REPEATED)
            ):
                return True
    return options > _MAX_OPTIONS


def _without_scripts(source: bytes) -> bytes:
    """A page without the code in it, where `a<b` is no tag."""
    lowered = source.lower()
    parts: list[bytes] = []
    done = 0
    while (start := lowered.find(b"<script", done)) >= 0 and (end := lowered.find(b"</script", start)) >= 0:
        parts.append(source[done:start])
        done = end
    return b"".join((*parts, source[done:]))
