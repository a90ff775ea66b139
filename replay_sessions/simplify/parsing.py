"""Parses the bytes of a page as a browser does: encoding and tree; and finds the nodes that the next steps need."""

import re
from typing import NamedTuple

from selectolax.lexbor import LexborHTMLParser, LexborNode, SelectolaxError

from replay_sessions.foundation.errors import BadSession

MAX_BYTES = 256 * 1024 * 1024
_MOST_OPEN = 20_000  # a browser nests 512 elements
_SCRIPT = re.compile(rb"<script[\s>].*?(?:</script|\Z)", re.IGNORECASE | re.DOTALL)
# Not elements without end tags, those that the next of their kind ends, and closed shapes of drawings.
_TAG = re.compile(
    rb"<(/?)(?!(?:area|base|br|col|embed|hr|img|input|link|meta|source|track|wbr|dd|dt|li|optgroup|option|p|td|th|tr)"
    rb"[\s/>])(?!(?:circle|ellipse|image|line|path|poly\w+|rect|stop|use)\b[^<>]*/>)[a-z]",
    re.IGNORECASE,
)
_UNSEEN = re.compile(
    rb"(<script[\s>].*?</script|<!--.*?-->)|<noscript[\s>].*?</noscript\s*>", re.IGNORECASE | re.DOTALL
)
_DOCTYPE = re.compile(rb"(?:\s|<!--.*?-->)*<!doctype[^>]*>", re.IGNORECASE | re.DOTALL)
_DECLARED = re.compile(
    rb"<script[\s>].*?</script|<style[\s>].*?</style|<!--.*?-->|<meta\s[^>]*?charset\s*=[\s\"']*([\w.:-]+)",
    re.IGNORECASE | re.DOTALL,
)
# Chrome's MHTML files have `shadowmode`.
_LANDMARKS = "style, details, template[shadowrootmode], template[shadowmode], iframe[srcdoc], [aria-labelledby]"


class Landmarks(NamedTuple):
    """Nodes of a page that are needed before the walk, each list in the order of the page."""

    styles: list[LexborNode]
    details: list[LexborNode]
    labelled: list[LexborNode]  # elements with `aria-labelledby`
    shadow_roots: list[LexborNode]  # templates of shadow trees
    frames: list[LexborNode]  # frames with a document in `srcdoc`


def parse_document(source: bytes) -> LexborHTMLParser:
    """Parses a page as a browser does, except its shadow trees.

    Bytes that are valid UTF-8 are read as UTF-8, even if the page declares another encoding. Recorders that save a page
    from the browser write UTF-8 and leave the original `<meta charset>` in it.

    Raises:
        BadSession: The page is too large or too deep, or the parser fails.
    """
    if len(source) > MAX_BYTES:
        raise BadSession(f"a page of {len(source)} bytes: at most {MAX_BYTES} are read; leave it out or cut it")
    # Lexbor's time grows with the square of the depth.
    if source.count(b"<") - 2 * source.count(b"</") > _MOST_OPEN and _count_open(source) > _MOST_OPEN:
        raise BadSession(f"a page with more than {_MOST_OPEN:,} tags left open: it is damaged; leave it out")
    is_utf8 = _is_utf8(source)
    source = _without_noscript(source if is_utf8 else _with_early_charset(source))
    try:
        document = LexborHTMLParser(source, encoding=not is_utf8)
    except UnicodeError:
        document = LexborHTMLParser(source, encoding=False)
    except SelectolaxError as error:
        raise BadSession(f"a page of {len(source)} bytes that cannot be parsed ({error}): leave it out") from error
    while document.root is not None and (before := document.root.prev) is not None:
        before.remove()  # selectors would count a doctype as the first child
    return document


def _count_open(source: bytes) -> int:
    """Returns how many more start tags than end tags a page has, without elements that need no end tag."""
    return sum(1 - 2 * bool(end) for end in _TAG.findall(_SCRIPT.sub(b"", source)))


def _with_early_charset(source: bytes) -> bytes:
    """Moves the declared encoding to the beginning of a page, because lexbor looks at the first 1,024 bytes only."""
    declared = (match[1] for match in _DECLARED.finditer(source))
    if not (charset := next(filter(None, declared), None)):
        return source
    doctype = _DOCTYPE.match(source)
    start = doctype.end() if doctype else 0
    return source[:start] + b"<meta charset=%s>" % charset + source[start:]


def _without_noscript(source: bytes) -> bytes:
    """Removes `<noscript>` from the head of a page, because lexbor parses it, and an image in it would end the head."""
    end = source.find(b"<body")
    end = source.find(b"</head") if end < 0 else end
    if source.find(b"<noscript", 0, max(end, 0)) < 0:
        return source
    return _UNSEEN.sub(lambda match: match[1] or b"", source[:end]) + source[end:]


def find_landmarks(tree: LexborHTMLParser | LexborNode) -> Landmarks:
    """Finds the landmarks of a page by a single search, because each search goes through the entire page."""
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


def _is_utf8(source: bytes) -> bool:
    try:
        source.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True
