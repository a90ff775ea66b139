"""What a page posts -> a batch: some events of one tab of one session, and their place in its order.

    {"session_id": "5d…", "user_id": "a1…", "window_id": "9c…", "number": 3, "events": [{"type": 3, …}, …]}

`number` counts the batches of a tab within a session from 0, without holes: by it a batch that is posted again is
known, and what never came is missed (importers/rrweb/packings.py). The events are rrweb's, and nothing is read of them
but that they are some.
"""

import re
from hashlib import blake2b
from typing import Annotated

import msgspec
from msgspec import Meta, Raw

from replay_sessions.foundation.errors import BadSession

_ID = re.compile(r"[0-9a-z][0-9a-z_-]{0,63}")
_USER_ID = re.compile(r"[^\x00-\x1f\x7f/\\]{1,128}")
_LATEST_MS = 8.64e15  # the last moment that a browser's Date can hold


class _Posted(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    session_id: str
    user_id: str
    window_id: str
    number: Annotated[int, Meta(ge=0, lt=2**31)]
    events: Raw


class _Event(msgspec.Struct):
    type: Annotated[int, Meta(ge=0, le=99)]
    timestamp: Annotated[float, Meta(gt=0, le=_LATEST_MS)]


class Batch(msgspec.Struct, frozen=True):
    """A batch that fits.

    Attributes:
        session_id: Also the name of the session's file: small letters, digits, `-` and `_` alone.
        at: The time of its first event, in milliseconds.
        line: What is written of it.
        digest: Of its events, to distinguish a repeated batch from another of the same number.
    """

    session_id: str
    user_id: str
    window_id: str
    number: int
    at: float
    line: bytes
    digest: bytes

    @property
    def key(self) -> tuple[str, int]:
        """Which batch of its session it is."""
        return self.window_id, self.number


def read_batch(body: bytes) -> Batch:
    """The batch in a request.

    Raises:
        BadSession: It is none, and why.
    """
    try:
        body.decode()  # what stands in the events is not looked at below
        posted = msgspec.json.decode(body, type=_Posted)
        events = msgspec.json.decode(posted.events, type=list[_Event])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BadSession(f"that is no batch of events: {error}") from error
    for name, value in (("session_id", posted.session_id), ("window_id", posted.window_id)):
        if not _ID.fullmatch(value):
            raise BadSession(f"{name} is {value[:80]!r}: 1 to 64 of a-z, 0-9, - and _ were expected")
    if not _USER_ID.fullmatch(posted.user_id):
        raise BadSession(f"user_id is {posted.user_id[:80]!r}: up to 128 characters without / and \\ were expected")
    if not events:
        raise BadSession("a batch without events")
    data = bytes(msgspec.json.format(posted.events, indent=-1))  # on one line
    named = {"window_id": posted.window_id, "number": posted.number}
    return Batch(
        session_id=posted.session_id,
        user_id=posted.user_id,
        window_id=posted.window_id,
        number=posted.number,
        at=events[0].timestamp,
        line=b'%s,"data":%s}\n' % (msgspec.json.encode(named)[:-1], data),
        digest=digest_of(data),
    )


def head_line(batch: Batch) -> bytes:
    """The first line of a session's file, which says whose session it is as an event that the importer reads."""
    whose = {"session_id": batch.session_id, "user_id": batch.user_id}
    event = {"type": 5, "timestamp": batch.at, "data": {"tag": "shop_r1.session", "payload": whose}}
    return msgspec.json.encode({"window_id": batch.window_id, "data": [event]}) + b"\n"


def digest_of(data: bytes) -> bytes:
    """Of a batch's events as they are written."""
    return blake2b(data, digest_size=8).digest()
