"""JSON schemas for guided decoding, as `response_format` of a request.

They hold the shape alone and no names of the page's elements, because a model that can only write existing names has an
easier task.
"""

from collections.abc import Iterable
from typing import Any, get_args

import msgspec

from replay_sessions.schema import INPUT, Action, Scroll, TypeAndSubmit
from shop_env.prompts import PromptConfig

_TEXT = {"type": "string"}


def reply_format(prompt: PromptConfig) -> dict[str, Any]:
    """Returns the format of a reply with a rationale and an action, as shop_env.replies parses it.

    Args:
        prompt: The prompt's config, whose words for typing and scrolling the format allows.
    """
    words = {"both": ["type_and_submit", INPUT], INPUT: [INPUT]}.get(str(prompt.typing), ["type_and_submit"])
    actions = [
        _object(
            type={"type": "string", "enum": words if action is TypeAndSubmit else [action.__struct_config__.tag]},
            **{field.name: _TEXT for field in msgspec.structs.fields(action) if field.required},  # others are the log's
        )
        for action in get_args(Action)
        if action is not Scroll or prompt.scrolls
    ]
    return _format("reply", rationale=_TEXT, action={"anyOf": actions})


def texts_format(names: Iterable[str]) -> dict[str, Any]:
    """Returns the format of an object with a text for each of the names."""
    return _format("rationale", **dict.fromkeys(names, _TEXT))


def _format(name: str, **properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "json_schema", "json_schema": {"name": name, "strict": True, "schema": _object(**properties)}}


def _object(**properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}
