"""The bytes of a page -> the document that a browser makes of them: characters, tree, shadow roots; what stands out."""

import re
from typing import NamedTuple

from selectolax.lexbor import LexborHTMLParser, LexborNode, SelectolaxError

from replay_sessions.foundation.errors import BadSession

_SHADOW_ROOT = re.compile(rb"<template(?=[\s/])[^>]{0,1000}?\sshadowrootmode\s*=", re.IGNORECASE)
_TEMPLATE = re.compile(rb"<(/?)template(?=[\s/>])", re.IGNORECASE)
_SHADOW_TAG = b"shadow-root"
_DECLARING = 1024  # how much of a page may declare its encoding, as HTML says
_BYTE_ORDER_MARKS = (b"\xef\xbb\xbf", b"\xfe\xff", b"\xff\xfe")
_OTHER_ENCODING = re.compile(rb"charset(?!\s*=\s*[\"']?utf-8[\"'\s/>])")
_LANDMARKS = "style, dialog, details, template[shadowrootmode], [aria-labelledby]"


class Landmarks(NamedTuple):
    """What is to be known of a page before it is walked, each in the order of the page."""

    styles: list[LexborNode]
    closing: list[LexborNode]  # dialogs and details, which may be closed
    labelled: list[LexborNode]  # what other elements are the labels of
    shadow_roots: list[LexborNode]


def parse(source: bytes) -> tuple[LexborHTMLParser, Landmarks]:
    """Parses a page as a browser does, shadow roots included, and finds its landmarks.

    Raises:
        BadSession: the parser gave it up.
    """
    document = _parsed(source)
    landmarks = _landmarks_of(document)
    if landmarks.shadow_roots:
        document = _parsed(_open_shadow_roots(source))
        landmarks = _landmarks_of(document)
    return document, landmarks


def _parsed(source: bytes) -> LexborHTMLParser:
    """A page as UTF-8 if it is that, else in the encoding that it declares.

    Recorders that save a page as the browser holds it write UTF-8 and leave the `<meta charset>` of old in it.
    """
    # A page that declares UTF-8 or nothing is read as UTF-8 in any case; most are, and need not be tried.
    declares_other = _declares_other_encoding(source[:_DECLARING].lower())
    try:
        return LexborHTMLParser(source, encoding=declares_other and (source.isascii() or not _is_utf8(source)))
    except UnicodeError:
        return LexborHTMLParser(source, encoding=False)
    except SelectolaxError as error:
        raise BadSession(f"a page of {len(source)} bytes that cannot be parsed ({error}): leave it out") from error


def _landmarks_of(document: LexborHTMLParser) -> Landmarks:
    """Finds them by one search: each search goes through all of a page."""
    landmarks = Landmarks([], [], [], [])
    for node in document.css(_LANDMARKS):
        if "aria-labelledby" in node.attributes:
            landmarks.labelled.append(node)
        if node.tag == "style":
            landmarks.styles.append(node)
        elif node.tag in ("dialog", "details"):
            landmarks.closing.append(node)
        elif "shadowrootmode" in node.attributes:
            landmarks.shadow_roots.append(node)
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


def _open_shadow_roots(source: bytes) -> bytes:
    """Makes a part of the page of each `<template shadowrootmode=…>`, as a browser does while it parses."""
    roots = {match.start() for match in _SHADOW_ROOT.finditer(source)}
    parts: list[bytes] = []
    opened: list[bool] = []  # for each open template, whether it is a shadow root
    done = 0
    for tag in _TEMPLATE.finditer(source):
        if not tag[1]:
            opened.append(tag.start() in roots)
            is_root = opened[-1]
        else:
            is_root = bool(opened) and opened.pop()
        if is_root:
            parts += [source[done : tag.start()], b"<", tag[1], _SHADOW_TAG]
            done = tag.end()
    return b"".join((*parts, source[done:]))
