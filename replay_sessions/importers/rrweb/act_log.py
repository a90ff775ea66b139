"""Converts what a person did in the windows of a recording to acts: clicks, typed texts, choices, each with its page.

A click into a field that is then typed into is no separate act. The same holds for clicks that open a list to choose
from.
"""

from typing import TypeGuard

import msgspec

from replay_sessions.importers.rrweb.events import Event, Interaction, Node
from replay_sessions.importers.rrweb.pages import PageReader, View
from replay_sessions.importers.rrweb.timeline import Act, NoAction, Timeline
from replay_sessions.importers.rrweb.tree import get_option_value, subtree
from replay_sessions.importers.rrweb.windows import Window, find_submit_button, get_attribute, is_masked

_ECHO_MS = 100  # a click that another click causes follows it within this time


class ActLog:
    """Builds the timeline of a recording.

    Args:
        reader: Simplifies the pages of acts.
    """

    def __init__(self, reader: PageReader) -> None:
        self.timeline: Timeline = []
        self._reader = reader

    def click(self, event: Event, window: Window, node_id: int, *, by_pointer: bool) -> None:
        """Adds a click.

        Args:
            by_pointer: Whether a mouse or a finger made the click, not a key or the page.
        """
        if window.press is None or window.press.view is None:  # the page has not changed since the press
            window.press = None
            window.begin_press(node_id, event.timestamp, is_touch=False)
            window.keep_press()
        press, window.press = window.press, None
        if press is None or press.view is None:
            self.leave("click", event.number, window.missing(node_id))
            return
        outward = press.path.index(node_id) if node_id in press.path else 0
        view = msgspec.structs.replace(press.view, outward=outward)
        if not by_pointer:
            if self._is_sent(window, press.node):
                return
            if event.timestamp - window.clicked_at <= _ECHO_MS:
                if getattr(self._last(), "node_id", None) != press.node.id:  # otherwise a label clicks its field
                    self.leave("click that the page made", event.number)
                return
        window.clicked_at = event.timestamp
        act = self._act("click", event, window, press.node, view)
        act.form_id, act.is_submit = press.form_id, press.is_submit  # the pressed node may be gone
        self.timeline.append(act)

    def _is_sent(self, window: Window, node: Node) -> bool:
        """Returns whether a click without a press is the return key in the field that is typed into.

        If so, the typed text is marked as submitted.
        """
        typing = self._typing(window)
        button = find_submit_button(node)
        if typing is None or button is None or typing.form_id is None or window.form_of(button) != typing.form_id:
            return False
        typing.submitted = True
        window.typing = None
        return True

    def type(self, event: Event, window: Window, node: Node, data: Interaction) -> None:
        """Adds the input of a key to a field, before the field is changed."""
        typing = self._typing(window)
        self._drop_clicks(window, node)
        window.press = None  # of the middle button or a drag: no click followed
        if typing is None or typing.node_id != node.id:
            typing = self._act("type_and_submit", event, window, node)
            typing.is_secret = get_attribute(node, "type").lower() == "password"
            typing.field_name = get_attribute(node, "name")
            self.timeline.append(typing)
            window.typing = typing
        if not data.text and len(typing.text) > 1:
            return  # all at once: a page empties its field after it has read the text
        typing.text = data.text
        typing.is_masked = is_masked(data.text)

    def choose(self, event: Event, window: Window, node: Node, data: Interaction) -> None:
        """Adds the choice of another option of a list, before the list is changed."""
        self._drop_clicks(window, node)
        window.press, window.clicked_at = None, event.timestamp  # a click on the option may follow
        is_hidden = is_masked(data.text)
        options = (option for option in subtree(node) if option.tagName == "option")
        named = (option for option in options if get_option_value(option) == data.text)
        chosen = node if is_hidden else next(named, None)
        if chosen is None:
            self.leave("click", event.number, "the list has no such option")
            return
        act = self._act("click", event, window, chosen)
        act.is_masked = is_hidden
        self.timeline.append(act)

    def leave(self, name: str, number: int, reason: str = "") -> None:
        """Adds something that was done but is no action."""
        self.timeline.append(NoAction(name, number, reason))

    def leave_once(self, name: str, number: int) -> None:
        """Adds it unless the last entry has the same name, as for the next key of the same text."""
        if getattr(self._last(), "name", None) != name:
            self.leave(name, number)

    def _act(self, kind: str, event: Event, window: Window, node: Node, view: View | None = None) -> Act:
        return Act(
            kind=kind,  # type: ignore[arg-type]
            window=window.name,
            number=event.number,
            timestamp=event.timestamp,
            href=window.href,
            page=self._reader.read(view or window.view(node)),
            node_id=node.id,
            form_id=window.form_of(node),
            is_submit=find_submit_button(node) is not None,
        )

    def _typing(self, window: Window) -> Act | None:
        """Returns the text being typed in a window, if only clicks into its field follow it in the timeline."""
        for entry in reversed(self.timeline):
            if entry is window.typing:
                return window.typing
            if window.typing is None or not _is_on(entry, window, window.typing.node_id):
                return None
        return None

    def _drop_clicks(self, window: Window, node: Node) -> None:
        while _is_on(last := self._last(), window, node.id) and last.kind == "click":
            self.timeline.pop()

    def _last(self) -> object:
        return self.timeline[-1] if self.timeline else None


def _is_on(entry: object, window: Window, node_id: int) -> TypeGuard[Act]:
    return isinstance(entry, Act) and (entry.window, entry.node_id) == (window.name, node_id)
