"""What the viewer reads, packed into text that no HTML can be broken by: JSON ─► deflate ─► base64.

A block is inflated in the browser when it is first needed (templates/blocks.js), so a page of a thousand sessions opens
as fast as one of ten. base64 has no `<`: whatever a page, a reply or a persona holds, it ends no script element.
"""

import base64
import zlib
from typing import Any, NamedTuple

import msgspec


class Block(NamedTuple):
    """A packed value under the id of its element."""

    name: str
    text: str


def pack(name: str, value: Any) -> Block:
    """The value as JSON, deflated, in base64."""
    deflated = zlib.compress(msgspec.json.encode(value), level=9)
    return Block(name, base64.b64encode(deflated).decode("ascii"))
