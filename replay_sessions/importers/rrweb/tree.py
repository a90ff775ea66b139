"""The page of one window: rrweb's nodes, linked to each other and found by their ids.

Siblings are linked, so that a node is put before another in the same time whatever their number. What is under a node
is not copied when it moves: rrweb removes it and brings it anew.
"""

from collections.abc import Iterator

from replay_sessions.foundation.errors import BadSession
from replay_sessions.importers.rrweb.events import Node, NodeType
from replay_sessions.simplify.media import DESKTOP, Viewport

IFRAMES = frozenset({"frame", "iframe"})
MAX_NODES = 500_000
MAX_DEPTH = 5_000
HIDDEN = "rr_hidden"  # the attribute of an element that the browser did not render, as the recorder noted


class Tree:
    """A page that a full snapshot brought.

    Attributes:
        version: Changes whenever the page does.
        writes: How often the page was written.
        hidden: The ids of elements that have HIDDEN.
        viewport: The window.

    Raises:
        BadSession: It has more nodes, or deeper ones, than any browser would show.
    """

    def __init__(self, root: Node, viewport: Viewport = DESKTOP) -> None:
        self.root = root
        self.viewport = viewport
        self.nodes: dict[int, Node] = {}
        self.version = 0
        self.writes = 0
        self.hidden: frozenset[int] = frozenset()
        self._hidden_at = 0
        self.take_in(root)

    def take_in(self, root: Node) -> None:
        """Links a node and all that came in it, and makes them known by their ids."""
        nodes = self.nodes
        textareas: list[Node] = []
        stack = [root]
        while stack:
            node = stack.pop()
            nodes[node.id] = node
            if node.depth > MAX_DEPTH:
                raise BadSession(f"a page with elements more than {MAX_DEPTH:,} deep inside each other: it is damaged")
            if node.tagName == "textarea":
                textareas.append(node)
            brought = node.childNodes
            if brought:
                node.childNodes = []
                for child in brought:
                    self.append(node, child)
                stack += brought
        if len(nodes) > MAX_NODES:
            raise BadSession(f"a page of more than {MAX_NODES:,} nodes: it is damaged, or no page of a shop")
        for node in textareas:  # older recorders wrote the value twice: the attribute is what stands in it
            if isinstance(value := node.attributes.get("value"), str):
                self.set_value(node, value)

    def append(self, parent: Node, node: Node) -> None:
        """Makes a node the last one in another: in its shadow tree, or the document of an iframe, if it is that."""
        if node.type == NodeType.DOCUMENT:
            self._change(parent)
            parent.inner = node
            node.parent = parent
            node.depth = parent.depth + 1
            return
        if node.isShadow and parent.type == NodeType.ELEMENT:
            if parent.inner is None:
                parent.inner = Node(type=NodeType.DOCUMENT, id=-1, parent=parent, depth=parent.depth)
            parent = parent.inner
        self.insert(parent, node, None)

    def insert(self, parent: Node, node: Node, following: Node | None) -> None:
        """Puts a node into another, before one that is in it or at the end."""
        self._change(parent)
        node.parent = parent
        node.depth = parent.depth + 1
        previous = parent.last if following is None else following.previous
        node.previous, node.next = previous, following
        if previous is None:
            parent.first = node
        else:
            previous.next = node
        if following is None:
            parent.last = node
        else:
            following.previous = node

    def detach(self, node: Node) -> None:
        """Takes a node out of the page; it and what is in it stay known by their ids."""
        parent = node.parent
        if parent is None:
            return
        self._change(parent)
        if parent.inner is node:
            parent.inner = None
        else:
            if node.previous is None:
                parent.first = node.next
            else:
                node.previous.next = node.next
            if node.next is None:
                parent.last = node.previous
            else:
                node.next.previous = node.previous
        node.parent = node.previous = node.next = None

    def remove(self, node: Node) -> None:
        """Takes a node out of the page and forgets it and all in it."""
        self.detach(node)
        for gone in list(subtree(node)):
            if self.nodes.get(gone.id) is gone:
                del self.nodes[gone.id]
            _unlink(gone)

    def set_text(self, node: Node, text: str) -> None:
        node.textContent = text
        node.written = None
        self._change(node)

    def set_value(self, node: Node, text: str) -> None:
        """Sets what stands in a field."""
        if node.tagName == "textarea":
            for child in list(children(node)):
                self.remove(child)
            self.insert(node, Node(type=NodeType.TEXT, id=-1, textContent=text), None)
            node.attributes.pop("value", None)
        elif node.tagName == "select":
            for option in subtree(node):
                if option.tagName == "option":
                    self.set_attribute(option, "selected", True if option_value(option) == text else None)
        else:
            self.set_attribute(node, "value", text)

    def set_attribute(self, node: Node, name: str, value: str | float | bool | None) -> None:
        if value is None:
            node.attributes.pop(name, None)
        else:
            node.attributes[name] = value
        node.written = None
        self._change(node)

    def hide(self, ids: frozenset[int]) -> None:
        """Notes which elements the browser does not render; holds until the page changes."""
        for node_id in ids | self.hidden:
            node = self.nodes.get(node_id)
            if node is not None and (HIDDEN in node.attributes) != (node_id in ids):
                self.set_attribute(node, HIDDEN, True if node_id in ids else None)
        self.version += ids != self.hidden
        self.hidden, self._hidden_at = ids, self.version

    def forget_old_notes(self) -> None:
        """Shows what was noted as hidden before the page changed: only its style sheets say what is hidden now."""
        if self.hidden and self._hidden_at != self.version:
            self.hide(frozenset())

    def _change(self, node: Node | None) -> None:
        """Forgets how a node and all around it were written as a whole; once between two writes is enough."""
        writes = self.writes
        while node is not None and node.changed_at != writes:
            node.changed_at = writes
            node.html = None
            if node.tagName == "style":
                node.written = None
            node = node.parent

    def dissolve(self) -> None:
        """Unlinks all nodes, so that their memory is free at once: a page is replaced often."""
        for node in self.nodes.values():
            _unlink(node)
        self.nodes.clear()


def _unlink(node: Node) -> None:
    """Leaves no circle of links behind: what is gone from a page is gone from memory at once, uncollected."""
    node.parent = node.previous = node.last = None


def children(node: Node) -> Iterator[Node]:
    child = node.first
    while child is not None:
        yield child
        child = child.next


def subtree(node: Node) -> Iterator[Node]:
    """A node and all in it, shadow trees and nested documents included, in the order of the page."""
    stack = [node]
    while stack:
        node = stack.pop()
        yield node
        inside = list(children(node))
        stack += reversed(inside)
        if node.inner is not None:
            stack.append(node.inner)


def ancestors(node: Node) -> Iterator[Node]:
    """A node, and all elements around it, the nearest first."""
    around: Node | None = node
    while around is not None:
        if around.type == NodeType.ELEMENT or around is node:
            yield around
        around = around.parent


def text_in(node: Node) -> str:
    return "".join(inside.textContent or "" for inside in subtree(node) if inside.type == NodeType.TEXT)


def option_value(option: Node) -> str:
    """What an option stands for: its value, or else its text."""
    value = option.attributes.get("value")
    return value if isinstance(value, str) else " ".join(text_in(option).split())
