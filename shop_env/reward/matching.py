"""Compares a reply's action with the logged one.

A field that was not logged cannot be scored. Logs sometimes lack a name or text (OPeRA's null ids), which is stored as
"". Such a field earns nothing for any prediction, neither for its presence nor for its similarity. An action with such
a field has no exact match, and a click that cannot be compared does not count as wrong.
"""

from collections.abc import Mapping

from replay_sessions.schema import Action, Click, reply_action


def unlogged_fields(logged: Action | Mapping[str, str]) -> tuple[str, ...]:
    """Returns the names of the fields that a logged action lacks.

    >>> unlogged_fields(Click(name="")), unlogged_fields(Click(name="cart"))
    (('name',), ())
    """
    fields = logged if isinstance(logged, Mapping) else reply_action(logged)
    return tuple(field for field, text in fields.items() if not text)


def exact_match(predicted: Action, logged: Action) -> bool:
    """Returns whether every field of a reply's action equals the logged one; False if the log lacks a field.

    Replies contain neither `click_type` nor `submitted`, so these are not compared.

    >>> exact_match(Click(name="cart"), Click(name="cart", click_type="nav_bar"))
    True
    """
    return reply_action(predicted) == reply_action(logged) and not unlogged_fields(logged)


def is_wrong_click(predicted: Action, logged: Action) -> bool:
    """Returns whether `predicted` is a click and the log shows that it is not the logged one."""
    if not isinstance(predicted, Click):
        return False
    return not isinstance(logged, Click) or predicted.name != logged.name != ""
