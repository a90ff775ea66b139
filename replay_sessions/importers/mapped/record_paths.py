"""Values of a decoded record by dotted path; a path goes on inside text that holds JSON.

    {"action": '{"type": "click"}'}      action.type is "click"

Field mappings (field_mapping.py) name the fields of other logs by such paths.
"""

from collections.abc import Iterator
from typing import Any

import msgspec

from replay_sessions.errors import BadSession

__all__ = ["decoded", "optional_at", "optional_text_at", "text_at", "unknown_keys", "value_at"]


def unknown_keys(value: Any, prefix: str, known: set[str], inner: set[str]) -> Iterator[str]:
    """Paths of keys that are neither mapped nor on the way to a mapped one."""
    if isinstance(value, list):
        for item in value:
            yield from unknown_keys(item, prefix, known, inner)
    elif isinstance(value, dict):
        for key, below in value.items():
            path = f"{prefix}.{key}" if prefix else key
            if path in inner:
                yield from unknown_keys(decoded(below), path, known, inner)
            elif path not in known:
                yield path


def value_at(record: Any, path: str) -> Any:
    """The value at a dotted path.

    Raises:
        BadSession: There is none.
    """
    value = record
    for key in path.split("."):
        value = decoded(value)
        if not isinstance(value, dict) or key not in value:
            raise BadSession(f"field {path!r} is missing")
        value = value[key]
    return value


def decoded(value: Any) -> Any:
    """What text that holds JSON says; anything else as it is."""
    if isinstance(value, str) and value.lstrip()[:1] in ("{", "["):
        try:
            return msgspec.json.decode(value)
        except (ValueError, RecursionError):
            return value
    return value


def optional_at(record: Any, path: str | None) -> Any:
    """The value at a path; None where there is none."""
    if path is None:
        return None
    try:
        return value_at(record, path)
    except BadSession:
        return None


def text_at(record: Any, path: str) -> str:
    """The text (or number, as text) at a path.

    Raises:
        BadSession: There is none, or it is null or something else.
    """
    value = _as_text(value_at(record, path), path)
    if value is None:
        raise BadSession(f"field {path!r} is null")
    return value


def optional_text_at(record: Any, path: str | None) -> str | None:
    """As `text_at`; None where there is none or it is null."""
    return _as_text(optional_at(record, path), path or "")


def _as_text(value: Any, path: str) -> str | None:
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, int | float) and not isinstance(value, bool):
        return str(value)
    raise BadSession(f"field {path!r} is {type(value).__name__}, and text was expected")
