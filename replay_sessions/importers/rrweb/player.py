"""Plays the events of a recording and records a person's acts in its windows as a timeline.

    a click       with the page when the button or finger went down, before handlers changed it
    a typed text  with the page before the first key. All keys into a field are one text, and the clicks that put the
                  cursor into the field are part of it
    a choice      in a list is a click on the option

If the recorder records presses, a click without a press before it was made by the keyboard or by the page: the return
key in a field "clicks" the button of its form, and a label clicks its field. Texts and ticks by the page itself are not
recorded: rrweb marks them (`userTriggered`), or the field was not in use.
"""

import zlib

from replay_sessions.foundation.errors import BadSession
from replay_sessions.importers.rrweb.act_log import ActLog
from replay_sessions.importers.rrweb.events import (
    Custom,
    Event,
    EventType,
    FullSnapshot,
    Interaction,
    Meta,
    Pointer,
    Size,
    Source,
    Unpacker,
    Unread,
    read_json,
)
from replay_sessions.importers.rrweb.pages import PageReader
from replay_sessions.importers.rrweb.timeline import (
    ADDRESS_TAGS,
    HIDDEN_TAG,
    TAGS,
    VIEW_TAG,
    Address,
    Pause,
    Payload,
    Remark,
    Timeline,
)
from replay_sessions.importers.rrweb.windows import Window, get_attribute, get_field_kind

_UNREADABLE = (ValueError, RecursionError, zlib.error)


class Player:
    """Plays a recording.

    Args:
        unpacker: Unpacks the data of events.
        reader: Simplifies the pages of acts.
        idle_minutes: Time without acts that makes a pause. If None, no pause is noted but the end.
    """

    def __init__(self, unpacker: Unpacker, reader: PageReader, idle_minutes: float | None) -> None:
        self._unpacker = unpacker
        self._log = ActLog(reader)
        self._idle_ms = float("inf") if idle_minutes is None else idle_minutes * 60_000
        self._windows: dict[str, Window] = {}
        self._active: Window | None = None  # the window of the last act, or one that came into view since then
        self._active_at: float | None = None  # time of the last act; None if a pause was noted since then
        self._knows_presses = False  # whether the recorder records presses, that is, whether one has come

    def play(self, events: list[Event | Unread]) -> Timeline:
        """Plays a recording's events, in time order, and returns its timeline.

        Raises:
            BadSession: The recording is too large.
        """
        last: Event | None = None
        for event in events:
            if isinstance(event, Unread):
                windows = (window for window in self._windows.values() if event.window in (None, window.name))
                self._not_read(event.number, event.reason, *windows)
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
                may_have_changed = event.type in (EventType.FULL_SNAPSHOT, EventType.INCREMENTAL)
                self._not_read(event.number, str(error), *[window] * may_have_changed)
        if last is not None:
            self._pause(last, is_end=True)
        return self._log.timeline

    def _play(self, event: Event, window: Window) -> None:
        match event.type:
            case EventType.DOM_CONTENT_LOADED:
                window.is_loading = True
            case EventType.META:
                meta = read_json(event.data, Meta)
                window.resize(meta)
                self._address(window, meta.href)
            case EventType.FULL_SNAPSHOT:
                window.show(self._unpacker.decode(event.data, FullSnapshot).node)
                window.focused = None
                self._active = self._active or window
            case EventType.INCREMENTAL:
                self._change(event, window, event.source())
            case EventType.CUSTOM:
                remark = read_json(event.data, Custom)
                if remark.tag in TAGS:
                    self._remark(remark.tag, window, read_json(remark.payload, Payload))

    def _remark(self, tag: str, window: Window, payload: Payload) -> None:
        if tag in ADDRESS_TAGS and payload.href:
            self._address(window, payload.href)
        elif tag == HIDDEN_TAG and window.page is not None:
            window.keep_press()
            window.page.hidden = payload.ids
        elif tag == VIEW_TAG:
            self._active = window
        else:
            self._log.timeline.append(Remark(tag, window.name, payload))

    def _change(self, event: Event, window: Window, source: int) -> None:
        if source in Source.OF_A_PERSON:
            self._active, self._active_at = window, event.timestamp
        if source == Source.MUTATION and window.page is not None:
            window.keep_press()
            window.page.apply(self._unpacker.mutation(event))
        elif source == Source.MOUSE_INTERACTION:
            self._interact(event, window, read_json(event.data, Interaction))
        elif source == Source.RESIZE:
            window.resize(read_json(event.data, Size))
        elif source == Source.INPUT:
            self._change_field(event, window, read_json(event.data, Interaction))

    def _interact(self, event: Event, window: Window, interaction: Interaction) -> None:
        match interaction.type:
            case Pointer.TOUCH_START | Pointer.MOUSE_DOWN:
                self._knows_presses = True
                window.begin_press(interaction.id, event.timestamp, is_touch=interaction.type == Pointer.TOUCH_START)
            case Pointer.CLICK:
                # `pointerType` does not help: Chromium sets a mouse's for clicks that the return key or a label makes.
                by_pointer = window.press is not None or not self._knows_presses
                self._log.click(event, window, interaction.id, by_pointer=by_pointer)
            case Pointer.CONTEXT_MENU:
                window.press = None
            case Pointer.FOCUS:
                window.focused = interaction.id
            case Pointer.BLUR:
                window.focused = None

    def _change_field(self, event: Event, window: Window, change: Interaction) -> None:
        """Notes what a person or the page typed, chose or ticked, and changes the field."""
        node = window.node(change.id)
        if node is None or window.page is None:
            if change.userTriggered:
                self._log.leave("input", event.number, window.missing(change.id))
            return
        kind, value = get_field_kind(node), get_attribute(node, "value")
        window.keep_press()
        if kind is not None and self._is_by_person(window, change, value):
            if kind == "type":
                self._log.type(event, window, node, change)
            else:
                self._log.choose(event, window, node, change)
        elif kind is not None and change.userTriggered is None and change.text not in ("", value):
            self._log.leave_once("input into a field that was not in use", event.number)
        window.page.hidden = frozenset()
        if kind is not None:
            window.page.set_value(node, change.text)
        else:
            window.page.set_attribute(node, "checked", True if change.isChecked else None)

    def _is_by_person(self, window: Window, change: Interaction, value: str) -> bool:
        if change.userTriggered is not None:
            return change.userTriggered
        if window.focused is not None:
            return window.focused == change.id
        return change.text not in ("", value)

    def _address(self, window: Window, href: str) -> None:
        if href != window.href or window.is_loading:
            window.typing = None
            self._log.timeline.append(Address(window.name, href, window.href))
        window.href, window.is_loading = href, False

    def _pause(self, last: Event, *, is_end: bool) -> None:
        """Notes a pause with the page of the last act, as it is before the next event."""
        window = self._active or Window("")
        self._log.timeline.append(Pause(window.view(None), last.number, last.timestamp, window.href, is_end))
        self._active_at = None

    def _not_read(self, number: int, reason: str, *windows: Window) -> None:
        self._log.timeline.append(Unread(" ".join(reason.split()), number=number))
        for window in windows:
            window.page, window.lost = None, f"event {number}, which may have changed the page, cannot be read"
