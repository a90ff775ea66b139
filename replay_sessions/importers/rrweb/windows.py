"""One tab of a recording: its page, what is pressed in it, and how it looks at a moment."""

import msgspec

from replay_sessions.importers.rrweb.events import Node
from replay_sessions.importers.rrweb.mutations import Rebuilder
from replay_sessions.importers.rrweb.page_writer import write_page
from replay_sessions.importers.rrweb.targets import form_of, meant, submit_button
from replay_sessions.importers.rrweb.timeline import Act, View
from replay_sessions.importers.rrweb.tree import ancestors

__all__ = ["Press", "Window"]

_LONGEST_TAP_MS = 1_000
_UNKNOWN = "no full snapshot came before it"


class Press(msgspec.Struct, eq=False):
    """A button or finger that went down.

    Attributes:
        view: The page at that time, once it has changed since; so with all that follows.
        path: The ids of what was pressed and of all around it.
        form_id, is_submit: The form that it belongs to, and whether it submits that.
    """

    node: Node
    at: float
    is_touch: bool
    view: View | None = None
    path: tuple[int, ...] = ()
    form_id: int | None = None
    is_submit: bool = False


class Window:
    """A tab.

    Attributes:
        page: None before the first full snapshot.
        lost: Why the page is not known; "" where it is.
        href, width: What the last Meta event said of it.
        is_loading: Whether a new document began since the last address.
        focused: The id of the field that is in use.
        typing: The text that is being typed.
        clicked_at: When the last click was, in milliseconds.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.page: Rebuilder | None = None
        self.lost = _UNKNOWN
        self.href = ""
        self.width: float | None = None
        self.is_loading = False
        self.press: Press | None = None
        self.focused: int | None = None
        self.typing: Act | None = None
        self.clicked_at = float("-inf")
        self._view: tuple[int, int | None, View] | None = None

    def show(self, root: Node) -> None:
        """Shows the page of a full snapshot: another one, or the same once more."""
        self.keep_press()
        page = Rebuilder(root, self.width)
        self.forget()
        self.page, self.lost = page, ""

    def forget(self, why: str = _UNKNOWN) -> None:
        """Shows nothing that is known."""
        if self.page is not None:
            self.page.tree.dissolve()
        self.page, self.lost, self._view = None, why, None

    def node(self, node_id: int) -> Node | None:
        return self.page.tree.nodes.get(node_id) if self.page is not None else None

    def form_of(self, node: Node) -> int | None:
        return form_of(self.page.tree, node) if self.page is not None else None

    def view(self, acted_on: Node | None) -> View:
        """The page as it is, with a mark on what is acted on."""
        if self.page is None or self.lost:
            return View("", page=self.lost)
        tree = self.page.tree
        marked = acted_on.id if acted_on is not None else None
        if self._view is None or self._view[:2] != (tree.version, marked):
            self._view = tree.version, marked, View(write_page(tree, acted_on))
        return self._view[2]

    def begin_press(self, node_id: int, at: float, *, is_touch: bool) -> None:
        """Notes a press, but for that of the mouse which browsers make up after one of a finger."""
        press = self.press
        if press is not None and press.is_touch and not is_touch and at - press.at <= _LONGEST_TAP_MS:
            return
        node = self.node(node_id)
        self.press = Press(node, at, is_touch) if node is not None else None

    def keep_press(self) -> None:
        """Keeps the page as it was at the press, as it is about to change."""
        press = self.press
        if press is not None and press.view is None and self.page is not None:
            pressed = press.node
            press.node = meant(self.page.tree, pressed)
            press.view = self.view(press.node)
            press.path = tuple(node.id for node in ancestors(pressed)) if press.node is pressed else ()
            press.form_id, press.is_submit = self.form_of(press.node), submit_button(press.node) is not None
