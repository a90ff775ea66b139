"""What guided decoding is told: the JSON schemas of a reply, as `response_format` of a request.

They hold the shape alone and no names of the page's elements: a model that is held to the names that exist plays
another game, which is what `choice` is for.
"""

from typing import Any

__all__ = ["choice_format", "rationale_format", "reply_format"]

_TEXT = {"type": "string"}


def reply_format() -> dict[str, Any]:
    """A rationale and an action, as shop_env.replies reads them."""
    actions = [
        _object(type=_one_of("click"), name=_TEXT),
        _object(type=_one_of("type_and_submit"), name=_TEXT, text=_TEXT),
        _object(type=_one_of("terminate")),
    ]
    return _format("reply", _object(rationale=_TEXT, action={"anyOf": actions}))


def choice_format(choices: int) -> dict[str, Any]:
    """A rationale and a number from 1 on."""
    number = {"type": "integer", "enum": list(range(1, choices + 1))}
    return _format("choice", _object(rationale=_TEXT, choice=number))


def rationale_format() -> dict[str, Any]:
    """A rationale alone."""
    return _format("rationale", _object(rationale=_TEXT))


def _format(name: str, schema: dict[str, Any]) -> dict[str, Any]:
    return {"type": "json_schema", "json_schema": {"name": name, "strict": True, "schema": schema}}


def _object(**properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


def _one_of(*values: str) -> dict[str, Any]:
    return {"type": "string", "enum": list(values)}
