"""OPeRA's action rows -> steps.

    click                 Click; semantic_id is the name, verbatim, and click_type is kept
    input                 TypeAndSubmit with submitted=False: the log knows that it was typed, not that it was sent
    terminate             Terminate
    scroll, navigation, tab_activate (also written tabActivate)    no action here: left out, counted, Step.gap says so

`simplified_html` is the page before the action; `simplified_html_new_page` is not needed, as the next action has its
own. A null semantic_id becomes an empty name and a null page an empty page: the step is still scored by its type, and
`check` warns of it.
"""

import re
from collections.abc import Iterable

from replay_sessions.importers.importer import LeftOut
from replay_sessions.importers.sources.timestamps import in_time_order
from replay_sessions.schema import Action, Click, Step, Terminate, TypeAndSubmit

__all__ = ["ACTION_COLUMNS", "ActionRow", "steps_of"]

ActionRow = dict[str, str | None]

ACTION_COLUMNS = [
    "session_id", "timestamp", "action_type", "click_type", "semantic_id", "url", "simplified_html", "rationale",
    "input_text",
]  # fmt: skip
_CAPITAL = re.compile(r"(?<=[a-z])(?=[A-Z])")


def steps_of(rows: Iterable[ActionRow]) -> tuple[list[Step], list[LeftOut]]:
    """A session's steps in the order of their times, and the events that are no action of ours."""
    steps: list[Step] = []
    left_out: list[LeftOut] = []
    gap = 0
    for row in in_time_order(list(rows), lambda row: row["timestamp"]):
        action = _action(row)
        if action is None:
            left_out.append(LeftOut(action_type=_event(row["action_type"])))
            gap += 1
            continue
        steps.append(
            Step(
                page=row["simplified_html"] or "",
                action=action,
                rationale=(row["rationale"] or "").strip() or None,
                url=row["url"] or None,
                timestamp=row["timestamp"] or None,
                gap=gap,
            )
        )
        gap = 0
    return steps, left_out


def _action(row: ActionRow) -> Action | None:
    name = row["semantic_id"] or ""
    match row["action_type"]:
        case "click":
            return Click(name=name, click_type=row["click_type"] or None)
        case "input":
            return TypeAndSubmit(name=name, text=row["input_text"] or "", submitted=False)
        case "terminate":
            return Terminate()
    return None


def _event(action_type: str | None) -> str:
    """
    >>> _event("tabActivate"), _event("scroll"), _event(None)
    ('tab_activate', 'scroll', 'without a type')
    """
    return _CAPITAL.sub("_", action_type).lower() if action_type else "without a type"
