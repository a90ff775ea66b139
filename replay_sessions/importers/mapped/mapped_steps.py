"""A step in another log, by the fields of its mapping -> our records."""

from typing import Any

from replay_sessions.errors import BadSession
from replay_sessions.importers.mapped.mapping_fields import EventType, StepFields
from replay_sessions.importers.mapped.record_paths import optional_at, optional_text_at
from replay_sessions.importers.raw.targets import TARGET_COLUMNS, Target
from replay_sessions.schema import Action, Click, Step, Terminate, TypeAndSubmit

__all__ = ["is_submitted", "step_of", "target_of"]


def step_of(raw: dict[str, Any], fields: StepFields, page: str, kind: EventType, gap: int) -> Step:
    """A step that a log tells, on its page.

    Raises:
        BadSession: A field is of the wrong kind.
    """
    return Step(
        page=page,
        action=_action(raw, fields, kind),
        rationale=optional_text_at(raw, fields.rationale) or None,
        url=optional_text_at(raw, fields.url),
        timestamp=optional_text_at(raw, fields.timestamp),
        gap=gap,
    )


def target_of(raw: Any, fields: StepFields) -> Target:
    """What a step of a log was done to, as far as it tells."""
    return {column: optional_text_at(raw, getattr(fields, column)) for column in TARGET_COLUMNS}


def is_submitted(raw: Any, fields: StepFields) -> bool:
    """Whether what was typed was submitted, as far as the log tells.

    Raises:
        BadSession: It says something else than yes or no.
    """
    submitted = optional_at(raw, fields.submitted)
    if submitted not in (None, True, False):
        raise BadSession(f"{fields.submitted!r} is {submitted!r}, and true or false was expected")
    return submitted is not False


def _action(raw: dict[str, Any], fields: StepFields, kind: EventType) -> Action:
    if kind == "terminate":
        return Terminate()
    name = optional_text_at(raw, fields.name) or ""
    if kind == "click":
        return Click(name=name, click_type=optional_text_at(raw, fields.click_type))
    submitted = kind == "type_and_submit" and is_submitted(raw, fields)
    return TypeAndSubmit(name=name, text=optional_text_at(raw, fields.text) or "", submitted=submitted)
