"""The option `choice`: a page's candidates as a numbered list, and the reply that a number stands for.

    observation ─► candidate_actions ─► numbered ─► {"rationale": …, "choice": 3} ─► reply_of_choice ─► reply

What the shopper typed freely is not always among the candidates (shop_env/candidates.py), and then no choice is right.
"""

from collections.abc import Sequence
from json import JSONDecoder

from replay_sessions.schema import Action, reply_action
from shop_env.prompts import INSTRUCTIONS
from shop_env.replies import action_json, format_reply
from shop_env.reply_json import Unreadable, object_inside

__all__ = ["CHOICE_INSTRUCTIONS", "numbered", "reply_of_choice"]

_REPLY_HEADING = "## Reply\n"
CHOICE_INSTRUCTIONS = (
    INSTRUCTIONS.partition(_REPLY_HEADING)[0]
    + _REPLY_HEADING
    + """\
Behind the last page stands a numbered list of what can be done there. Reply with one JSON object and nothing around it:
{"rationale": "<why>", "choice": <number in the list>}
The rationale is one short sentence in the first person, the thought the person has at that moment."""
)


def numbered(candidates: Sequence[Action]) -> str:
    """The list, from 1 on.

    >>> from replay_sessions.schema import Click
    >>> numbered([Click(name="buy")])
    '1. {"type": "click", "name": "buy"}'
    """
    lines = (f"{number}. {action_json(reply_action(action))}" for number, action in enumerate(candidates, start=1))
    return "\n".join(lines)


def reply_of_choice(text: str, candidates: Sequence[Action]) -> str:
    """The text with the chosen action in place of its number; what stands around it stays, as the model wrote it.

    A text that chooses nothing, or what is not in the list, stays as it is: a malformed reply.

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
