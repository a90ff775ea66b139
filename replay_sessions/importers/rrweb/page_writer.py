"""Writes the page of a window as HTML, as a browser would have it, with a mark on one element, for the simplifier.

Parts that no shopper sees and that cost time are left out: scripts, templates, outlines of drawings, pictures' data,
style sheets that neither show nor hide. A sheet that the recorder read (`_cssText`) is written as `<style>`, so that
hidden elements are hidden even where they were acted on. Otherwise a menu that opens under the pointer, for example,
would be on the page only where it was clicked. A shadow tree is written as in HTML, and so is the content of an iframe,
so that its styles stay inside.

Elements that our recorder noted as not rendered, while the page was as it is now, are hidden regardless of the sheets,
because the browser knows the width of containers (`@container`).

A tick box or radio button with a label is written as shown. Shops hide it and draw the label instead, but a label
cannot be acted on by itself.

The mark is a class, because another attribute could turn an `<a>` without a link into an element that can be acted on.
"""

import re
from collections.abc import Collection, Mapping
from html import escape
from typing import Any

from replay_sessions.importers.rrweb.events import Node, NodeType
from replay_sessions.importers.rrweb.tree import IFRAMES, Tree, ancestors, get_text, subtree

MARK = "shop-r1-acted-on"

_SKIPPED = frozenset({"applet", "base", "embed", "noscript", "object", "plaintext", "script", "template"})
_NOT_IN_FRAMES = frozenset({"meta", "title"})
_OF_FRAMES = ("class", "hidden", "id", "inert", "style")
_FRAME_PARTS = frozenset({"body", "frameset", "html"})
_VOID_TAGS = "area basefont bgsound br col hr img input link meta source track wbr"
_VOID = frozenset(_VOID_TAGS.split())
_EATS_NEWLINE = frozenset({"listing", "pre", "textarea"})
_TICKED = frozenset({"checkbox", "radio"})
_LEFT_OUT = frozenset({"d", "imagesrcset", "points", "srcset"})
_SAY_NOTHING = frozenset({"class", "style"})  # omitted if they are empty
_HIDING = frozenset({"hidden", "inert", "popover"})
_TAG = re.compile(r"[a-zA-Z][\w:.-]*")
_ATTRIBUTE = re.compile(r"[^\s\"'<>/=\0]+")
_HIDING_STYLE = re.compile(r"\b(?:display|visibility)\s*:[^;]*;?", re.IGNORECASE)
_NOT_RENDERED = "; display: none !important"
_SHOWN_STYLE = "display: revert; visibility: visible"
_STYLE_END = re.compile(r"</style", re.IGNORECASE)


def write_page(tree: Tree, acted_on: Node | None = None) -> str:
    """Writes the page as HTML.

    Args:
        tree: The page.
        acted_on: The element to mark.
    """
    labelled = {node.attributes.get("for") for node in subtree(tree.root) if node.tagName == "label"} - {None}
    pieces = ["<!DOCTYPE html>"]
    waiting: list[Node | str] = [*reversed(tree.root.childNodes)]  # still to be written; the last item comes next
    while waiting:
        node = waiting.pop()
        if isinstance(node, str):
            pieces.append(node)
        elif node.type == NodeType.TEXT:
            pieces.append(escape(node.textContent or "", quote=False))
        elif node.type != NodeType.ELEMENT or node.tagName in _SKIPPED:
            continue
        elif node.tagName == "style" or "_cssText" in node.attributes:
            pieces.append(_sheet(node))
        elif node.tagName not in _NOT_IN_FRAMES or not _is_in(node, IFRAMES):
            tag, attributes = _as_written(node, labelled)
            if node.id in tree.hidden:
                attributes = {**attributes, "style": f"{attributes.get('style') or ''}{_NOT_RENDERED}"}
            if acted_on is not None and node.id == acted_on.id:
                pieces.append(_start(tag, {**attributes, "class": f"{attributes.get('class') or ''} {MARK}"}))
            else:
                pieces.append(_start(tag, attributes).replace(MARK, ""))  # the page itself may contain the mark
            if tag not in _VOID:
                waiting += _after_start(node, tag)
    return "".join(pieces)


def _as_written(node: Node, labelled: Collection[Any]) -> tuple[str, Mapping[str, Any]]:
    """Returns the tag and the attributes of an element as they are written.

    Args:
        labelled: The ids of fields with labels.
    """
    tag, attributes = node.tagName, node.attributes
    if tag in IFRAMES:
        return "div", {name: attributes.get(name) for name in _OF_FRAMES}
    if tag in _FRAME_PARTS and _is_in(node, IFRAMES):
        return "div", attributes
    is_ticked = tag == "input" and attributes.get("type") in _TICKED
    if is_ticked and (attributes.get("id") in labelled or _is_in(node, {"label"})):
        visible = {name: value for name, value in attributes.items() if name not in _HIDING}
        style = _HIDING_STYLE.sub("", str(attributes.get("style") or ""))
        return tag, {**visible, "style": f"{style}; {_SHOWN_STYLE}"}
    return tag if _TAG.fullmatch(tag) else "div", attributes


def _after_start(node: Node, tag: str) -> list[Node | str]:
    """Returns what follows the start tag of an element, in reverse order."""
    after: list[Node | str] = [f"</{tag}>"]
    if node.tagName not in IFRAMES:
        after += reversed(node.childNodes)
    if node.inner is not None and node.inner.childNodes:
        after += ["</template>", *reversed(node.inner.childNodes), "<template shadowrootmode=open>"]
    return after


def _is_in(node: Node, tags: Collection[str]) -> bool:
    return any(ancestor.tagName in tags for ancestor in ancestors(node) if ancestor is not node)


def _start(tag: str, attributes: Mapping[str, Any]) -> str:
    """Writes a start tag."""
    pieces = [f"<{tag}"]
    for name, value in attributes.items():
        if value is None or value is False or name in _LEFT_OUT or name[:3] == "rr_" or not _ATTRIBUTE.fullmatch(name):
            continue
        text = "" if value is True else str(value)
        if name == "src" and text[:5] == "data:":
            continue
        if text or name not in _SAY_NOTHING:
            pieces.append(f' {name}="{escape(text)}"' if text else f" {name}")
    pieces.append(">\n" if tag in _EATS_NEWLINE else ">")
    return "".join(pieces)


def _sheet(node: Node) -> str:
    """Writes a style sheet if it shows or hides elements, otherwise ""."""
    read = node.attributes.get("_cssText")
    css = read if isinstance(read, str) else get_text(node)
    if not any(word in css for word in ("display", "visibility", "@layer", "--")):
        return ""
    media = str(node.attributes.get("media") or "")
    return f"{_start('style', {'media': media} if media else {})}{_STYLE_END.sub('', css)}</style>"
