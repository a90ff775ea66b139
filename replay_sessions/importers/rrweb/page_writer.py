"""The page of a window -> HTML as a browser would have held it, for the simplifier, with a mark on one element.

Left out is what no shopper sees and what costs time: scripts, templates, outlines of drawings, pictures' data, style
sheets that neither show nor hide. A sheet that the recorder read (`_cssText`) is written as `<style>`, so what it hides
is hidden, also where it was acted on: a menu that opens under the pointer, say, would else be on the page only where it
was clicked. A shadow tree is written as HTML writes one, and so is what is in an iframe: its styles stay inside.

What our recorder noted as not rendered when the page was as it is now is hidden, whatever its sheets seem to say: it
knows the width of containers (`@container`).

A tick box or radio button with a label is written as shown, for shops hide it and draw the label instead, and a label
cannot be acted on by itself.

Little of a page changes between two presses, so what does not is cached as it was written, in pieces of some size; but
not around ticks and labels, which depend on each other, nor around what was acted on.

The mark is a class: another attribute could make something to act on of an `<a>` that leads nowhere.
"""

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from replay_sessions.importers.rrweb.events import Node, NodeType
from replay_sessions.importers.rrweb.tree import HIDDEN, IFRAMES, Tree, ancestors, text_in

MARK = "shop-r1-acted-on"

_SKIPPED = frozenset({"applet", "base", "embed", "noscript", "object", "plaintext", "script", "template"})
_NOT_IN_FRAMES = frozenset({"meta", "title"})
_OF_FRAMES = ("class", "hidden", "id", "inert", "style", HIDDEN)
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
_LEAST_CACHED = 16  # pieces that are joined and cached as one
_NOT_RENDERED = "; display: none !important"
_SHOWN_STYLE = "display: revert; visibility: visible"
_STYLE_END = re.compile(r"</style", re.IGNORECASE)


def write_page(tree: Tree, acted_on: Node | None = None) -> str:
    """The page as HTML.

    Args:
        acted_on: The element that gets the mark.
    """
    tree.forget_old_notes()
    tree.writes += 1
    return _Writer(tree, acted_on).write()


class _Writer:
    """A page while it is written."""

    def __init__(self, tree: Tree, acted_on: Node | None) -> None:
        self.tree = tree
        self.marked = None if acted_on is None else acted_on.id
        self.around = {node.id for node in ancestors(acted_on)} if acted_on is not None else set()
        self.pieces = ["<!DOCTYPE html>"]
        self.ticks: list[tuple[int, Node, bool]] = []  # their indices among the pieces, and whether they lie in labels
        self.labelled: set[Any] = set()
        self.frames = self.labels = 0  # how many are open
        self.uncached = 0  # how many elements began that are not to be cached, nor what is around them
        # End tags, what comes after them, the tags; the elements, where they begin, and `uncached` before them.
        self.stack: list[tuple[str, Node | None, str, Node | None, int, int]] = []

    def write(self) -> str:
        """The hot loop: what most nodes need is written here, without a call."""
        pieces, stack, around = self.pieces, self.stack, self.around
        append, text_type, element_type = pieces.append, NodeType.TEXT, NodeType.ELEMENT
        node = self.tree.root.first
        while True:
            if node is None:
                if not stack:
                    break
                end, node, tag, ended, start, uncached = stack.pop()
                append(end)
                if tag:
                    self.frames -= tag in IFRAMES
                    self.labels -= tag == "label"
                if ended is not None and self.uncached == uncached and len(pieces) - start >= _LEAST_CACHED:
                    ended.html = "".join(pieces[start:])
                    pieces[start:] = [ended.html]
            elif node.type == text_type:
                written = node.written
                if written is None:
                    written = node.written = _escaped(node.textContent or "")
                append(written)
                node = node.next
            elif node.html is not None and node.id not in around:
                append(node.html)
                node = node.next
            elif (
                node.type == element_type and node.tagName not in _UNUSUAL and not self.frames
                and node.written is not None and node.inner is None and node.id not in around
                and "_cssText" not in node.attributes
            ):  # fmt: skip
                stack.append((_end(node.tagName), node.next, "", node, len(pieces), self.uncached))
                append(node.written)
                node = node.first
            else:
                node = self._begin(node)
        for index, tick, is_in_label in self.ticks:
            if is_in_label or tick.attributes.get("id") in self.labelled:
                attributes = {name: value for name, value in tick.attributes.items() if name not in _HIDING}
                attributes["style"] = f"{_HIDING_STYLE.sub('', str(attributes.get('style') or ''))}; {_SHOWN_STYLE}"
                pieces[index] = _start("input", _marked(attributes) if tick.id == self.marked else attributes)
        return "".join(pieces)

    def _begin(self, node: Node) -> Node | None:
        """Writes what a node of any kind begins with, or nothing, and returns the node that comes next."""
        tag, pieces, frames = node.tagName, self.pieces, self.frames
        if node.type != NodeType.ELEMENT or tag in _SKIPPED or (frames and tag in _NOT_IN_FRAMES):
            return node.next
        if tag == "style" or "_cssText" in node.attributes:
            pieces.append(_sheet(node))
            return node.next
        is_frame = tag in IFRAMES
        written_tag = "div" if is_frame or (frames and tag in _FRAME_PARTS) else tag
        start, uncached = len(pieces), self.uncached
        if node.written is None:
            kept = node.attributes if not is_frame else {name: node.attributes.get(name) for name in _OF_FRAMES}
            node.written = _start(written_tag, kept).replace(MARK, "")
        self.uncached += node.id in self.around
        pieces.append(_start(written_tag, _marked(node.attributes)) if node.id == self.marked else node.written)
        if tag in _VOID:
            if tag == "input" and node.attributes.get("type") in _TICKED:
                self.uncached += 1
                self.ticks.append((start, node, self.labels > 0))
            return node.next
        if is_frame:
            self.frames += 1
        elif tag == "label":
            self.uncached += 1
            self.labels += 1
            self.labelled.add(node.attributes.get("for", ""))
        self.stack.append((_end(written_tag), node.next, tag, node, start, uncached))
        following = None if is_frame else node.first
        if node.inner is None or node.inner.first is None:
            return following
        pieces.append("<template shadowrootmode=open>")
        self.stack.append(("</template>", following, "", None, 0, 0))
        return node.inner.first


def _start(tag: str, attributes: Mapping[str, Any]) -> str:
    """A start tag."""
    written = [f"<{_tag(tag)}"]
    if attributes.get(HIDDEN):
        attributes = {**attributes, "style": f"{attributes.get('style') or ''}{_NOT_RENDERED}"}
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


def _marked(attributes: Mapping[str, Any]) -> dict[str, Any]:
    """The attributes of what was acted on."""
    return {**attributes, "class": f"{attributes.get('class') or ''} {MARK}"}


@lru_cache(1_000)
def _is_written(name: str) -> bool:
    return name not in _LEFT_OUT and name[:3] != "rr_" and _ATTRIBUTE.fullmatch(name) is not None


@lru_cache(1_000)
def _end(tag: str) -> str:
    return f"</{_tag(tag)}>"


@lru_cache(1_000)
def _tag(name: str) -> str:
    return name if _TAG.fullmatch(name) else "div"


def _sheet(node: Node) -> str:
    """A style sheet, if it says what shows or what is hidden."""
    if node.written is None:
        read = node.attributes.get("_cssText")
        css = read if isinstance(read, str) else text_in(node)
        media = str(node.attributes.get("media") or "")
        says = "display" in css or "visibility" in css or "@layer" in css or "--" in css
        written = f"{_start('style', {'media': media} if media else {})}{_STYLE_END.sub('', css)}</style>"
        node.written = written if says else ""
    return node.written


def _escaped(text: str) -> str:
    if "&" in text:
        text = text.replace("&", "&amp;")
    return text.replace("<", "&lt;") if "<" in text else text


def _quoted(text: str) -> str:
    return text.replace("&", "&amp;").replace('"', "&quot;")
