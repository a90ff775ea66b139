"""A packed event -> what it says: the records of rrweb's format that an import needs, and what packers did to them.

`@rrweb/packer` makes an event one string, its JSON under zlib, each byte a character. PostHog packs fields of an event
the same way, under gzip: all of a full snapshot's data, and the lists of a mutation. Both are undone within a bound.

The records follow rrweb's `packages/types/src/index.ts`; fields that are not needed are passed over.
"""

import re
import zlib
from typing import Any, Self

import msgspec
from msgspec import Raw

from replay_sessions.foundation.errors import BadSession

_SOURCE = re.compile(rb'\{"source":(\d{1,9})[,}]')
_ANY_HEADER = 32 + zlib.MAX_WBITS  # zlib's or gzip's


class EventType:
    DOM_CONTENT_LOADED = 0
    LOAD = 1
    FULL_SNAPSHOT = 2
    INCREMENTAL = 3
    META = 4
    CUSTOM = 5


class Source:
    """What an incremental event is about."""

    MUTATION = 0
    MOUSE_MOVE = 1
    MOUSE_INTERACTION = 2
    SCROLL = 3
    RESIZE = 4
    INPUT = 5
    TOUCH_MOVE = 6
    DRAG = 12
    SELECTION = 14


class Pointer:
    """What a mouse interaction is."""

    MOUSE_DOWN = 1
    CLICK = 2
    CONTEXT_MENU = 3
    FOCUS = 5
    BLUR = 6
    TOUCH_START = 7


class NodeType:
    """rrweb's numbers, which are not the DOM's."""

    DOCUMENT = 0
    DOCTYPE = 1
    ELEMENT = 2
    TEXT = 3
    CDATA = 4
    COMMENT = 5


_OWN_FIELDS = ("parent", "first", "last", "previous", "next", "inner", "depth", "written", "html", "changed_at")


# A name with a blank is no name that a recorder gives.
class Node(msgspec.Struct, eq=False, rename=lambda name: f" {name}" if name in _OWN_FIELDS else name):
    """A node of a page, as an event brings it and as the page holds it: links to its neighbours are set in `tree`.

    Attributes:
        inner: The root of its shadow tree, or the document in an iframe.
        written: Its start tag or text as HTML, until it changes (page_writer.py).
        html: It and all in it as HTML, until anything in it changes.
        changed_at: After how many writes of the page something in it changed last (tree.py).
    """

    type: int
    id: int
    tagName: str = ""  # noqa: N815 - rrweb's word
    attributes: dict[str, str | float | bool | None] = {}
    childNodes: list["Node"] = []  # noqa: N815
    textContent: str | None = None  # noqa: N815
    isShadow: bool = False  # noqa: N815
    rootId: int | None = None  # noqa: N815
    parent: "Node | None" = None
    first: "Node | None" = None
    last: "Node | None" = None
    previous: "Node | None" = None
    next: "Node | None" = None
    inner: "Node | None" = None
    depth: int = 0
    written: str | None = None
    html: str | None = None
    changed_at: int = 0


class FullSnapshot(msgspec.Struct):
    node: Node


class Remove(msgspec.Struct):
    id: int
    parentId: int | None = None  # noqa: N815


class Add(msgspec.Struct):
    parentId: int  # noqa: N815
    node: Node
    nextId: int | None = None  # noqa: N815
    previousId: int | None = None  # noqa: N815 - of recordings up to 2019


class TextChange(msgspec.Struct):
    id: int
    value: str | None = None


class AttributeChange(msgspec.Struct):
    id: int
    attributes: dict[str, str | float | bool | dict[str, Any] | None] = {}  # of a style, what changed


class Mutation(msgspec.Struct):
    removes: list[Remove] = []
    adds: list[Add] = []
    texts: list[TextChange] = []
    attributes: list[AttributeChange] = []


class Interaction(msgspec.Struct):
    type: int
    id: int


class Input(msgspec.Struct):
    id: int
    text: str = ""
    isChecked: bool = False  # noqa: N815
    userTriggered: bool | None = None  # noqa: N815


class Size(msgspec.Struct):
    width: float = 0
    height: float = 0


class Meta(Size):
    href: str = ""


class Custom(msgspec.Struct):
    tag: str
    payload: Any = None


class _Incremental(msgspec.Struct):
    source: int


class Packed(msgspec.Struct):
    """An event as JSON holds it; its data is read when its turn comes."""

    type: int
    timestamp: float
    data: Raw = Raw(b"{}")
    windowId: str | None = None  # noqa: N815
    window_id: str | None = None


class Event(msgspec.Struct, frozen=True):
    """An event of a recording.

    Attributes:
        window: The tab that it happened in; "" where the recording knows one only.
        number: Which event of the recording it is, from 1.
    """

    type: int
    timestamp: float
    data: Raw
    window: str
    number: int

    @classmethod
    def of(cls, packed: Packed, window: str, number: int) -> Self:
        window = window or packed.windowId or packed.window_id or ""
        return cls(packed.type, packed.timestamp, packed.data, window, number)

    def source(self) -> int:
        """What an incremental event is about; recorders write it first, so that the rest need not be gone through."""
        first = _SOURCE.match(memoryview(self.data))
        if first is not None:
            return int(first[1])
        return msgspec.json.decode(self.data, type=_Incremental).source


class Unread(msgspec.Struct, frozen=True):
    """Something in a recording that is no event that can be read, and why; in which tab, where that is known."""

    number: int
    reason: str
    window: str | None = None


class Unpacker:
    """Undoes what packers did, up to a length that all of a file may unpack to."""

    def __init__(self, longest_bytes: int) -> None:
        self._longest_bytes = longest_bytes
        self._left = longest_bytes

    def inflate(self, packed: bytes) -> bytes:
        """Raises BadSession where it grows too long, zlib.error where it is damaged."""
        stream = zlib.decompressobj(_ANY_HEADER)
        content = stream.decompress(packed, self._left + 1)
        self._left -= len(content)
        if self._left < 0:
            raise BadSession(f"it unpacks to more than {self._longest_bytes >> 20} MiB (--max-session-mib)")
        if not stream.eof:
            raise zlib.error("it ends too early")
        return content

    def event(self, text: Raw) -> Packed:
        """An event that is a string of @rrweb/packer's."""
        return msgspec.json.decode(self._inflated(text), type=Packed)

    def snapshot(self, event: Event) -> Node:
        """The page in a full snapshot."""
        return msgspec.json.decode(self._plain(event.data), type=FullSnapshot).node

    def mutation(self, event: Event) -> Mutation:
        try:
            return msgspec.json.decode(event.data, type=Mutation)
        except (ValueError, RecursionError):  # a list is packed, or damaged
            fields = msgspec.json.decode(event.data, type=dict[str, Raw])
            lists = {name: fields[name] for name in Mutation.__struct_fields__ if name in fields}
            unpacked = {name: Raw(self._plain(data)) for name, data in lists.items()}
            return msgspec.json.decode(msgspec.json.encode(unpacked), type=Mutation)

    def _plain(self, data: Raw) -> Raw | bytes:
        return self._inflated(data) if memoryview(data)[0] == ord('"') else data

    def _inflated(self, text: Raw) -> bytes:
        try:
            return self.inflate(msgspec.json.decode(text, type=str).encode("latin-1"))
        except UnicodeEncodeError as error:
            raise zlib.error("it holds characters that are no bytes") from error
