"""Applies changes to a page as rrweb's player does: removes, then adds, then texts, then attributes.

An add waits until its parent and its next sibling exist. If the event does not bring them, the add is dropped, except
for documents, which wait for their iframe across events. If several texts concern one node, the last counts. A second
html element or doctype replaces the first, and a document or text replaces the previous one in its iframe or textarea.
Children inside an added element are ignored, because rrweb's recorder sends them one by one and its player ignores
them, too.

Recordings of 2018 and 2019 also name the sibling before a node, and use -1 for a sibling that is still to come.
"""

import re
from typing import Any

from replay_sessions.importers.rrweb.events import Add, Mutation, Node, NodeType
from replay_sessions.importers.rrweb.tree import IFRAMES, Tree
from replay_sessions.simplify.media import DESKTOP, Viewport

_TO_COME = -1
_PROPERTY = re.compile("([^;:]*):([^;]*)")


class Page(Tree):
    """A changing page, and the additions that wait for nodes that are still to come."""

    def __init__(self, root: Node, viewport: Viewport = DESKTOP) -> None:
        super().__init__(root, viewport)
        self._waiting: dict[int, list[Add]] = {}  # by the id of the node that they wait for

    def apply(self, mutation: Mutation) -> None:
        """Applies the changes of an event."""
        self.hidden = frozenset()
        for remove in mutation.removes:
            node = self.nodes.get(remove.id)
            if node is not None and node is not self.root:
                self.remove(node)
        self._add_all(mutation.adds)
        for node_id, text in {change.id: change.value for change in mutation.texts}.items():
            node = self.nodes.get(node_id)
            if node is not None and node.type in (NodeType.TEXT, NodeType.CDATA):
                node.textContent = text or ""
        for change in mutation.attributes:
            node = self.nodes.get(change.id)
            if node is not None and node.type == NodeType.ELEMENT:
                for name, value in change.attributes.items():
                    self._set(node, name, value)

    def _add_all(self, adds: list[Add]) -> None:
        for first in adds:
            ready = [first]
            while ready:
                add = ready.pop()
                missing = self._missing(add)
                if missing is None:
                    self._add(add)
                    ready += reversed(self._waiting.pop(add.node.id, []))
                else:
                    self._waiting.setdefault(missing, []).append(add)
        self._waiting = {
            node_id: documents
            for node_id, waiting in self._waiting.items()
            if (documents := [add for add in waiting if add.node.type == NodeType.DOCUMENT])
        }

    def _missing(self, add: Add) -> int | None:
        """Returns the id of the node that an add waits for, or None."""
        if add.parentId not in self.nodes:
            return add.parentId
        return add.nextId if add.nextId not in (None, _TO_COME) and add.nextId not in self.nodes else None

    def _add(self, add: Add) -> None:
        node = add.node
        parent = self.nodes[add.parentId]
        if node.rootId and node.rootId not in self.nodes:
            return  # the document of the node is gone
        before = self.nodes.get(node.id)
        if before is self.root:
            return
        if before is not None:
            self.remove(before)
            if add.parentId not in self.nodes:
                return  # the node was to be added inside itself
        if node.type == NodeType.DOCUMENT:
            if parent.inner is not None:
                self.remove(parent.inner)
            self.append(parent, node)
            self.take_in(node)
            return
        node.childNodes.clear()
        self.take_in(node)
        if parent.type == NodeType.DOCUMENT or parent.tagName == "textarea":
            self._make_room(parent, node)
        for neighbour, is_next in ((add.previousId, True), (add.nextId, False)):
            sibling = self.nodes.get(neighbour or 0)
            if sibling is not None and sibling.parent is not None and _host(sibling.parent) is parent:
                self.insert(sibling.parent, node, sibling.parent.childNodes.index(sibling) + is_next)
                return
        self.append(parent, node)

    def _make_room(self, parent: Node, node: Node) -> None:
        """Removes nodes that can exist only once in `parent`, a document or a textarea, and that `node` replaces."""
        single = NodeType.TEXT if parent.tagName == "textarea" else NodeType.DOCTYPE
        for child in list(parent.childNodes):
            if child.type == node.type and (node.type == single or node.tagName == "html"):
                self.remove(child)

    def _set(self, node: Node, name: str, value: Any) -> None:
        if isinstance(value, dict):
            value = _changed_style(node.attributes.get("style"), value) if name == "style" else None
        if name == "value" and node.tagName == "textarea" and isinstance(value, str):
            self.set_value(node, value)
        else:
            self.set_attribute(node, name, value)


def _host(node: Node) -> Node:
    """Returns the element for its shadow root, and any other node itself."""
    parent = node.parent
    return parent if parent is not None and parent.inner is node and parent.tagName not in IFRAMES else node


def _changed_style(style: Any, changes: dict[str, Any]) -> str:
    """Changes single properties of a style attribute.

    A property is set to a text or to [text, priority]; False removes it.
    """
    properties = {name.strip(): value.strip() for name, value in _PROPERTY.findall(str(style))}
    for name, value in changes.items():
        if isinstance(value, str):
            properties[name] = value
        elif isinstance(value, list) and value and all(isinstance(word, str) for word in value):
            properties[name] = " ".join([value[0], *(f"!{word}" for word in value[1:] if word)])
        else:
            properties.pop(name, None)
    return "; ".join(f"{name}: {value}" for name, value in properties.items())
