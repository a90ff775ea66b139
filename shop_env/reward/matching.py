"""Compares a reply's action with the logged one.

A field that was not logged cannot be scored. Logs sometimes lack a name or text (OPeRA's null ids), which is stored as
"". Such a field earns nothing for any prediction, neither for its presence nor for its similarity. An action with such
a field has no exact match, and a click that cannot be compared does not count as wrong.
"""

import unicodedata
from collections.abc import Mapping
from typing import Literal

from replay_sessions.schema import Action, Click, reply_action
from shop_env.replies import MalformedReply, Reply
from shop_env.reward.similarity import ROUNDING, rouge_l

TextMatch = Literal["exact", "normalised", "similar"]
SIMILAR = 0.75  # the smallest ROUGE-L of texts that count as similar
Fields = Action | Mapping[str, str]  # an action, or its fields in a reply


def unlogged_fields(logged: Fields) -> tuple[str, ...]:
    """Returns the names of the fields that a logged action lacks.

    >>> unlogged_fields(Click(name="")), unlogged_fields(Click(name="cart"))
    (('name',), ())
    """
    return tuple(field for field, text in _fields(logged).items() if not text)


def exact_match(predicted: Fields, logged: Fields, text: TextMatch = "exact") -> bool:
    """Returns whether every field of a reply's action equals the logged one; False if the log lacks a field.

    Replies contain neither `click_type` nor `submitted`, so these are not compared.

    Args:
        text: Typed text is right if it is equal (`exact`), equal after normalisation of Unicode (NFKC), case and white
            space (`normalised`), or if its ROUGE-L is at least 0.75 (`similar`).

    >>> exact_match(Click(name="cart"), Click(name="cart", click_type="nav_bar"))
    True
    """
    fields, wanted = _fields(predicted), _fields(logged)
    if unlogged_fields(wanted):
        return False
    if text == "exact" or fields == wanted or "text" not in fields:
        return fields == wanted
    if {**fields, "text": ""} != {**wanted, "text": ""}:
        return False
    if text == "normalised":
        return _normalised(fields["text"]) == _normalised(wanted["text"])
    return rouge_l(fields["text"], wanted["text"]) >= SIMILAR - ROUNDING


def is_exact(reply: Reply | MalformedReply, logged: Action) -> bool:
    """Returns whether a reply could be read and has exactly the logged action."""
    return isinstance(reply, Reply) and exact_match(reply.action, logged)


def is_wrong_click(predicted: Action, logged: Action) -> bool:
    """Returns whether `predicted` is a click and the log shows that it is not the logged one."""
    if not isinstance(predicted, Click):
        return False
    return not isinstance(logged, Click) or predicted.name != logged.name != ""


def _fields(action: Fields) -> Mapping[str, str]:
    return action if isinstance(action, Mapping) else reply_action(action)


def _normalised(text: str) -> str:
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())
