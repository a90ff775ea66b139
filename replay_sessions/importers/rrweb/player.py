"""Events -> timeline: the windows of a recording are played, and what a person did in them is noted.

    a click       with the page as it was when button or finger went down, before handlers changed it
    a typed text  with the page as it was before the first key: all keys into one field are one text, and the clicks
                  that put the cursor there are part of it
    a choice      in a list is a click on the option

A click without a press before it, where the recorder tells of presses, was made by the keyboard, or by the page: the
return key in a field "clicks" the button of its form, and a label the field that it stands for. What the page types and
ticks itself is none of it: rrweb says so (`userTriggered`), or the field was not in use.
"""

import zlib
from collections.abc import Callable, Iterable

import msgspec

from replay_sessions.errors import BadSession
from replay_sessions.importers.rrweb.act_log import ActLog
from replay_sessions.importers.rrweb.acted_pages import ActedPage
from replay_sessions.importers.rrweb.events import (
    Custom,
    Event,
    EventType,
    Input,
    Interaction,
    Meta,
    Pointer,
    Source,
    Unpacker,
    Unread,
)
from replay_sessions.importers.rrweb.page_helpers import PageToCome
from replay_sessions.importers.rrweb.remarks import ADDRESS_TAGS, REMARK_TAGS, VIEW_TAG, texts_of
from replay_sessions.importers.rrweb.targets import attribute, field_kind
from replay_sessions.importers.rrweb.timeline import Address, NotRead, Pause, Remark, Timeline, View
from replay_sessions.importers.rrweb.windows import Window

__all__ = ["Player"]

_SMALL = 4_096  # bytes: what tells of a pointer or a field is shorter
_ACTIVITY = frozenset({
    Source.DRAG, Source.INPUT, Source.MOUSE_INTERACTION, Source.MOUSE_MOVE, Source.SCROLL, Source.SELECTION,
    Source.TOUCH_MOVE,
})  # fmt: skip
_UNREADABLE = (ValueError, RecursionError, zlib.error)


class Player:
    """Plays one recording.

    Args:
        settle: Simplifies the page of a view.
        idle_s: How long nothing is done in a pause; None: there are none.
    """

    def __init__(
        self, unpacker: Unpacker, settle: Callable[[View], ActedPage | str | PageToCome], idle_s: float | None
    ) -> None:
        self._unpacker = unpacker
        self._log = ActLog(settle)
        self._idle_ms = idle_s * 1000 if idle_s is not None else float("inf")
        self._windows: dict[str, Window] = {}
        self._active: Window | None = None  # where something was done last, or what came into sight since
        self._active_at: float | None = None  # None: there was a pause since
        self._knows_presses = self._knows_users = False

    def play(self, events: list[Event | Unread]) -> Timeline:
        """The timeline of a recording's events, which come in the order of time.

        Raises:
            BadSession: It is too large, or no recording of a person.
        """
        self._learn(event for event in events if isinstance(event, Event))
        last: Event | None = None
        for event in events:
            if isinstance(event, Unread):
                known = self._windows.values()
                self._not_read(event.number, event.reason, *(one for one in known if event.window in (None, one.name)))
                continue
            if last is not None and self._active_at is not None and event.timestamp - self._active_at > self._idle_ms:
                self._pause(last, is_end=False)
            last = event
            window = self._windows.setdefault(event.window, Window(event.window))
            try:
                self._play(event, window)
            except _UNREADABLE as error:
                if isinstance(error, BadSession):
                    raise
                self._not_read(event.number, str(error), *[window] * _may_change_page(event))
        if last is not None:
            self._pause(last, is_end=True)
        for window in self._windows.values():
            window.forget()
        return self._log.timeline

    def _learn(self, events: Iterable[Event]) -> None:
        """Whether the recorder tells of presses, and of who gave an input."""
        for event in events:
            if event.type != EventType.INCREMENTAL or len(data := memoryview(event.data)) > _SMALL:
                continue
            self._knows_users = self._knows_users or b'"userTriggered"' in data.tobytes()
            if not self._knows_presses:
                try:
                    if event.source() == Source.MOUSE_INTERACTION:
                        done = msgspec.json.decode(event.data, type=Interaction)
                        self._knows_presses = done.type in (Pointer.MOUSE_DOWN, Pointer.TOUCH_START)
                except ValueError:
                    continue

    def _play(self, event: Event, window: Window) -> None:
        match event.type:
            case EventType.DOM_CONTENT_LOADED:
                window.is_loading = True
            case EventType.META:
                meta = msgspec.json.decode(event.data, type=Meta)
                window.width = meta.width
                self._address(window, meta.href)
            case EventType.FULL_SNAPSHOT:
                window.show(self._unpacker.snapshot(event))
                window.focused = None
                self._active = self._active or window
            case EventType.INCREMENTAL:
                self._change(event, window, event.source())
            case EventType.CUSTOM:
                said = msgspec.json.decode(event.data, type=Custom)
                fields = texts_of(said.payload)
                if said.tag in ADDRESS_TAGS and fields.get("href"):
                    self._address(window, fields["href"])
                elif said.tag == VIEW_TAG:
                    self._active = window
                elif said.tag in REMARK_TAGS:
                    self._log.timeline.append(Remark(said.tag, event.window, fields))

    def _change(self, event: Event, window: Window, source: int) -> None:
        if source in _ACTIVITY:
            self._active, self._active_at = window, event.timestamp
        if source == Source.MUTATION and window.page is not None:
            window.keep_press()
            window.page.apply(self._unpacker.mutation(event))
        elif source == Source.MOUSE_INTERACTION:
            self._interact(event, window, msgspec.json.decode(event.data, type=Interaction))
        elif source == Source.INPUT:
            self._give(event, window, msgspec.json.decode(event.data, type=Input))

    def _interact(self, event: Event, window: Window, done: Interaction) -> None:
        match done.type:
            case Pointer.TOUCH_START | Pointer.MOUSE_DOWN:
                window.begin_press(done.id, event.timestamp, is_touch=done.type == Pointer.TOUCH_START)
            case Pointer.CLICK:
                # `pointerType` does not tell: Chromium gives a mouse's to clicks that the return key or a label makes.
                by_pointer = window.press is not None or not self._knows_presses
                self._log.click(event, window, done.id, by_pointer=by_pointer)
            case Pointer.CONTEXT_MENU:
                window.press = None
            case Pointer.FOCUS:
                window.focused = done.id
            case Pointer.BLUR:
                window.focused = None

    def _give(self, event: Event, window: Window, given: Input) -> None:
        """What was typed, chosen or ticked, by a person or by the page."""
        node = window.node(given.id)
        if node is None or window.page is None:
            if given.userTriggered:
                why = window.lost or f"node {given.id} is not in the page"
                self._log.leave("input", event.number, why)
            return
        kind = field_kind(node)
        window.keep_press()
        if kind is not None and self._is_persons(window, given, attribute(node, "value")):
            if kind == "type":
                self._log.type(event, window, node, given)
            else:
                self._log.choose(event, window, node, given)
        elif kind is not None and not self._knows_users and given.text not in ("", attribute(node, "value")):
            self._log.leave_once("input into a field that was not in use", event.number)
        tree = window.page.tree
        tree.version += 1
        if kind is not None:
            tree.set_value(node, given.text)
        else:
            tree.set_attribute(node, "checked", True if given.isChecked else None)

    def _is_persons(self, window: Window, given: Input, value: str) -> bool:
        if self._knows_users:
            return given.userTriggered is True
        if window.focused is not None:
            return window.focused == given.id
        return given.text not in ("", value)

    def _address(self, window: Window, href: str) -> None:
        if href != window.href or window.is_loading:
            window.typing = None
            self._log.timeline.append(Address(window.name, href, window.href))
        window.href, window.is_loading = href, False

    def _pause(self, last: Event, *, is_end: bool) -> None:
        """Notes a pause on the page where something was done last, as it is before the next event."""
        window = self._active or Window("")
        self._log.settle()
        self._log.timeline.append(Pause(window.view(None), last.number, last.timestamp, window.href, is_end))
        self._active_at = None

    def _not_read(self, number: int, reason: str, *windows: Window) -> None:
        self._log.timeline.append(NotRead(number, " ".join(reason.split())))
        for window in windows:
            window.forget(f"event {number}, which may have changed the page, cannot be read")


def _may_change_page(event: Event) -> bool:
    try:
        return event.type == EventType.FULL_SNAPSHOT or (
            event.type == EventType.INCREMENTAL and event.source() == Source.MUTATION
        )
    except ValueError:
        return True
