"""Maps the fields of a log to our records by a TOML file, so that logs of JSON lines need no code.

    pages = "raw"                         # default: simplified; in raw pages the element of an action is looked up
    recipe = "amazon"                     # how raw pages are simplified; default: the site's own recipe
    private_data = "remove"               # or keep; default: it is removed from raw pages only
    description = "Clicks and searches of our own site"
    source = "my_site"                    # Session.source
    recognised_by = ["visit", "visitor"]  # keys of a line by which this log is recognised without --mapping
    ignored = ["ip", "steps.cookie"]      # keys that are not imported; "*" ignores all that are not mapped

    [session]                             # dotted paths from a line
    session_id = "visit"
    user_id = "visitor"                   # if absent or null, the session's id stands for the user
    goal = "wanted"                       # also: persona (text), official_split
    steps = "steps"                       # the list of steps

    [step]                                # dotted paths from a step
    page = "html"
    type = "action.kind"
    name = "action.target"
    text = "action.typed"                 # also: submitted, click_type, rationale, url, timestamp; for raw pages
                                          # also selector (CSS), element_id, element_text and link_url
    position = "number"                   # the step's number in the log; Step.gap counts missing numbers

    [types]                               # for each of the log's words: click, type_and_submit, terminate, or input
    press = "click"                       # (a typed text that may not have been submitted)
    search = "type_and_submit"
    leave = "terminate"
    [page]
    notation = "html"                     # or bracket_lines, nested_angles, accessibility_tree (page_notations.py)
    offset = 0                            # -1: the log has each page with the action that led to it, so the page of a
                                          # step is in the step before (shopcart.py finds the offset)

Paths continue inside text that holds JSON, and more (record_paths.py). Before the first and beyond the last page, the
page is empty. A step with a type that is not in [types] is left out and counted, also in the `gap` of the next step. A
line with a key that is neither mapped nor ignored is rejected, so that nothing is dropped silently.
"""

from collections.abc import Iterator
from importlib.resources import files
from typing import Any, Literal

import msgspec

from replay_sessions.foundation.config_errors import load_toml, toml_names
from replay_sessions.foundation.errors import BadConfig, BadSession
from replay_sessions.foundation.records import Config
from replay_sessions.importers.logged_pages import TARGET_COLUMNS, PageOptions
from replay_sessions.importers.mapped.page_notations import NOTATIONS
from replay_sessions.importers.mapped.record_paths import (
    OptionalPath,
    RecordPath,
    decoded,
    optional_at,
    optional_text_at,
    plain_paths,
    text_at,
    unknown_keys,
    value_at,
)
from replay_sessions.importers.sessions import number_actions
from replay_sessions.importers.sources.row_tables import Row

StepType = Literal["click", "type_and_submit", "input", "terminate"]
_RAW_ONLY = ("element_id", "link_url", "selector", "element_text")
_ROW_COLUMNS = (*TARGET_COLUMNS, "rationale", "timestamp")
_TYPE_COLUMNS = {"click": "click_type", "type_and_submit": "text", "input": "text"}  # a further column, by type
_SESSION_COLUMNS = {"user_id": "user_id", "goal": "goal", "persona": "persona", "split": "official_split"}


class SessionFields(Config):
    session_id: RecordPath
    steps: str = "steps"
    user_id: OptionalPath = None
    goal: OptionalPath = None
    persona: OptionalPath = None
    official_split: OptionalPath = None


class StepFields(Config):
    page: RecordPath
    type: RecordPath
    name: OptionalPath = None
    selector: OptionalPath = None
    element_id: OptionalPath = None
    element_text: OptionalPath = None
    link_url: OptionalPath = None
    text: OptionalPath = None
    submitted: OptionalPath = None
    click_type: OptionalPath = None
    rationale: OptionalPath = None
    url: OptionalPath = None
    timestamp: OptionalPath = None
    position: OptionalPath = None


class PageFields(Config):
    notation: Literal["html", "bracket_lines", "nested_angles", "accessibility_tree"] = "html"
    offset: int = 0


class FieldMapping(PageOptions):
    """A mapping from the fields of a log to ours (see the module's docstring)."""

    description: str
    source: str
    recognised_by: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()
    session: SessionFields
    step: StepFields
    types: dict[str, StepType]
    page: PageFields = PageFields()

    def recognises(self, line: dict[str, Any]) -> bool:
        return bool(self.recognised_by) and all(key in line for key in self.recognised_by)

    def session_rows(self, line: Any) -> list[Row]:
        """Returns the rows of the session in a line, with its actions numbered.

        Raises:
            BadSession: A field is missing, unknown or of the wrong type.
        """
        if not isinstance(line, dict):
            raise BadSession("the line is no JSON object")
        self._check_keys(line)
        about = self._session_columns(line)
        records = decoded(value_at(line, self.session.steps))
        if not isinstance(records, list) or not records:
            raise BadSession(f"session {about['session_id']!r} has no steps")
        rows: list[Row] = []
        expected = 0
        for index, record in enumerate(records):
            gap = 0
            try:
                position = value_at(record, self.step.position) if self.step.position else None
                if isinstance(position, int):
                    gap = max(0, position - expected)
                    expected = position + 1
                word = text_at(record, self.step.type)
                row = {**about, "type": None, "event": word, "gap": gap}
                if kind := self.types.get(word):
                    row["page"] = "" if gap and self.page.offset < 0 else self._page(records, index + self.page.offset)
                    row |= self._step_columns(record, kind)
            except BadSession as error:
                raise BadSession(f"step {index + 1}: {error}") from error
            rows.append(row)
        return number_actions(rows)

    def _session_columns(self, record: Any) -> Row:
        columns = {
            name: optional_text_at(record, getattr(self.session, path)) for name, path in _SESSION_COLUMNS.items()
        }
        return {"session_id": text_at(record, self.session.session_id), **columns}

    def _step_columns(self, record: Any, kind: StepType) -> Row:
        fields = self.step
        row: Row = {name: optional_text_at(record, getattr(fields, name)) for name in _ROW_COLUMNS}
        if column := _TYPE_COLUMNS.get(kind):
            row[column] = optional_text_at(record, getattr(fields, column))
        submitted = optional_at(record, fields.submitted) if kind == "type_and_submit" else None
        if submitted not in (None, True, False):
            raise BadSession(f"{fields.submitted!r} is {submitted!r}, and true or false was expected")
        return {**row, "type": "input" if submitted is False else kind}

    def _page(self, records: list[Any], index: int) -> str:
        if not 0 <= index < len(records):
            return ""
        page = text_at(records[index], self.step.page)
        return page if self.pages == "raw" else NOTATIONS[self.page.notation](page)

    def _check_keys(self, line: dict[str, Any]) -> None:
        """Raises BadSession if a key is neither mapped nor ignored."""
        if "*" in self.ignored:
            return
        steps = (f"{self.session.steps}.{path}" for path in paths_of(self.step))
        expected = {*paths_of(self.session), *steps, *self.ignored}
        inner = {path[:end] for path in expected for end, character in enumerate(path) if character == "."}
        unknown = next(unknown_keys(line, "", expected, inner), None)
        if unknown is not None:
            raise BadSession(
                f'unknown field {unknown!r}: map it, or list it under `ignored` in the mapping ("*" ignores all)'
            )


def paths_of(fields: msgspec.Struct) -> Iterator[str]:
    """Yields all dotted paths in the fields of a mapping."""
    for path in msgspec.structs.astuple(fields):
        yield from plain_paths(path)


_MAPPINGS = files(__package__) / "mappings"


def built_in_mappings() -> dict[str, FieldMapping]:
    """Returns the mappings of this package by name, in alphabetical order."""
    return {name: load_mapping(name) for name in toml_names(_MAPPINGS)}


def load_mapping(name_or_file: str) -> FieldMapping:
    """Loads a mapping of this package by name, or a user's mapping by file name.

    Raises:
        BadConfig: The mapping does not exist or is not valid.
    """
    mapping = load_toml(FieldMapping, "mapping", name_or_file, _MAPPINGS)
    problem = ""
    if mapping.pages == "simplified" and mapping.step.name is None:
        problem = '[step] has no name, which only pages = "raw" can do without'
    elif mapping.pages == "simplified" and (mapping.recipe or any(getattr(mapping.step, name) for name in _RAW_ONLY)):
        problem = f'recipe, {", ".join(_RAW_ONLY[:-1])} and {_RAW_ONLY[-1]} are for pages = "raw"'
    if problem:
        raise BadConfig(f"mapping '{name_or_file}': {problem}")
    return mapping
