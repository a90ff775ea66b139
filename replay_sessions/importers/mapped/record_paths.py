"""Finds values of a decoded record by dotted paths, which continue inside text that holds JSON, lists, lists of pairs.

    {"action": '{"type": "click"}'}                             action.type is "click"
    {"items": [{"id": "k7"}, {"id": "k9"}]}                     items.1.id is "k9"
    {"params": [{"key": "q", "value": {"int_value": null, "string_value": "red"}}]}     params.q is "red"
    {"terms": ["red", "kettle"]}                                terms.* is "red kettle"
    {"lines": [{"variant": {"id": "k7"}}]}                      lines.*.variant is [{"id": "k7"}]
    ["typed", "query"]                                          the first that is not missing
    "."                                                         the record itself
    "=[data-sku='{items.0.id}'] button"                         a text, with values in the place of paths

Missing values are null, empty texts and lists, and words of analytics for them, such as "(not set)". Keys that contain
a dot are found only at the top level of the record. Mappings name the fields of other logs by such paths.
"""

import re
from collections.abc import Iterator
from typing import Any

import msgspec

from replay_sessions.foundation.errors import BadSession

RecordPath = str | tuple[str, ...]
OptionalPath = RecordPath | None

_TEXT = "="
_ALL = "*"
_ITSELF = "."
_ABSENT = object()
_PLACEHOLDER = re.compile(r"\{([^{}]+)\}")
_PAIR = {"key", "value"}
_MOST_DIGITS = 9
_MISSING = ("", "(not set)", "(not provided)", "(none)", "null", "undefined", "nan", "\\n")
_TYPED = "_value"  # the suffix of keys that name the type of a value, such as `int_value`


def plain_paths(path: Any) -> Iterator[str]:
    """Yields the dotted paths in a field of a mapping.

    >>> list(plain_paths(("typed", "={items.0.id}-{shop}")))
    ['typed', 'items.0.id', 'shop']
    """
    if isinstance(path, tuple):
        for item in path:
            yield from plain_paths(item)
    elif isinstance(path, str):
        yield from _PLACEHOLDER.findall(path) if path.startswith(_TEXT) else [path]


def unknown_keys(value: Any, prefix: str, expected: set[str], inner: set[str]) -> Iterator[str]:
    """Yields the paths of keys that are neither mapped nor on the way to a mapped key.

    Args:
        value: A value of the record.
        prefix: The path of the value; "" for the record.
        expected: The paths that are mapped or ignored.
        inner: The proper prefixes of these paths.
    """
    if _holds_pairs(value):
        yield from unknown_keys({pair["key"]: pair["value"] for pair in value}, prefix, expected, inner)
    elif isinstance(value, list):
        for item in value:
            yield from unknown_keys(item, prefix, expected, inner)
    elif isinstance(value, dict):
        for key, below in value.items():
            path = f"{prefix}.{key}" if prefix else key
            if path in inner:
                yield from unknown_keys(decoded(below), path, expected, inner)
            elif path not in expected:
                yield path


def value_at(record: Any, path: RecordPath) -> Any:
    """Returns the value at a path.

    Raises:
        BadSession: The record has no value at the path.
    """
    if isinstance(path, str) and path.startswith(_TEXT):
        return _PLACEHOLDER.sub(lambda match: text_at(record, (match[1],)), path.removeprefix(_TEXT))
    value = _find(record, path)
    if value is _ABSENT:
        raise BadSession(f"field {' or '.join(map(repr, path if isinstance(path, tuple) else (path,)))} is missing")
    return value


def _find(record: Any, path: RecordPath) -> Any:
    """Returns the value at a path; `_ABSENT` if the record has none."""
    if isinstance(path, tuple):
        for item in path:
            if (value := _find(record, item)) is not _ABSENT and not is_missing(value):
                return value
        return _ABSENT
    if path == _ITSELF:
        return record
    if isinstance(record, dict) and (value := record.get(path, _ABSENT)) is not _ABSENT:
        return value
    if path.startswith(_TEXT):
        try:
            return value_at(record, path)
        except BadSession:
            return _ABSENT
    value = record
    keys = path.split(".")
    if len(keys) == 1 and isinstance(record, dict):
        return _ABSENT
    for number, key in enumerate(keys, start=1):
        value = decoded(value)
        if key == _ALL and isinstance(value, list) and number < len(keys):
            below = ".".join(keys[number:])
            return [item_value for item in value if not is_missing(item_value := optional_at(item, below))]
        value = _below(value, key)
        if value is _ABSENT:
            break
    return value


def _below(value: Any, key: str) -> Any:
    """Returns the value of a key, or the item at its position; `_ABSENT` if there is none."""
    if isinstance(value, dict):
        return value.get(key, _ABSENT)
    if isinstance(value, list):
        if key.isdecimal() and len(key) < _MOST_DIGITS and int(key) < len(value):
            return value[int(key)]
        if key == _ALL and all(isinstance(item, str) for item in value):
            return " ".join(value)
        pairs = pairs_as_object(value)
        return pairs.get(key, _ABSENT) if isinstance(pairs, dict) else _ABSENT
    return _ABSENT


def _holds_pairs(value: Any) -> bool:
    """Returns whether a value is a list of `{key, value}` pairs, which stands for an object."""
    return (
        isinstance(value, list)
        and bool(value)
        and all(isinstance(item, dict) and item.keys() == _PAIR and isinstance(item["key"], str) for item in value)
    )


def pairs_as_object(value: Any) -> Any:
    """Returns a list of `{key, value}` pairs, or JSON text of one, as an object; any other value unchanged."""
    pairs = decoded(value)
    if not _holds_pairs(pairs):
        return value
    return {pair["key"]: _untyped(pair["value"]) for pair in reversed(pairs)}  # the first of a key counts


def _untyped(value: Any) -> Any:
    """Returns the value of an object with a key for each type, all null but one; returns any other value unchanged."""
    if isinstance(value, dict) and value and all(name.endswith(_TYPED) for name in value):
        return next((item for item in value.values() if item is not None), None)
    return value


def decoded(value: Any) -> Any:
    """Decodes text that holds a JSON object or array; returns any other value unchanged."""
    if isinstance(value, str) and value.lstrip()[:1] in ("{", "["):
        try:
            return msgspec.json.decode(value)
        except (ValueError, RecursionError):
            return value
    return value


def optional_at(record: Any, path: OptionalPath) -> Any:
    """Returns the value at a path; None if the record has none or the path is None."""
    value = _ABSENT if path is None else _find(record, path)
    return None if value is _ABSENT else value


def text_at(record: Any, path: RecordPath) -> str:
    """Returns the text at a path, or a number as text.

    Raises:
        BadSession: The record has no value at the path, or the value is neither text nor a number.
    """
    value = value_at(record, path)
    text = as_text(value)
    if text is None:
        kind = "null" if value is None else type(value).__name__
        raise BadSession(f"field {path!r} is {kind}, and text was expected")
    return text


def optional_text_at(record: Any, path: OptionalPath) -> str | None:
    """Returns the text at a path, or a number as text; None if the value is missing or null.

    Raises:
        BadSession: The value is neither text nor a number.
    """
    return None if path is None or optional_at(record, path) is None else text_at(record, path)


def as_text(value: Any) -> str | None:
    """Returns a text, or a number as text; None for any other value."""
    if isinstance(value, float) and value.is_integer():
        return f"{value:.0f}"
    return str(value) if isinstance(value, str | int | float) and not isinstance(value, bool) else None


def is_missing(value: Any) -> bool:
    return value is None or value == [] or (isinstance(value, str) and value.strip().lower() in _MISSING)
