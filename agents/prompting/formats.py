"""What guided decoding constrains, and how a choice by number becomes a reply.

    JSON schemas of a reply, as `response_format` of a request
    observation ─► candidate_actions ─► numbered ─► {"rationale": …, "choice": 3} ─► reply_of_choice ─► reply

The schemas hold the shape alone and no names of the page's elements: a model that can only write existing names has
another task, which is what `choice` is for. What the shopper typed freely is not always among the candidates
(shop_env/candidates.py), and then no choice is right.
"""

from collections.abc import Sequence
from json import JSONDecoder
from typing import Any

from replay_sessions.schema import Action, reply_action
from shop_env.prompts import INSTRUCTIONS
from shop_env.replies import Unreadable, action_json, format_reply, object_inside

_REPLY_HEADING = "## Reply\n"
CHOICE_INSTRUCTIONS = (
    INSTRUCTIONS.partition(_REPLY_HEADING)[0]
    + _REPLY_HEADING
    + """\
Behind the last page stands a numbered list of what can be done there. Reply with one JSON object and nothing around it:
{"rationale": "<why>", "choice": <number in the list>}
The rationale is one short sentence in the first person, the thought the person has at that moment."""
)
_TEXT = {"type": "string"}


def reply_format() -> dict[str, Any]:
    """A rationale and an action, as shop_env.replies parses them."""
    fields: dict[str, dict[str, Any]] = {
        "click": {"name": _TEXT},
        "type_and_submit": {"name": _TEXT, "text": _TEXT},
        "terminate": {},
    }
    actions = [_object(type={"type": "string", "enum": [kind]}, **own) for kind, own in fields.items()]
    return _format("reply", rationale=_TEXT, action={"anyOf": actions})


def choice_format(choices: int) -> dict[str, Any]:
    """A rationale and a number from 1 on."""
    return _format("choice", rationale=_TEXT, choice={"type": "integer", "enum": list(range(1, choices + 1))})


def rationale_format() -> dict[str, Any]:
    """A rationale alone."""
    return _format("rationale", rationale=_TEXT)


def _format(name: str, **properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "json_schema", "json_schema": {"name": name, "strict": True, "schema": _object(**properties)}}


def _object(**properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


def numbered(candidates: Sequence[Action]) -> str:
    """The list, from 1 on.

    >>> from replay_sessions.schema import Click
    >>> numbered([Click(name="buy")])
    '1. {"type": "click", "name": "buy"}'
    """
    lines = (f"{number}. {action_json(reply_action(action))}" for number, action in enumerate(candidates, start=1))
    return "\n".join(lines)


def reply_of_choice(text: str, candidates: Sequence[Action]) -> str:
    """The text with the chosen action in place of its number; text around it stays as the model wrote it.

    A text with no valid choice stays as it is: a malformed reply.

    >>> from replay_sessions.schema import Click
    >>> reply_of_choice('{"rationale": "Mine!", "choice": 1}', [Click(name="buy")])
    '{"rationale": "Mine!", "action": {"type": "click", "name": "buy"}}'
    """
    try:
        fields, start = object_inside(text)
    except Unreadable:
        return text
    rationale, number = fields.get("rationale"), fields.get("choice")
    if not isinstance(rationale, str) or type(number) is not int or not 1 <= number <= len(candidates):
        return text
    _, end = JSONDecoder().raw_decode(text, start)
    return text[:start] + format_reply(rationale, candidates[number - 1]) + text[end:]
