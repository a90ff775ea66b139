"""The page of a window -> HTML as a browser would have held it, for the simplifier, with a mark on one element.

Left out is what no shopper sees and what costs time: scripts, templates, outlines of drawings, pictures' data, style
sheets that neither show nor hide. A sheet that the recorder read (`_cssText`) is written as `<style>`, so what it hides
is hidden; but what was acted on was in sight, in a menu that opens under the pointer, say. A shadow tree is written as
the simplifier writes one; what is in an iframe stands in its place, without its styles, which would reach the page
around it.

A tick box or radio button with a label is written as shown, for shops hide it and draw the label instead, and a label
cannot be acted on by itself.

Little of a page changes between two presses, so what does not is kept as it was written, in pieces of some size; but
not around ticks and labels, which depend on each other, nor around what was acted on.

The mark is a class: another attribute could make something to act on of an `<a>` that leads nowhere.
"""

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from replay_sessions.importers.rrweb.events import Node, NodeType
from replay_sessions.importers.rrweb.tree import IFRAMES, Tree, ancestors, text_in

__all__ = ["MARK", "write_page"]

MARK = "shop-r1-acted-on"

_SKIPPED = frozenset({"applet", "base", "embed", "noscript", "object", "plaintext", "script", "template"})
_NOT_IN_FRAMES = frozenset({"head", "link", "meta", "style", "title"})
_FRAME_PARTS = frozenset({"body", "frameset", "html"})
_VOID = frozenset({"area", "basefont", "bgsound", "br", "col", "hr", "img", "input", "link", "meta", "source", "track",
                   "wbr"})  # fmt: skip
_UNUSUAL = frozenset({"label", "style"}) | _SKIPPED | _VOID | IFRAMES
_EATS_NEWLINE = frozenset({"listing", "pre", "textarea"})
_TICKED = frozenset({"checkbox", "radio"})
_LEFT_OUT = frozenset({"d", "imagesrcset", "points", "srcset"})
_SAY_NOTHING = frozenset({"class", "style"})  # where they are empty
_HIDING = frozenset({"hidden", "inert", "popover"})
_TAG = re.compile(r"[a-zA-Z][\w:.-]*")
_ATTRIBUTE = re.compile(r"[^\s\"'<>/=\0]+")
_HIDING_STYLE = re.compile(r"\b(?:display|visibility)\s*:[^;]*;?", re.IGNORECASE)
_LEAST_KEPT = 16  # pieces that are joined and kept as one
_SHOWN_STYLE = "display: revert; visibility: visible"
_WIDTH = re.compile(r"\(\s*(min|max)-width\s*:\s*(\d+(?:\.\d*)?|\.\d+)(px|r?em)\s*\)", re.IGNORECASE)
_STYLE_END = re.compile(r"</style", re.IGNORECASE)


def write_page(tree: Tree, acted_on: Node | None = None) -> str:  # noqa: C901, PLR0915 - the hot loop: calls would show
    """The page as HTML.

    Args:
        acted_on: The element that gets the mark. It was in sight, so nothing about it or what is around it hides it.
    """
    marked = None if acted_on is None else acted_on.id
    shown = {node.id for node in ancestors(acted_on)} if acted_on is not None else set()
    tree.writes += 1
    pieces = ["<!DOCTYPE html>"]
    ticks: list[tuple[int, Node, bool]] = []  # their places among the pieces, and whether they lie in labels
    labelled: set[Any] = set()
    frames = labels = 0  # how many are open
    unkept = 0  # how many elements began that are not to be kept, nor what is around them
    # End tags, what comes after them, the tags; then the elements, where they begin, and what was unkept before them.
    stack: list[tuple[str, Node | None, str, Node | None, int, int]] = []
    append, text_type, element_type = pieces.append, NodeType.TEXT, NodeType.ELEMENT
    node = tree.root.first
    while True:
        if node is None:
            if not stack:
                break
            end, node, tag, ended, start, unkept_before = stack.pop()
            append(end)
            if tag:
                frames -= tag in IFRAMES
                labels -= tag == "label"
            if ended is not None and unkept == unkept_before and len(pieces) - start >= _LEAST_KEPT:
                ended.whole = "".join(pieces[start:])
                pieces[start:] = [ended.whole]
            continue
        kind = node.type
        if kind == text_type:
            written = node.written
            if written is None:
                written = node.written = _escaped(node.textContent or "")
            append(written)
            node = node.next
            continue
        if node.whole is not None and node.id not in shown:
            append(node.whole)
            node = node.next
            continue
        tag = node.tagName
        if (
            kind == element_type and tag not in _UNUSUAL and not frames and node.written is not None
            and node.inner is None and node.id not in shown and "_cssText" not in node.attributes
        ):  # fmt: skip
            stack.append((_end(tag), node.next, "", node, len(pieces), unkept))
            append(node.written)  # as below, of what needs nothing else; most elements do not
            node = node.first
            continue
        if kind != element_type or tag in _SKIPPED or (frames and tag in _NOT_IN_FRAMES):
            node = node.next
            continue
        if tag == "style" or "_cssText" in node.attributes:
            pieces.append(_sheet(node, tree.width) if not frames else "")
            node = node.next
            continue
        is_frame = tag in IFRAMES
        written_tag = "div" if is_frame or (frames and tag in _FRAME_PARTS) else tag
        start, unkept_before = len(pieces), unkept
        if node.id in shown:
            unkept += 1
            pieces.append(_start(written_tag, _singled_out(node, node.id == marked)))
        else:
            if node.written is None:
                node.written = _start(written_tag, node.attributes if not is_frame else {}).replace(MARK, "")
            pieces.append(node.written)
        if tag in _VOID:
            if tag == "input" and node.attributes.get("type") in _TICKED:
                unkept += 1
                ticks.append((start, node, labels > 0))
            node = node.next
            continue
        if is_frame:
            frames += 1
        elif tag == "label":
            unkept += 1
            labels += 1
            labelled.add(node.attributes.get("for", ""))
        stack.append((_end(written_tag), node.next, tag, node, start, unkept_before))
        inner, node = node.inner, node.first if not is_frame else None
        if inner is not None and inner.first is not None:
            if not is_frame:
                pieces.append("<shadow-root>")
                stack.append(("</shadow-root>", node, "", None, 0, 0))
            node = inner.first
    for place, tick, is_in_label in ticks:
        if is_in_label or tick.attributes.get("id") in labelled:
            pieces[place] = _start("input", _singled_out(tick, tick.id == marked))
    return "".join(pieces)


def _start(tag: str, attributes: Mapping[str, Any]) -> str:
    """A start tag."""
    written = [f"<{_tag(tag)}"]
    for name, value in attributes.items():
        if value is None or value is False or not _is_written(name):
            continue
        text = "" if value is True else str(value)
        if name == "src" and text[:5] == "data:":
            continue
        if text or name not in _SAY_NOTHING:
            written.append(f' {name}="{_quoted(text)}"' if text else f" {name}")
    written.append(">\n" if tag in _EATS_NEWLINE else ">")
    return "".join(written)


def _singled_out(node: Node, is_marked: bool) -> dict[str, Any]:
    """The attributes of an element that is shown whatever hides it, with the mark or without."""
    attributes = {name: value for name, value in node.attributes.items() if name not in _HIDING}
    attributes["class"] = str(attributes.get("class") or "").replace(MARK, "") + (f" {MARK}" if is_marked else "")
    attributes["style"] = f"{_HIDING_STYLE.sub('', str(attributes.get('style') or ''))}; {_SHOWN_STYLE}"
    if node.tagName in ("details", "dialog"):
        attributes["open"] = True
    return attributes


@lru_cache(1_000)
def _is_written(name: str) -> bool:
    return name not in _LEFT_OUT and name[:3] != "rr_" and _ATTRIBUTE.fullmatch(name) is not None


@lru_cache(1_000)
def _end(tag: str) -> str:
    return f"</{_tag(tag)}>"


@lru_cache(1_000)
def _tag(name: str) -> str:
    return name if _TAG.fullmatch(name) else "div"


def _sheet(node: Node, width: float | None) -> str:
    """A style sheet as far as it says what shows and what is hidden.

    The simplifier asks what holds in a window as wide as a desk's; what depends on the width is decided here, where the
    window's own is known.
    """
    if node.written is None:
        read = node.attributes.get("_cssText")
        css = read if isinstance(read, str) else text_in(node)
        media = str(node.attributes.get("media") or "")
        if "display" not in css and "visibility" not in css:
            node.written = ""
            return ""
        if width is not None:
            css, media = (_WIDTH.sub(lambda asked: _decided(asked, width), text) for text in (css, media))
        node.written = f"{_start('style', {'media': media} if media else {})}{_STYLE_END.sub('', css)}</style>"
    return node.written


def _decided(asked: re.Match[str], width: float) -> str:
    """A question for the width of the window, put so that the answer is plain."""
    pixels = float(asked[2]) * (1 if asked[3].lower() == "px" else 16)
    holds = width >= pixels if asked[1].lower() == "min" else width <= pixels
    return f"(min-width: {0 if holds else 1_000_000}px)"


def _escaped(text: str) -> str:
    if "&" in text:
        text = text.replace("&", "&amp;")
    return text.replace("<", "&lt;") if "<" in text else text


def _quoted(text: str) -> str:
    return text.replace("&", "&amp;").replace('"', "&quot;")
