"""JSON schemas for guided decoding, as `response_format` of a request.

They hold the shape alone and no names of the page's elements, because a model that can only write existing names has an
easier task.
"""

from collections.abc import Iterable
from typing import Any, get_args

import msgspec

from replay_sessions.schema import INPUT, Action, TypeAndSubmit, Typing

_TEXT = {"type": "string"}


def reply_format(typing: Typing | None) -> dict[str, Any]:
    """Returns the format of a reply with a rationale and an action, as shop_env.replies parses it.

    Args:
        typing: The words for typing that the format allows; None allows `type_and_submit` alone.
    """
    words = {"both": ["type_and_submit", INPUT], INPUT: [INPUT]}.get(str(typing), ["type_and_submit"])
    actions = [
        _object(
            type={"type": "string", "enum": words if action is TypeAndSubmit else [action.__struct_config__.tag]},
            **{field.name: _TEXT for field in msgspec.structs.fields(action) if field.required},  # others are the log's
        )
        for action in get_args(Action)
    ]
    return _format("reply", rationale=_TEXT, action={"anyOf": actions})


def texts_format(names: Iterable[str]) -> dict[str, Any]:
    """Returns the format of an object with a text for each of the names."""
    return _format("rationale", **dict.fromkeys(names, _TEXT))


def _format(name: str, **properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "json_schema", "json_schema": {"name": name, "strict": True, "schema": _object(**properties)}}


def _object(**properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}
