"""Changes of a page as rrweb's player makes them: removes, then adds, then texts, then attributes.

An add waits until its parent and its next sibling are there; what waits for something that the event does not bring is
dropped, but for documents, which wait for their iframe over events. Of texts about one node the last counts. A second
html element or doctype takes the place of the first, a document that of the one before in its iframe, a text in a
textarea that of the other. The children that an added element may bring are passed over: rrweb's recorder brings them
one by one, and its player looks at nothing else.

Recordings of 2018 and 2019 say -1 for a sibling that was to come; such a node waits until that one names it.
"""

from collections import defaultdict
from typing import Any

from replay_sessions.importers.rrweb.events import Add, Mutation, Node, NodeType
from replay_sessions.importers.rrweb.tree import IFRAMES, Tree, ancestors, children
from replay_sessions.simplify.media import DESKTOP, Viewport

_TO_COME = -1


class Page(Tree):
    """A page that changes, and what waits for parts of it that are still to come."""

    def __init__(self, root: Node, viewport: Viewport = DESKTOP) -> None:
        super().__init__(root, viewport)
        self._documents: dict[int, Add] = {}  # by the iframe that they wait for
        self._siblings: dict[int, tuple[Node, Add]] = {}  # -1: by their own ids

    def apply(self, mutation: Mutation) -> None:
        """Applies an event.

        Raises:
            BadSession: The page grows beyond its bounds.
        """
        self.version += 1
        for remove in mutation.removes:
            node = self.nodes.get(remove.id)
            if node is not None and node is not self.root:
                self.remove(node)
        self._add_all(mutation.adds)
        for node_id, text in {change.id: change.value for change in mutation.texts}.items():
            node = self.nodes.get(node_id)
            if node is not None and node.type in (NodeType.TEXT, NodeType.CDATA):
                self.set_text(node, text or "")
        for change in mutation.attributes:
            node = self.nodes.get(change.id)
            if node is not None and node.type == NodeType.ELEMENT:
                for name, value in change.attributes.items():
                    self._set(node, name, value)

    def _add_all(self, adds: list[Add]) -> None:
        waiting: defaultdict[int, list[Add]] = defaultdict(list)
        for first in adds:
            if not waiting and not self._documents and self._missing(first) is None:
                self._add(first)  # nothing waits for it
                continue
            ready = [first]
            while ready:
                add = ready.pop()
                missing = self._missing(add)
                if missing is not None:
                    if add.node.type == NodeType.DOCUMENT:
                        self._documents[missing] = add
                    else:
                        waiting[missing].append(add)
                    continue
                self._add(add)
                if add.node.id in waiting:
                    ready += reversed(waiting.pop(add.node.id))
                if add.node.id in self._documents:
                    ready.append(self._documents.pop(add.node.id))

    def _missing(self, add: Add) -> int | None:
        """The id that an add waits for."""
        nodes = self.nodes
        if add.parentId not in nodes:
            return add.parentId
        if add.nextId is not None and add.nextId != _TO_COME and add.nextId not in nodes:
            return add.nextId
        return None

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
        node.depth = parent.depth + 1
        self.take_in(node)
        if add.nextId == _TO_COME or add.previousId == _TO_COME:
            self._siblings[node.id] = (node, add)
            return
        if parent.type == NodeType.DOCUMENT or parent.tagName == "textarea":
            self._make_room(parent, node)
        if add.nextId is None and add.previousId is None:
            self.append(parent, node)
        else:
            self._put(parent, node, add)
        if self._siblings:
            self._bring_siblings(node, add)

    def _put(self, parent: Node, node: Node, add: Add) -> None:
        nodes = self.nodes
        previous = nodes.get(add.previousId) if add.previousId is not None else None
        following = nodes.get(add.nextId) if add.nextId is not None else None
        if previous is not None and previous.parent is not None and _host(previous.parent) is parent:
            self.insert(previous.parent, node, previous.next)
        elif following is not None and following.parent is not None and _host(following.parent) is parent:
            self.insert(following.parent, node, following)
        else:
            self.append(parent, node)

    def _make_room(self, parent: Node, node: Node) -> None:
        """Removes what can stand only once in a document or a textarea, which the parent is."""
        if parent.tagName == "textarea":
            alike = [child for child in children(parent) if child.type == node.type == NodeType.TEXT]
        else:
            is_html = node.type == NodeType.ELEMENT and node.tagName == "html"
            is_single = is_html or node.type == NodeType.DOCTYPE
            alike = [child for child in children(parent) if is_single and child.type == node.type]
        for child in alike:
            self.remove(child)

    def _bring_siblings(self, node: Node, add: Add) -> None:
        """Puts nodes that waited for a neighbour to name them beside it."""
        named = [(node, add)]
        while named:
            node, add = named.pop()
            for neighbour, is_next in ((add.previousId, False), (add.nextId, True)):
                sibling, its_add = self._siblings.pop(neighbour or 0, (None, None))
                if sibling is None or its_add is None or node.parent is None or sibling in ancestors(node):
                    continue
                if self.nodes.get(sibling.id) is sibling:
                    self.insert(node.parent, sibling, node.next if is_next else node)
                    named.append((sibling, its_add))

    def _set(self, node: Node, name: str, value: Any) -> None:
        if isinstance(value, dict):
            value = _changed_style(node.attributes.get("style"), value) if name == "style" else None
        if name == "value" and node.tagName == "textarea" and isinstance(value, str):
            self.set_value(node, value)
        else:
            self.set_attribute(node, name, value)


def _host(node: Node) -> Node:
    """The element that a node is the shadow root of; else the node itself."""
    parent = node.parent
    return parent if parent is not None and parent.inner is node and parent.tagName not in IFRAMES else node


def _changed_style(style: Any, changes: dict[str, Any]) -> str:
    """A style attribute after single properties of it changed: text, [text, priority], or False for those removed."""
    properties: dict[str, str] = {}
    for part in style.split(";") if isinstance(style, str) else ():
        name, colon, value = part.partition(":")
        if colon:
            properties[name.strip()] = value.strip()
    for name, value in changes.items():
        if isinstance(value, str):
            properties[name] = value
        elif isinstance(value, list) and value and all(isinstance(word, str) for word in value):
            properties[name] = " ".join([value[0], *(f"!{word}" for word in value[1:] if word)])
        else:
            properties.pop(name, None)
    return "; ".join(f"{name}: {value}" for name, value in properties.items())
