"""JSON schemas for guided decoding, as `response_format` of a request.

They hold the shape alone and no names of the page's elements: a model that can only write existing names has another
task.
"""

from typing import Any, get_args

import msgspec

from replay_sessions.schema import Action

_TEXT = {"type": "string"}


def reply_format() -> dict[str, Any]:
    """Returns the format of a rationale and an action, as shop_env.replies parses them."""
    actions = [
        _object(
            type={"type": "string", "enum": [action.__struct_config__.tag]},
            **{field.name: _TEXT for field in msgspec.structs.fields(action) if field.required},  # others are the log's
        )
        for action in get_args(Action)
    ]
    return _format("reply", rationale=_TEXT, action={"anyOf": actions})


def rationale_format() -> dict[str, Any]:
    """Returns the format of a rationale alone."""
    return _format("rationale", rationale=_TEXT)


def _format(name: str, **properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "json_schema", "json_schema": {"name": name, "strict": True, "schema": _object(**properties)}}


def _object(**properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}
