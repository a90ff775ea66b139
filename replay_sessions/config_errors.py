"""What msgspec refuses in a user's configuration, in words that name the key and the one that was meant.

    "Object contains unknown field `step` - at `$.grpo`"  ─►  "unknown key 'grpo.step'. Did you mean 'grpo.steps'?"

For the files that people write by hand: presets, field mappings, recipes.
"""

import re
from collections.abc import Iterator
from typing import Any

from msgspec.inspect import CollectionType, DictType, StructType, Type, UnionType, type_info

from replay_sessions.errors import did_you_mean

__all__ = ["what_is_wrong"]

_UNKNOWN_KEY = re.compile(r"Object contains unknown field `(.*?)`(?: - at `\$\.?(.*)`)?", re.DOTALL)
_PART_OF_PLACE = re.compile(r"[^.\[\]]+|\[[^\]]*\]")  # of `rule[...].select`: a key, or some item of a list or table


def what_is_wrong(error: Exception, kind: Any) -> str:
    """Why `kind` could not be made of what was written.

    Args:
        error: What reading it raised; anything but a key that msgspec does not know is told as it is.
        kind: The Struct that was asked for.
    """
    found = _UNKNOWN_KEY.fullmatch(str(error))
    if not found:
        return str(error)
    key, place = found[1], found[2] or ""
    types = [type_info(kind)]
    for part in _PART_OF_PLACE.findall(place):
        types = [inner for outer in _alternatives(types) for inner in _inside(outer, part)]
    known = [field.encode_name for one in _alternatives(types) if isinstance(one, StructType) for field in one.fields]
    prefix = f"{place}." if place else ""
    return f"unknown key '{prefix}{key}'. {did_you_mean(key, known, prefix)}"


def _alternatives(types: list[Type]) -> Iterator[Type]:
    for one in types:
        yield from one.types if isinstance(one, UnionType) else (one,)


def _inside(outer: Type, part: str) -> Iterator[Type]:
    if isinstance(outer, StructType):
        yield from (field.type for field in outer.fields if field.encode_name == part)
    elif isinstance(outer, CollectionType):
        yield outer.item_type
    elif isinstance(outer, DictType):
        yield outer.value_type
