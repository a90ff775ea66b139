"""A tab of a recording: its page, the press in progress, and its view at a moment."""

from typing import Literal

import msgspec

from replay_sessions.importers.rrweb.events import Node, NodeType, Size
from replay_sessions.importers.rrweb.mutations import Page
from replay_sessions.importers.rrweb.page_writer import write_page
from replay_sessions.importers.rrweb.pages import View
from replay_sessions.importers.rrweb.timeline import Act
from replay_sessions.importers.rrweb.tree import Tree, ancestors, subtree
from replay_sessions.simplify.media import DESKTOP, Viewport
from replay_sessions.simplify.targets import can_be_acted_on

_CONTROLS = frozenset({"button", "input", "meter", "output", "progress", "select", "textarea"})
_INPUTS = "button checkbox color file hidden image radio range reset submit"
_NOT_TYPED = frozenset(_INPUTS.split())
_SUBMITTING = frozenset({"image", "submit"})


def get_attribute(node: Node, name: str) -> str:
    """Returns the text of an attribute, or "" if the node lacks it."""
    value = node.attributes.get(name)
    return value if isinstance(value, str) else ""


def get_field_kind(node: Node) -> Literal["type", "choose"] | None:
    """Returns how a person fills in a field; None if by clicks, or if the node is no field."""
    if node.tagName == "textarea":
        return "type"
    if node.tagName == "select":
        return "choose"
    is_typed = node.tagName == "input" and get_attribute(node, "type").strip().lower() not in _NOT_TYPED
    return "type" if is_typed else None


def find_target(tree: Tree, pressed: Node) -> Node:
    """Returns the target of a press: the pressed node, or the control of the label around it."""
    for node in ancestors(pressed):
        if node.type != NodeType.ELEMENT:
            continue
        if _acts(node):
            return pressed
        if node.tagName == "label":
            return _control_of(tree, node) or pressed
    return pressed


def _control_of(tree: Tree, label: Node) -> Node | None:
    """Returns the field of a label."""
    if field_id := get_attribute(label, "for"):
        return _find_by_id(tree, field_id)
    return next((node for node in subtree(label) if node.tagName in _CONTROLS), None)


def _find_by_id(tree: Tree, element_id: str) -> Node | None:
    return next((node for node in subtree(tree.root) if node.attributes.get("id") == element_id), None)


def find_submit_button(node: Node) -> Node | None:
    """Returns the button that submits a form, if a node is one or is inside one."""
    for ancestor in ancestors(node):
        kind = get_attribute(ancestor, "type").strip().lower()
        if ancestor.tagName == "button":
            return ancestor if kind not in ("button", "reset") else None
        if ancestor.tagName == "input":
            return ancestor if kind in _SUBMITTING else None
    return None


def is_masked(text: str) -> bool:
    """Returns whether a recorder masked a text.

    >>> is_masked("******"), is_masked("5 * 3"), is_masked("")
    (True, False, False)
    """
    return bool(text) and not text.strip("*")


def _acts(node: Node) -> bool:
    attributes = {name: None if value is None else str(value) for name, value in node.attributes.items()}
    return can_be_acted_on(node.tagName, attributes)


_PHONE_WIDTH = 600
_LONGEST_TAP_MS = 1_000
_UNKNOWN = "no full snapshot came before it"


class Press(msgspec.Struct, eq=False):
    """A press of a button or finger.

    Attributes:
        view: The page at the time of the press, set when it is about to change. The following attributes are set then,
            too.
        path: Ids of the pressed node and of all nodes around it.
        form_id: Id of the form that the node belongs to.
        is_submit: Whether the node submits the form.
    """

    node: Node
    at: float
    is_touch: bool
    view: View | None = None
    path: tuple[int, ...] = ()
    form_id: int | None = None
    is_submit: bool = False


class Window(msgspec.Struct, eq=False):
    """A tab of the browser.

    Attributes:
        page: The page; None before the first full snapshot.
        lost: Why the page is unknown; "" if it is known.
        href: Address of the page.
        viewport: Size of the window, as recorded last.
        is_loading: Whether a new document has begun since the last address.
        focused: Id of the field in use.
        typing: The text that is being typed.
        clicked_at: Time of the last click, in milliseconds.
    """

    name: str
    page: Page | None = None
    lost: str = _UNKNOWN
    href: str = ""
    viewport: Viewport = DESKTOP
    is_loading: bool = False
    press: Press | None = None
    focused: int | None = None
    typing: Act | None = None
    clicked_at: float = float("-inf")

    def show(self, root: Node) -> None:
        """Shows the page of a full snapshot, which may be a new page or the same page again."""
        self.keep_press()
        self.page, self.lost = Page(root, self.viewport), ""

    def resize(self, size: Size) -> None:
        """Changes the size; a window as narrow as a phone counts as a phone."""
        if size.width > 0 and size.height > 0:
            self.viewport = Viewport(size.width, size.height, is_touch=size.width < _PHONE_WIDTH)
        if self.page is not None and self.page.viewport != self.viewport:
            self.page.viewport = self.viewport
            self.page.hidden = frozenset()

    def node(self, node_id: int) -> Node | None:
        return self.page.nodes.get(node_id) if self.page is not None else None

    def missing(self, node_id: int) -> str:
        """Returns why a node is unknown."""
        return self.lost or f"node {node_id} is not in the page"

    def form_of(self, node: Node) -> int | None:
        """Returns the id of the form that a field or button belongs to."""
        if self.page is None:
            return None
        form_id = get_attribute(node, "form")
        forms = (form for form in ancestors(node) if form.tagName == "form")
        form = _find_by_id(self.page, form_id) if form_id else next(forms, None)
        return None if form is None else form.id

    def view(self, acted_on: Node | None) -> View:
        """Returns the current page with a mark on an element."""
        if self.page is None or self.lost:
            return View("", lost=self.lost)
        return View(write_page(self.page, acted_on), self.page.viewport)

    def begin_press(self, node_id: int, at: float, *, is_touch: bool) -> None:
        """Notes a press, except the mouse press that browsers simulate after a finger's."""
        press = self.press
        if press is not None and press.is_touch and not is_touch and at - press.at <= _LONGEST_TAP_MS:
            return
        node = self.node(node_id)
        self.press = Press(node, at, is_touch) if node is not None else None

    def keep_press(self) -> None:
        """Stores the page for the press in progress, before the page changes."""
        press = self.press
        if press is not None and press.view is None and self.page is not None:
            pressed = press.node
            press.node = find_target(self.page, pressed)
            press.view = self.view(press.node)
            press.path = tuple(node.id for node in ancestors(pressed)) if press.node is pressed else ()
            press.form_id, press.is_submit = self.form_of(press.node), find_submit_button(press.node) is not None
