"""The page of a window: rrweb's nodes by their ids.

Subtrees are not copied when they move, because rrweb removes them and sends them again.
"""

from collections.abc import Iterator

from replay_sessions.importers.rrweb.events import Node, NodeType
from replay_sessions.simplify.media import DESKTOP, Viewport

IFRAMES = frozenset({"frame", "iframe"})


class Tree:
    """A page from a full snapshot.

    Attributes:
        root: The document.
        viewport: Size of the window.
        nodes: The nodes of the page by id.
        hidden: Ids of elements that the browser did not render, as noted by the recorder since the page last changed.
    """

    def __init__(self, root: Node, viewport: Viewport = DESKTOP) -> None:
        self.root = root
        self.viewport = viewport
        self.nodes: dict[int, Node] = {}
        self.hidden: frozenset[int] = frozenset()
        self.take_in(root)

    def take_in(self, root: Node) -> None:
        """Links all nodes below `root` to their parents and registers them by id."""
        stack = [root]
        textareas: list[Node] = []
        while stack:
            node = stack.pop()
            self.nodes[node.id] = node
            children, node.childNodes = node.childNodes, []
            for child in children:
                self.append(node, child)
            stack += children
            if node.tagName == "textarea":
                textareas.append(node)
        for node in textareas:  # older recorders wrote the value twice: the attribute is the current content
            if isinstance(value := node.attributes.get("value"), str):
                self.set_value(node, value)

    def append(self, parent: Node, node: Node) -> None:
        """Adds a node to a parent: as its last child, to its shadow tree, or as the document of an iframe."""
        if node.type == NodeType.DOCUMENT:
            parent.inner = node
            node.parent = parent
            return
        if node.isShadow and parent.type == NodeType.ELEMENT:
            if parent.inner is None:
                parent.inner = Node(type=NodeType.DOCUMENT, id=-1, parent=parent)
            parent = parent.inner
        self.insert(parent, node, len(parent.childNodes))

    def insert(self, parent: Node, node: Node, index: int) -> None:
        parent.childNodes.insert(index, node)
        node.parent = parent

    def remove(self, node: Node) -> None:
        """Removes a node from the page and deletes it and all its descendants from `nodes`."""
        if node.parent is not None and node.parent.inner is node:
            node.parent.inner = None
        elif node.parent is not None:
            node.parent.childNodes.remove(node)
        node.parent = None
        for removed in subtree(node):
            if self.nodes.get(removed.id) is removed:
                del self.nodes[removed.id]

    def set_value(self, node: Node, text: str) -> None:
        """Sets the content of a field."""
        if node.tagName == "textarea":
            for child in list(node.childNodes):
                self.remove(child)
            self.insert(node, Node(type=NodeType.TEXT, id=-1, textContent=text), 0)
            node.attributes.pop("value", None)
        elif node.tagName == "select":
            for option in subtree(node):
                if option.tagName == "option":
                    self.set_attribute(option, "selected", True if get_option_value(option) == text else None)
        else:
            self.set_attribute(node, "value", text)

    def set_attribute(self, node: Node, name: str, value: str | float | bool | None) -> None:
        if value is None:
            node.attributes.pop(name, None)
        else:
            node.attributes[name] = value


def subtree(node: Node) -> Iterator[Node]:
    """Yields a node and all its descendants in page order, including shadow trees and nested documents."""
    stack = [node]
    while stack:
        node = stack.pop()
        yield node
        stack += reversed(node.childNodes)
        if node.inner is not None:
            stack.append(node.inner)


def ancestors(node: Node) -> Iterator[Node]:
    """Yields a node and all elements around it, the nearest first."""
    ancestor: Node | None = node
    while ancestor is not None:
        if ancestor.type == NodeType.ELEMENT or ancestor is node:
            yield ancestor
        ancestor = ancestor.parent


def get_text(node: Node) -> str:
    return "".join(inside.textContent or "" for inside in subtree(node) if inside.type == NodeType.TEXT)


def get_option_value(option: Node) -> str:
    """Returns the value of an option or, if it has none, its text."""
    value = option.attributes.get("value")
    return value if isinstance(value, str) else " ".join(get_text(option).split())
