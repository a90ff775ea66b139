"""Changes of a page as rrweb's player makes them: removes, then adds, then texts, then attributes.

An add waits until its parent and its next sibling are there; what waits for something that the event does not bring is
dropped, but for documents, which wait for their iframe over events. Of texts about one node the last counts. A second
html element or doctype takes the place of the first, a document that of the one before in its iframe, a text in a
textarea that of the other. The children that an added element may bring are passed over: rrweb's recorder brings them
one by one, and its player looks at nothing else.

Recordings of 2018 and 2019 name the sibling before a node too, and say -1 for one that is to come.
"""

import re
from typing import Any

from replay_sessions.importers.rrweb.events import Add, Mutation, Node, NodeType
from replay_sessions.importers.rrweb.tree import IFRAMES, Tree
from replay_sessions.simplify.media import DESKTOP, Viewport

_TO_COME = -1
_PROPERTY = re.compile("([^;:]*):([^;]*)")


class Page(Tree):
    """A page that changes, and what waits for parts of it that are still to come."""

    def __init__(self, root: Node, viewport: Viewport = DESKTOP) -> None:
        super().__init__(root, viewport)
        self._waiting: dict[int, list[Add]] = {}  # by the id of what they wait for

    def apply(self, mutation: Mutation) -> None:
        """Applies an event."""
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
        """Returns the id that an add waits for."""
        if add.parentId not in self.nodes:
            return add.parentId
        return add.nextId if add.nextId not in (None, _TO_COME) and add.nextId not in self.nodes else None

    def _add(self, add: Add) -> None:
        node = add.node
        parent = self.nodes[add.parentId]
        if node.rootId and node.rootId not in self.nodes:
            return  # of a document that is gone
        before = self.nodes.get(node.id)
        if before is self.root:
            return
        if before is not None:
            self.remove(before)
            if add.parentId not in self.nodes:
                return  # it was to go into itself
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
        """Removes what can stand only once in a document or a textarea, which the parent is."""
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
    """Returns the element that a node is the shadow root of; else the node itself."""
    parent = node.parent
    return parent if parent is not None and parent.inner is node and parent.tagName not in IFRAMES else node


def _changed_style(style: Any, changes: dict[str, Any]) -> str:
    """Changes single properties of a style attribute: to a text, to [text, priority], or False removes them."""
    properties = {name.strip(): value.strip() for name, value in _PROPERTY.findall(str(style))}
    for name, value in changes.items():
        if isinstance(value, str):
            properties[name] = value
        elif isinstance(value, list) and value and all(isinstance(word, str) for word in value):
            properties[name] = " ".join([value[0], *(f"!{word}" for word in value[1:] if word)])
        else:
            properties.pop(name, None)
    return "; ".join(f"{name}: {value}" for name, value in properties.items())
