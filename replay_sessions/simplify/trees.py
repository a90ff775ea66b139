"""Merges the shadow trees and frame documents of a page into one tree, at the position where a browser shows them.

The styles of a shadow tree apply to this tree only, and those of the page do not apply to it. So before the trees are
merged, the results of each tree's style sheets are written into the `style` of its elements, and the sheets no longer
count. Then a shadow tree follows the children of its host in a `<shadow-root>`, with those children in its slots. The
document of `<iframe srcdoc>` follows the frame in a `<div>`.
"""

from collections.abc import Iterable

from selectolax.lexbor import LexborHTMLParser, LexborNode

from replay_sessions.simplify.css_selectors import SHADOW_ROOT
from replay_sessions.simplify.declarations import HIDE, INHERIT, SHOW
from replay_sessions.simplify.hidden import hide_closed_details
from replay_sessions.simplify.media import DESKTOP, Viewport
from replay_sessions.simplify.parsing import Landmarks, find_landmarks, parse_document
from replay_sessions.simplify.style_rules import StyleRules

_FRAME = (300, 150)  # the default size of a frame
_WRITTEN = {
    "display": {HIDE: "none", SHOW: "revert"},
    "visibility": {HIDE: "hidden", SHOW: "visible", INHERIT: "inherit"},
}


def parse(source: bytes, viewport: Viewport = DESKTOP) -> tuple[LexborHTMLParser, Landmarks, StyleRules]:
    """Parses a page as a browser does, and merges its trees.

    Returns:
        The document, its landmarks, and the style rules that are not yet written into its elements.

    Raises:
        BadSession: The page is too large or too deep, or the parser fails.
    """
    document = parse_document(source)
    landmarks = find_landmarks(document)
    if viewport.wide_layout and document.css_first("meta[name=viewport i][content*=width]") is None:
        height = viewport.height * viewport.wide_layout / viewport.width
        viewport = viewport._replace(width=viewport.wide_layout, height=height)
    rules = StyleRules(landmarks.styles, document, viewport)
    if landmarks.shadow_roots or landmarks.frames:
        _inline(rules, document.css("*"))
        hosts: set[int] = set()
        templates = list(landmarks.shadow_roots)
        while templates:
            template = templates.pop()
            if template.parent is not None and template.parent.mem_id not in hosts:
                hosts.add(template.parent.mem_id)
                templates += _open_shadow_tree(document, template, template.parent, viewport)
        for frame in landmarks.frames:
            _open_frame(document, frame, viewport)
        landmarks = find_landmarks(document)
        rules = StyleRules(())
    hide_closed_details(landmarks.details)
    return document, landmarks, rules


def _inline(rules: StyleRules, nodes: Iterable[LexborNode], *, is_weak: bool = False) -> None:
    """Writes the results of style rules into the `style` of elements; weak rules override no value in it."""
    for node in nodes:
        style = node.attributes.get("style") or ""
        values: list[str] = []
        for name, texts in _WRITTEN.items():
            value = rules.compute(name, node)
            if value and not (is_weak and f"{name}:" in style):
                values.append(f"{name}:{texts.get(value, 'revert')}")
            elif is_weak and f"{name}:" in style:
                values.append(f"{name}:{style.partition(f'{name}:')[2].partition(';')[0]}")
        if values:
            node.attrs["style"] = ";".join(values)


def _open_shadow_tree(
    document: LexborHTMLParser, template: LexborNode, host: LexborNode, viewport: Viewport
) -> list[LexborNode]:
    """Moves a shadow tree into its host, and returns the templates of the shadow trees in it."""
    root = document.create_node(SHADOW_ROOT)
    for name, value in host.attributes.items():
        if name != "style":
            root.attrs[name] = value or ""  # for `:host(…)`
    for fragment in template.template_fragments():  # a template in a drawing has none
        while (child := fragment.first_child) is not None:
            root.insert_child(child, move=True)
    landmarks = find_landmarks(root)
    _inline(StyleRules(landmarks.styles, root, viewport), root.css("*"))
    if root.attrs.get("style"):
        host_style = host.attributes.get("style") or ""
        host_items = [
            item for item in (root.attributes.get("style") or "").split(";") if item.partition(":")[0] not in host_style
        ]
        host.attrs["style"] = ";".join(filter(None, (host_style, *host_items)))
    for name in root.attributes:
        del root.attrs[name]
    assigned = _fill_slots(root, host)
    host.insert_child(root, move=True)
    _inline(StyleRules(landmarks.styles, root, viewport, is_slotted=True), assigned, is_weak=True)
    for frame in landmarks.frames:
        _open_frame(document, frame, viewport)
    return landmarks.shadow_roots


def _fill_slots(root: LexborNode, host: LexborNode) -> list[LexborNode]:
    """Moves the children of a host into the slots of its shadow tree, and returns the elements that have a slot."""
    slots: dict[str, LexborNode] = {}
    for slot in root.css("slot"):
        slots.setdefault(slot.attributes.get("name") or "", slot)
    filled: set[int] = set()
    assigned: list[LexborNode] = []
    for child in list(host.iter(include_text=True)):
        if child.tag == "template":
            continue
        name = child.attributes.get("slot") or "" if child.is_element_node else ""
        slot_or_none = slots.get(name)
        if slot_or_none is None:
            _take_away(child)
            continue
        if slot_or_none.mem_id not in filled:
            filled.add(slot_or_none.mem_id)
            for default in list(slot_or_none.iter(include_text=True)):
                _take_away(default)
        slot_or_none.insert_child(child, move=True)
        assigned += [child] if child.is_element_node else []
    return assigned


def _take_away(node: LexborNode) -> None:
    if node.is_element_node:
        node.attrs["inert"] = ""
    else:
        node.remove()


def _open_frame(document: LexborHTMLParser, frame: LexborNode, viewport: Viewport) -> None:
    """Inserts the document of a frame behind the frame, and copies the attributes that hide the frame."""
    source = (frame.attributes.get("srcdoc") or "").encode("utf-8", "replace")
    sizes = [frame.attributes.get(name) or "" for name in ("width", "height")]
    width, height = (
        max(int(size), 1) if size.isdecimal() else default for size, default in zip(sizes, _FRAME, strict=True)
    )
    inner, _, rules = parse(source, Viewport(width, height, viewport.is_touch))
    _inline(rules, inner.css("*"))
    box = document.create_node("div")
    for name in ("hidden", "inert", "style"):
        if name in frame.attributes:
            box.attrs[name] = frame.attributes[name] or ""
    for child in inner.body.iter(include_text=True) if inner.body is not None else ():
        box.insert_child(child)
    frame.insert_after(box, move=True)
