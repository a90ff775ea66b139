"""What in a window's page can be typed into, chosen, ticked or sent, and which element a press means."""

from typing import Literal

from replay_sessions.importers.rrweb.events import Node, NodeType
from replay_sessions.importers.rrweb.tree import Tree, ancestors, closest, subtree
from replay_sessions.simplify.targets import acts_by_attributes, acts_by_tag

__all__ = ["attribute", "control_of", "field_kind", "form_of", "is_masked", "meant", "submit_button"]

_ACTING_TAGS = frozenset({"a", "button", "input", "option", "select", "summary", "textarea"})
_CONTROLS = frozenset({"button", "input", "meter", "output", "progress", "select", "textarea"})
_NOT_TYPED = frozenset({"button", "checkbox", "color", "file", "hidden", "image", "radio", "range", "reset", "submit"})
_SUBMITTING = frozenset({"image", "submit"})


def attribute(node: Node, name: str) -> str:
    """An attribute's text; "" where there is none."""
    value = node.attributes.get(name)
    return value if isinstance(value, str) else ""


def field_kind(node: Node) -> Literal["type", "choose"] | None:
    """How a field takes what a person gives it; None where clicks do that, or it is no field."""
    if node.tagName == "textarea":
        return "type"
    if node.tagName == "select":
        return "choose"
    is_typed = node.tagName == "input" and attribute(node, "type").strip().lower() not in _NOT_TYPED
    return "type" if is_typed else None


def meant(tree: Tree, pressed: Node) -> Node:
    """What a press means: what was pressed, or the control of the label that it lies in."""
    for node in ancestors(pressed):
        if node.type != NodeType.ELEMENT:
            continue
        if _acts(node):
            return pressed
        if node.tagName == "label":
            return control_of(tree, node) or pressed
    return pressed


def control_of(tree: Tree, label: Node) -> Node | None:
    """The field that a label stands for."""
    if wanted := attribute(label, "for"):
        return next((node for node in subtree(tree.root) if node.attributes.get("id") == wanted), None)
    return next((node for node in subtree(label) if node.tagName in _CONTROLS), None)


def submit_button(node: Node) -> Node | None:
    """The button that submits a form which a node is or lies in."""
    for around in ancestors(node):
        kind = attribute(around, "type").strip().lower()
        if around.tagName == "button":
            return around if kind not in ("button", "reset") else None
        if around.tagName == "input":
            return around if kind in _SUBMITTING else None
    return None


def form_of(tree: Tree, node: Node) -> int | None:
    """The id of the form that a field or button belongs to."""
    if wanted := attribute(node, "form"):
        return next((form.id for form in subtree(tree.root) if form.attributes.get("id") == wanted), None)
    form = closest(node, "form")
    return form.id if form is not None else None


def is_masked(text: str) -> bool:
    """Whether a recorder hid a text.

    >>> is_masked("******"), is_masked("5 * 3"), is_masked("")
    (True, False, False)
    """
    return bool(text) and not text.strip("*")


def _acts(node: Node) -> bool:
    attributes = {name: None if value is None else str(value) for name, value in node.attributes.items()}
    if node.tagName in _ACTING_TAGS:
        return acts_by_tag(node.tagName, attributes)
    return acts_by_attributes(attributes)
