"""Decodes packed events to the records of rrweb's format that an import needs, and undoes packers.

`@rrweb/packer` makes an event one string: its JSON compressed by zlib, each byte as a character. PostHog packs fields
of an event in the same way, with gzip: all data of a full snapshot, and the lists of a mutation. Both are unpacked up
to a limit.

The records follow rrweb's `packages/types/src/index.ts`; fields that are not needed are ignored.
"""

import gzip
import re
import zlib
from io import BytesIO
from typing import Any, TypeVar

import msgspec
from msgspec import Raw

from replay_sessions.foundation.errors import BadSession

_SURROGATE = re.compile(rb"(?<!\\)((?:\\\\)*)\\u[dD](?:[89abAB]..\\u[dD][c-fC-F]..|([89a-fA-F]..))")
Kind = TypeVar("Kind")
_ANY_HEADER = 32 + zlib.MAX_WBITS  # zlib's or gzip's


def replace_lone_surrogates(content: bytes) -> bytes:
    r"""Replaces lone surrogates in JSON, left by scripts that cut texts inside an emoji, by U+FFFD.

    >>> replace_lone_surrogates(rb'"\ud83e", "\ud83e\udd57", "\\ud83e"')
    b'"\\ufffd", "\\ud83e\\udd57", "\\\\ud83e"'
    """
    if rb"\ud" not in content and rb"\uD" not in content:
        return content
    return _SURROGATE.sub(lambda match: match[1] + rb"\ufffd" if match[2] else match[0], content)


class EventType:
    DOM_CONTENT_LOADED = 0
    FULL_SNAPSHOT = 2
    INCREMENTAL = 3
    META = 4
    CUSTOM = 5


class Source:
    """The subjects of incremental events."""

    MUTATION = 0
    MOUSE_INTERACTION = 2
    RESIZE = 4
    INPUT = 5
    OF_A_PERSON = frozenset({1, 2, 3, 5, 6, 12, 14})  # also moves of mouse and finger, scrolling, drags, selections


class Pointer:
    """The kinds of mouse interactions."""

    MOUSE_DOWN = 1
    CLICK = 2
    CONTEXT_MENU = 3
    FOCUS = 5
    BLUR = 6
    TOUCH_START = 7


class NodeType:
    """The types of nodes in rrweb's numbers, which differ from the DOM's."""

    DOCUMENT = 0
    DOCTYPE = 1
    ELEMENT = 2
    TEXT = 3
    CDATA = 4


class Node(msgspec.Struct, eq=False):
    """A node of a page, in an event and in the page; the last two fields are set by `tree`.

    Attributes:
        inner: The root of its shadow tree, or the document in an iframe.
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
    inner: "Node | None" = None


class FullSnapshot(msgspec.Struct):
    node: Node


class Change(msgspec.Struct):
    """A node that is removed, or the new text or attributes of a node."""

    id: int
    value: str | None = None
    attributes: dict[str, str | float | bool | dict[str, Any] | None] = {}  # for a style, its changes


class Add(msgspec.Struct):
    parentId: int  # noqa: N815
    node: Node
    nextId: int | None = None  # noqa: N815
    previousId: int | None = None  # noqa: N815 - in recordings up to 2019


class Mutation(msgspec.Struct):
    removes: list[Change] = []
    adds: list[Add] = []
    texts: list[Change] = []
    attributes: list[Change] = []


class Interaction(msgspec.Struct):
    """A mouse interaction or, without a type, the new content of a field."""

    source: int
    id: int
    type: int | None = None
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
    payload: Raw = Raw(b"{}")


class _Incremental(msgspec.Struct):
    source: int


class Event(msgspec.Struct):
    """An event of a recording.

    Attributes:
        data: The data as JSON, which is decoded when the event is played.
        window: The tab of the event; "" if the recording only has one.
        number: Number of the event in the recording, from 1.
    """

    type: int
    timestamp: float
    data: Raw = Raw(b"{}")
    windowId: str | None = None  # noqa: N815
    window_id: str | None = None
    window: str = ""
    number: int = 0

    def source(self) -> int:
        """Returns the subject of an incremental event."""
        return read_json(self.data, _Incremental).source


class Unread(msgspec.Struct):
    """Something in a recording that is no readable event, with the reason and, if known, the tab."""

    reason: str
    window: str | None = None
    number: int = 0
    timestamp: None = None


def read_json(data: Raw | bytes, kind: type[Kind]) -> Kind:
    """Decodes a JSON value, in which numbers may be text, as data bases export them."""
    return msgspec.json.decode(data, type=kind, strict=False)


class Unpacker:
    """Undoes packers, up to a limit on the unpacked length of a file."""

    def __init__(self, longest_bytes: int) -> None:
        self._longest_bytes = longest_bytes
        self._left = longest_bytes

    def inflate(self, packed: bytes) -> bytes:
        """Decompresses data; raises BadSession if it becomes too long, and zlib.error if it is damaged."""
        stream = zlib.decompressobj(_ANY_HEADER)
        content = self._bounded(stream.decompress(packed, self._left + 1))
        if not stream.eof:
            raise zlib.error("it ends too early")
        return content

    def read_gzip(self, packed: bytes) -> bytes:
        """Decompresses a file, also one joined of several; raises BadSession as above, and any of UNREADABLE."""
        return self._bounded(gzip.GzipFile(fileobj=BytesIO(packed)).read(self._left + 1))

    def _bounded(self, content: bytes) -> bytes:
        self._left -= len(content)
        if self._left < 0:
            raise BadSession(f"it unpacks to more than {self._longest_bytes >> 20} MiB")
        return content

    def decode(self, data: Raw, kind: type[Kind]) -> Kind:
        """Decodes a JSON value, or the string that a packer made of it."""
        plain: Raw | bytes = data
        if memoryview(data)[0] == ord('"'):
            try:
                packed = msgspec.json.decode(data, type=str).encode("latin-1")
            except UnicodeEncodeError as error:
                raise zlib.error("it holds characters that are no bytes") from error
            plain = replace_lone_surrogates(self.inflate(packed))
        return read_json(plain, kind)

    def mutation(self, event: Event) -> Mutation:
        try:
            return read_json(event.data, Mutation)
        except (ValueError, RecursionError):  # a list is packed or damaged
            fields = msgspec.json.decode(event.data, type=dict[str, Raw])
            lists = {name: self.decode(fields[name], Raw) for name in Mutation.__struct_fields__ if name in fields}
            return read_json(msgspec.json.encode(lists), Mutation)
