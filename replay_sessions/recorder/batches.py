"""Parses a page's request into a batch: some events of one tab of one session, and their position in its order.

    {"session_id": "5d…", "user_id": "a1…", "window_id": "9c…", "number": 3, "events": [{"type": 3, …}, …]}

`number` counts the batches of a tab within a session from 0, without holes. It identifies a batch that is posted again
and reveals a batch that never came (importers/rrweb/packings.py). The events are rrweb's; only their types and times
are checked. Ids may have any form: an id that is no valid file name, or not a line of text, is hashed.

Only the collector writes whose a file is, in lines without a number. An event that says it is refused, because it could
name other people's ids, which `erase` would then erase.
"""

import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from hashlib import blake2b
from typing import Annotated

import msgspec
from msgspec import Meta, Raw

from replay_sessions.foundation.errors import BadSession
from replay_sessions.importers.rrweb.events import replace_lone_surrogates
from replay_sessions.importers.rrweb.timeline import SESSION

_FILE_NAME = re.compile(r"[0-9a-z][0-9a-z_-]{0,63}")  # also valid if a file system ignores case
_LABEL = re.compile(r"[^\x00-\x1f\x7f]{1,128}")
_ESCAPED = re.compile(rb"\\u00[2-7]")  # an escaped character of ASCII, as no browser writes it
_LATEST_MS = 8.64e15  # the last moment that a browser's Date can represent


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
    """A valid batch.

    Attributes:
        file_name: Name of the session's file, without its ending: only small letters, digits, `-` and `_`.
        key: The window of the batch and its number in the window, which identify the batch in its session.
        ids: The ids of session and user.
        head: The line to write before a batch with new ids. It has them as an event that the importer reads.
        line: The line to write for the batch.
        digest: Digest of the events, which distinguishes a repeated batch from another batch of the same number.
    """

    file_name: str
    key: tuple[str, int]
    ids: tuple[str, str]
    head: bytes
    line: bytes
    digest: bytes


def read_batch(body: bytes) -> Batch:
    """Parses the batch in a request.

    Raises:
        BadSession: The request holds no valid batch; the message says why.
    """
    try:
        body.decode()  # rejects invalid UTF-8 in the events, which are not decoded below
        body = replace_lone_surrogates(body)
        posted = msgspec.json.decode(body, type=_Posted)
        events = msgspec.json.decode(posted.events, type=list[_Event])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BadSession(f"that is no batch of events: {error}") from error
    if not (posted.session_id and posted.user_id and posted.window_id and events):
        raise BadSession("a batch without events, or with an empty id")
    written = bytes(posted.events)
    if _ESCAPED.search(written):
        written = msgspec.json.encode(msgspec.json.decode(written))
    if msgspec.json.encode(SESSION) in written:
        raise BadSession(
            f"an event {SESSION!r}: the ids of a batch stand beside its events, and a goal is shop_r1.goal"
        )
    data = bytes(msgspec.json.format(posted.events, indent=-1))  # on one line
    key = _fitting(posted.window_id, _LABEL), posted.number
    ids = {"session_id": _fitting(posted.session_id, _LABEL), "user_id": _fitting(posted.user_id, _LABEL)}
    event = {"type": 5, "timestamp": events[0].timestamp, "data": {"tag": SESSION, "payload": ids}}
    batch_id = {"window_id": key[0], "number": posted.number}
    return Batch(
        file_name=get_file_name(posted.session_id),
        key=key,
        ids=(ids["session_id"], ids["user_id"]),
        head=msgspec.json.encode({"window_id": key[0], "data": [event]}) + b"\n",
        line=b'%s,"data":%s}\n' % (msgspec.json.encode(batch_id)[:-1], data),
        digest=compute_digest(data),
    )


def get_file_name(session_id: str) -> str:
    """Returns the name of a session's file without its ending.

    >>> get_file_name("s-17"), get_file_name("ORD-7F3A")
    ('s-17', '8c68064c2d78c95ee2393dca02e445e8')
    """
    return _fitting(session_id, _FILE_NAME)


def _fitting(value: str, pattern: re.Pattern[str]) -> str:
    return value if pattern.fullmatch(value) else blake2b(value.encode(), digest_size=16).hexdigest()


def read_ids(lines: Iterable[bytes]) -> Iterator[tuple[str, str]]:
    """Yields the ids of session and user in a session's file, "" for a missing one; a user who logs in has two ids.

    A page may have posted a user's id to an earlier collector, in a line with a number; a session's id does not count
    there.
    """
    for line in lines:
        if SESSION.encode() in line:
            with suppress(ValueError, LookupError, TypeError, AttributeError):
                document = msgspec.json.decode(line)
                for event in document["data"]:
                    if event["data"].get("tag") == SESSION:
                        ids = event["data"]["payload"]
                        session_id = "" if "number" in document else ids.get("session_id", "")
                        yield str(session_id), str(ids.get("user_id", ""))


def compute_digest(data: bytes) -> bytes:
    """Returns the digest of a batch's events as they are written."""
    return blake2b(data, digest_size=8).digest()
