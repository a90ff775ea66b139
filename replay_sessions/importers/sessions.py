"""Builds a session from its rows; all importers use it, whatever their source.

A row says what was done on which page (`COLUMNS` in raw/action_table.py lists the keys; a missing key counts as None).
An importer provides the rows of a session in time order, and `Pages`, which look up the page of a row. A row with a
`type` that is no action is counted under that word. If the log's word could be mistaken for an action, `type` is None
and the word is the row's `event`.

    action             becomes a step, with the element's name on the simplified page
    missing element    (or page) the action is left out, counted, and rejected with the reason
    other events       are left out and counted

Blanks at the ends of a typed text are removed and counted, because no metric should depend on them. The `gap` of the
next step counts what was left out. A purchase ends the session, and later rows are left out.

`private_sessions` removes private data, and on pages marks it for the `Cleaner`.
"""

from collections.abc import Iterator
from typing import Any, get_args

import msgspec
from msgspec.structs import replace

from replay_sessions.foundation.errors import BadSession
from replay_sessions.importers.importer import TOO_LONG, Read, is_too_long
from replay_sessions.importers.logged_pages import PageOfRow, Pages, Unresolved
from replay_sessions.importers.private_sessions import mark_by_form
from replay_sessions.importers.sources.row_tables import Row
from replay_sessions.private_data import remove_from_text, without_credentials
from replay_sessions.schema import (
    ACTION_TYPES,
    Action,
    Click,
    Persona,
    Scroll,
    Session,
    Split,
    Step,
    Terminate,
    TypeAndSubmit,
)

PURCHASE = "purchase"  # OPeRA uses the same word
ACTION_ROWS = (*ACTION_TYPES, "input", PURCHASE)  # the types of rows that become actions
VIEW = "view"  # the page is shown from then on, without an action


def number_actions(rows: list[Row]) -> list[Row]:
    """Numbers the actions of a session, and only these, because messages count actions."""
    for number, row in enumerate((row for row in rows if row["type"] in ACTION_ROWS), start=1):
        row["row"] = number
    return rows


def numbered_session(rows: list[Row], number: int) -> list[Row]:
    """Returns the rows with the id of the session's part `number`: "v1", then "v1 (2)".

    Args:
        rows: The rows of one part of a session of the log.
        number: The number of the part, from 1.
    """
    if number == 1:
        return rows
    first_id = rows[0]["session_id"]
    ids = {"session_id": f"{first_id} ({number})", "user_id": rows[0].get("user_id") or first_id}
    return [row | ids for row in rows]


def rows_of_session(session: Session) -> list[Row]:
    """Returns the rows that describe a session; names of elements may turn out to be their texts."""
    common = {name: getattr(session, name) for name in ("session_id", "user_id", "goal")}
    rows = []
    for step in session.steps:
        fields = {name: getattr(step, name) for name in Step.__struct_fields__}
        action = msgspec.to_builtins(fields.pop("action"))
        if not action.get("submitted", True):
            action["type"] = "input"
        rows.append({**common, "split": session.official_split, **fields, **action, "element_text": action.get("name")})
    return number_actions(rows)


def build_session(
    rows: list[Row],
    pages: Pages,
    *,
    source: str,
    row_prefix: str = "",
    session_location: str | None = None,
    persona: Persona | None = None,
) -> Read:
    """Builds a session from its rows in time order.

    Args:
        row_prefix: Text before the number of a row in messages.
        session_location: Name of the session in messages. If None, its id.
        persona: The shopper's persona, if the rows have none as text.
    """
    location = rows[0]["session_id"] if session_location is None else session_location
    read = Read(is_marked=pages.removes_private_data)
    steps: list[Step] = []
    characters = 0
    for step in _read_steps(rows, pages, row_prefix, read):
        steps.append(step)
        characters += len(step.page)
        if is_too_long(characters):
            read.reject(location, TOO_LONG)
            return read
    if not steps:
        only = f"none of its steps is an action (only {', '.join(sorted(set(read.left_out)))})"
        is_lost = read.rejected or not read.left_out
        read.reject(location, "none of its actions could be taken in" if is_lost else only)
        return read
    try:
        read.session = _session(rows, steps, source, persona)
    except ValueError as error:  # includes BadSession
        read.reject(location, str(error))
        return read
    if read.is_marked:
        read.session = mark_by_form(read.session, has_simplified_pages=pages.are_simplified)
    return read


def _session(rows: list[Row], steps: list[Step], source: str, persona: Persona | None) -> Session:
    session_id = rows[0]["session_id"]
    split, text = _first(rows, "split"), _first(rows, "persona")
    if split is not None and split not in get_args(Split):
        raise BadSession(f"official split is {split!r}, and train, validation or test was expected")
    return Session(
        session_id=session_id,
        user_id=_first(rows, "user_id") or session_id,
        other_ids=tuple(_first(rows, "other_ids") or ()),
        persona=Persona(text=text) if text else persona,
        goal=_first(rows, "goal"),
        official_split=split,
        steps=tuple(steps),
        source=source,
    )


def _read_steps(rows: list[Row], pages: Pages, row_prefix: str, read: Read) -> Iterator[Step]:
    """Yields the steps of rows, and adds to `read` the left-out events and rejected records among them."""
    gap = 0
    is_over = False
    for row in rows:
        kind = row["type"]
        event = kind or row.get("event") or "without a type"
        gap += row.get("gap") or 0
        if kind == VIEW:
            continue
        if is_over or kind not in ACTION_ROWS:
            read.left_out.append(f"{event} after the purchase" if is_over else event)
            gap += 1
            continue
        try:
            page = pages.page(row)
            action = _action(row, page)
        except Unresolved as error:
            read.left_out.append(f"{event} {error.outcome}")
            reason = remove_from_text(str(error)) if pages.removes_private_data else str(error)
            read.reject(f"{row_prefix}{row['row']}", reason)
            gap += 1
            continue
        if isinstance(action, Click) and (kind == PURCHASE or pages.is_purchase(row, page, action.name)):
            is_over = True
            action = replace(action, click_type=PURCHASE)
        if isinstance(action, TypeAndSubmit) and action.text != action.text.strip():
            read.trimmed_texts += 1
            action = replace(action, text=action.text.strip())
        yield Step(
            page=page.page.marked or page.page.html,
            action=action,
            rationale=row.get("rationale") or None,
            rationale_source=row.get("rationale_source"),
            url=row.get("url") and without_credentials(row["url"]),
            timestamp=row.get("timestamp"),
            gap=gap,
            merged=row.get("merged") or 0,
            is_inferred=row.get("is_inferred") or False,
        )
        gap = 0


def _action(row: Row, page: PageOfRow) -> Action:
    match row["type"]:
        case "terminate":
            return Terminate()
        case "click" | "purchase":
            return Click(name=page.find(row, typed=False), click_type=row.get("click_type"))
        case "type_and_submit" | "input" as kind:
            name = page.find(row, typed=True)
            return TypeAndSubmit(name=name, text=row.get("text") or "", submitted=kind != "input")
        case "scroll":
            return Scroll()
        case kind:
            raise AssertionError(f"a row of type {kind!r} becomes no action")


def _first(rows: list[Row], column: str) -> Any:
    return next((value for row in rows if (value := row.get(column))), None)
