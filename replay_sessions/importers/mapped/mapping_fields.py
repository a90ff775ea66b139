"""What a field mapping may name, by paths (record_paths.py): the fields of a session, of a step, of a page."""

from collections.abc import Iterator
from typing import Literal

import msgspec

from replay_sessions.importers.mapped.record_paths import Path, plain_paths

__all__ = ["STEP_TYPES", "EventFields", "EventType", "PageFields", "SessionFields", "StepFields", "paths_of"]

EventType = Literal["click", "type_and_submit", "input", "terminate", "purchase", "view"]
STEP_TYPES = ("click", "type_and_submit", "input", "terminate")


class SessionFields(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    session_id: Path
    steps: str = "steps"
    user_id: Path | None = None
    goal: Path | None = None
    persona: Path | None = None
    official_split: Path | None = None


class EventFields(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    page: Path | None = None
    name: Path | None = None
    selector: Path | None = None
    element_id: Path | None = None
    element_text: Path | None = None
    link_url: Path | None = None
    text: Path | None = None
    submitted: Path | None = None
    click_type: Path | None = None
    rationale: Path | None = None
    url: Path | None = None
    timestamp: Path | None = None
    position: Path | None = None
    order: tuple[str, ...] | None = None


class StepFields(EventFields, frozen=True, kw_only=True, forbid_unknown_fields=True):
    type: Path


class PageFields(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    notation: Literal["html", "bracket_lines", "nested_angles"] = "html"
    offset: int = 0


def paths_of(fields: msgspec.Struct) -> Iterator[str]:
    """All dotted paths in the fields of a mapping."""
    for path in msgspec.structs.astuple(fields):
        yield from plain_paths(path)
