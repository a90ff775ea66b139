"""The bytes of a page -> the document that a browser makes of them: characters, tree, shadow roots; what stands out.

Pages that no browser would show, and that would take a parser minutes or gigabytes, are kept away. HTML's own rules
make a parser look through all open elements at every tag, repeat unclosed `<font color=…>` in every block that follows,
and compare every attribute of a tag with all others: a page of a megabyte that is made of nothing else costs minutes.
Ordinary pages pass with two looks that cost next to nothing; what looks odd is counted out.
"""

import re
from typing import NamedTuple

import numpy as np
from selectolax.lexbor import LexborHTMLParser, LexborNode, SelectolaxError

from replay_sessions.foundation.errors import BadSession

MAX_BYTES = 256 * 1024 * 1024
_MAX_DEPTH = 10_000
_MAX_ATTRIBUTES = 5_000
_MAX_OPTIONS = 20_000  # each makes a parser look at all others of its list
_MAX_REPEATED = 8_000_000  # unclosed formatting elements times tags: how many elements they may become
_FEW_TAGS = 25_000  # pages with fewer cannot nest so deep that it matters
_WINDOW = 50_000
_CHUNK = 1_000_000

_TAG = re.compile(rb"<(/?)([a-zA-Z][a-zA-Z0-9-]*)([^<>]*)")
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

_UNSEEN = re.compile(
    rb"(<script[\s>].*?</script|<!--.*?-->)|<noscript[\s>].*?</noscript\s*>", re.IGNORECASE | re.DOTALL
)
_DECLARING = 1024  # how much of a page may declare its encoding, as HTML says
_BYTE_ORDER_MARKS = (b"\xef\xbb\xbf", b"\xfe\xff", b"\xff\xfe")
_OTHER_ENCODING = re.compile(rb"charset(?!\s*=\s*[\"']?utf-8[\"'\s/>])")
# MHTML that Chrome saves says `shadowmode`.
_LANDMARKS = "style, details, template[shadowrootmode], template[shadowmode], iframe[srcdoc], [aria-labelledby]"


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
            if attributes[-1:] == b"/" and (opened.get(b"svg") or opened.get(b"math")):
                continue
            if slash:
                if opened.get(name, 0):
                    opened[name] -= 1
                    depth -= 1
                if name in repeated:
                    repeated[name] = max(0, repeated[name] - 1)
                continue
            opened[name] = opened.get(name, 0) + 1
            depth += 1
            if name in _FORMATTING and attributes.strip(b" \t\r\n\f/"):
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


class Landmarks(NamedTuple):
    """What is to be known of a page before it is walked, each in the order of the page."""

    styles: list[LexborNode]
    details: list[LexborNode]
    labelled: list[LexborNode]  # what other elements are the labels of
    shadow_roots: list[LexborNode]  # their templates
    frames: list[LexborNode]  # whose documents stand in their `srcdoc`


def parse_document(source: bytes) -> LexborHTMLParser:
    """Parses a page as a browser does, but for its shadow trees; as UTF-8 if it is that, else in its own encoding.

    Recorders that save a page as the browser holds it write UTF-8 and leave the `<meta charset>` of old in it.

    Raises:
        BadSession: The parser gave it up.
    """
    source = _without_noscript(source)
    # A page that declares UTF-8 or nothing is read as UTF-8 in any case; most are, and need not be tried.
    declares_other = _declares_other_encoding(source[:_DECLARING].lower())
    try:
        document = LexborHTMLParser(source, encoding=declares_other and (source.isascii() or not _is_utf8(source)))
    except UnicodeError:
        document = LexborHTMLParser(source, encoding=False)
    except SelectolaxError as error:
        raise BadSession(f"a page of {len(source)} bytes that cannot be parsed ({error}): leave it out") from error
    while document.root is not None and (before := document.root.prev) is not None:
        before.remove()  # a doctype would count as the first child where selectors are matched
    return document


def _without_noscript(source: bytes) -> bytes:
    """A page without the `<noscript>` in its head: lexbor reads that, and with an image in it the head ends there."""
    end = source.find(b"<body")
    end = source.find(b"</head") if end < 0 else end
    if source.find(b"<noscript", 0, max(end, 0)) < 0:
        return source
    return _UNSEEN.sub(lambda match: match[1] or b"", source[:end]) + source[end:]


def find_landmarks(tree: LexborHTMLParser | LexborNode) -> Landmarks:
    """Finds them by one search: each search goes through all of a page."""
    landmarks = Landmarks([], [], [], [], [])
    for node in tree.css(_LANDMARKS):
        if "aria-labelledby" in node.attributes:
            landmarks.labelled.append(node)
        if node.tag == "style":
            landmarks.styles.append(node)
        elif node.tag == "details":
            landmarks.details.append(node)
        elif node.tag == "template":
            landmarks.shadow_roots.append(node)
        elif node.tag == "iframe":
            landmarks.frames.append(node)
    return landmarks


def _declares_other_encoding(head: bytes) -> bool:
    """Whether the beginning of a page, in small letters, may declare an encoding that is not UTF-8."""
    return head.startswith(_BYTE_ORDER_MARKS) or b"<?xml" in head or _OTHER_ENCODING.search(head) is not None


def _is_utf8(source: bytes) -> bool:
    try:
        source.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True
