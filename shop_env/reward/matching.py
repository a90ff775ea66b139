"""Whether a reply's action equals the logged one.

What was not logged cannot be scored. Logs lack names and texts now and then (OPeRA's null ids); they are stored as "",
and such a field earns nothing, whatever is predicted for it: neither for being there nor for its similarity. An action
with such a field is never matched exactly, and a click that cannot be compared is not a wrong one.
"""

from collections.abc import Mapping

from replay_sessions.schema import Action, Click, reply_action


def unlogged_fields(logged: Action | Mapping[str, str]) -> tuple[str, ...]:
    """The fields of a logged action that its log does not know.

    >>> unlogged_fields(Click(name="")), unlogged_fields(Click(name="cart"))
    (('name',), ())
    """
    fields = logged if isinstance(logged, Mapping) else reply_action(logged)
    return tuple(field for field, text in fields.items() if not text)


def exact_match(predicted: Action, logged: Action) -> bool:
    """Returns whether every predicted field equals the logged one; `click_type` and `submitted` are not predicted.

    An action with a field that was not logged has no exact match.

    >>> exact_match(Click(name="cart"), Click(name="cart", click_type="nav_bar"))
    True
    """
    return reply_action(predicted) == reply_action(logged) and not unlogged_fields(logged)


def is_wrong_click(predicted: Action, logged: Action) -> bool:
    """Returns whether `predicted` is a click, and not the logged one as far as the log shows."""
    if not isinstance(predicted, Click):
        return False
    return not isinstance(logged, Click) or predicted.name != logged.name != ""
