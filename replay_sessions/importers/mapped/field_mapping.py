"""A log's own fields -> our records, declared in a TOML file: no code for a log that is already JSON lines.

    pages = "raw"                         # simplified unless it says so; raw pages are simplified by a recipe, and what
    recipe = "amazon"                     # was acted on is looked up in them; by default the site's own recipe
    private_data = "remove"               # or keep: by default it is taken out of raw pages only
    description = "Clicks and searches of our own site"
    source = "my_site"                    # Session.source
    recognised_by = ["visit", "visitor"]  # keys of a line that tell this log from others (for guessing)
    ignored = ["ip", "steps.cookie"]      # known and not wanted; "*" ignores whatever is not mapped

    [session]                             # dotted paths from a line
    session_id = "visit"
    user_id = "visitor"                   # absent or null: the session's id stands for the user
    goal = "wanted"                       # also: persona (text), official_split
    steps = "steps"                       # the list of steps

    [step]                                # dotted paths from a step
    page = "html"
    type = "action.kind"
    name = "action.target"
    text = "action.typed"                 # also: submitted, click_type, rationale, url, timestamp; of raw
                                          # pages also selector (CSS) and element_text
    position = "number"                   # the step's number in the log: holes are counted in Step.gap

    [types]                               # the log's words -> click, type_and_submit, terminate
    press = "click"
    search = "type_and_submit"
    leave = "terminate"

    [page]
    notation = "html"                     # or bracket_lines, nested_angles (notations.py)
    offset = 0                            # -1: the log holds each page beside the action that led to it, so the page
                                          # of a step stands one step earlier (page_offset.py finds out)

A path goes on inside text that holds JSON. What stands after the last page, or before the first, is an empty page.

Types that [types] does not list are no action of ours: such a step is left out and counted, and the next step's `gap`
says so. A key that is neither mapped nor ignored sets the line aside: nothing is dropped silently.
"""

from collections.abc import Iterable
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal

import msgspec

from replay_sessions.config_errors import what_is_wrong
from replay_sessions.errors import BadConfig, BadSession, did_you_mean
from replay_sessions.importers.importer import LeftOut
from replay_sessions.importers.mapped.page_notations import NOTATIONS
from replay_sessions.importers.mapped.record_paths import (
    decoded,
    optional_at,
    optional_text_at,
    text_at,
    unknown_keys,
    value_at,
)
from replay_sessions.importers.page_reading import AS_LOGGED, PageReading
from replay_sessions.importers.raw.targets import Target
from replay_sessions.schema import Action, ActionType, Click, Persona, Session, Split, Step, Terminate, TypeAndSubmit

__all__ = ["FieldMapping", "built_in_mappings", "load_mapping"]


class _SessionFields(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    session_id: str
    steps: str = "steps"
    user_id: str | None = None
    goal: str | None = None
    persona: str | None = None
    official_split: str | None = None


class _StepFields(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    page: str
    type: str
    name: str | None = None
    selector: str | None = None
    element_text: str | None = None
    text: str | None = None
    submitted: str | None = None
    click_type: str | None = None
    rationale: str | None = None
    url: str | None = None
    timestamp: str | None = None
    position: str | None = None


class _PageFields(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    notation: Literal["html", "bracket_lines", "nested_angles"] = "html"
    offset: int = 0


class FieldMapping(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where our fields stand in another log; see the module."""

    description: str
    source: str
    pages: Literal["simplified", "raw"] = "simplified"
    recipe: str | None = None
    private_data: Literal["remove", "keep"] | None = None
    recognised_by: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()
    session: _SessionFields
    step: _StepFields
    types: dict[str, ActionType]
    page: _PageFields = _PageFields()

    @property
    def reading(self) -> PageReading:
        return PageReading(pages=self.pages, recipe=self.recipe, private_data=self.private_data)

    def with_reading(self, reading: PageReading) -> "FieldMapping":
        """The mapping with what a command says of pages, where it says something."""
        said = {
            field: value
            for field, value in msgspec.structs.asdict(reading).items()
            if value != getattr(AS_LOGGED, field)
        }
        return msgspec.structs.replace(self, **said)

    def with_page_offset(self, offset: int) -> "FieldMapping":
        return msgspec.structs.replace(self, page=msgspec.structs.replace(self.page, offset=offset))

    def recognises(self, line: dict[str, Any]) -> bool:
        return bool(self.recognised_by) and all(key in line for key in self.recognised_by)

    def read(self, line: Any) -> tuple[Session, list[LeftOut], list[Target]]:
        """A line's session, the events that were left out of it, and what each step acts on in a raw page.

        Raises:
            BadSession: A field is missing, unknown or of the wrong kind, or no step is an action of ours.
        """
        if not isinstance(line, dict):
            raise BadSession("the line is no JSON object")
        if "*" not in self.ignored:
            self._check_keys(line)
        session_id = text_at(line, self.session.session_id)
        raw_steps = decoded(value_at(line, self.session.steps))
        if not isinstance(raw_steps, list) or not raw_steps:
            raise BadSession(f"session {session_id!r} has no steps")
        steps, left_out, targets = self._steps(raw_steps)
        if not steps:
            types = ", ".join(sorted({event.action_type for event in left_out}))
            raise NoActions(f"session {session_id!r} has no step that is an action of ours (only {types})", left_out)
        persona = optional_text_at(line, self.session.persona)
        session = Session(
            session_id=session_id,
            user_id=optional_text_at(line, self.session.user_id) or session_id,
            goal=optional_text_at(line, self.session.goal) or None,
            persona=Persona(text=persona) if persona else None,
            official_split=_split(optional_text_at(line, self.session.official_split)),
            steps=tuple(steps),
            source=self.source,
        )
        return session, left_out, targets

    def _steps(self, raw_steps: list[Any]) -> tuple[list[Step], list[LeftOut], list[Target]]:
        steps: list[Step] = []
        targets: list[Target] = []
        left_out: list[LeftOut] = []
        gap, expected = 0, 0
        for number, raw in enumerate(raw_steps, start=1):
            hole = 0
            try:
                position = value_at(raw, self.step.position) if self.step.position else None
                if isinstance(position, int):
                    hole = max(0, position - expected)
                    gap += hole
                    expected = position + 1
                action_type = text_at(raw, self.step.type)
                if action_type not in self.types:
                    left_out.append(LeftOut(action_type=action_type))
                    gap += 1
                    continue
                page = "" if hole and self.page.offset < 0 else self._page(raw_steps, number - 1)
                steps.append(self._step(raw, page, self.types[action_type], gap))
                targets.append(self._target(raw))
            except BadSession as error:
                raise BadSession(f"step {number}: {error}") from error
            gap = 0
        return steps, left_out, targets

    def _target(self, raw: dict[str, Any]) -> Target:
        columns = {"name": self.step.name, "selector": self.step.selector, "element_text": self.step.element_text}
        return {column: optional_text_at(raw, path) for column, path in columns.items()}

    def _page(self, raw_steps: list[Any], index: int) -> str:
        index += self.page.offset
        if not 0 <= index < len(raw_steps):
            return ""
        if self.pages == "raw":
            return text_at(raw_steps[index], self.step.page)
        return NOTATIONS[self.page.notation](text_at(raw_steps[index], self.step.page))

    def _step(self, raw: dict[str, Any], page: str, action_type: ActionType, gap: int) -> Step:
        return Step(
            page=page,
            action=self._action(raw, action_type),
            rationale=optional_text_at(raw, self.step.rationale) or None,
            url=optional_text_at(raw, self.step.url),
            timestamp=optional_text_at(raw, self.step.timestamp),
            gap=gap,
        )

    def _action(self, raw: dict[str, Any], action_type: ActionType) -> Action:
        if action_type == "terminate":
            return Terminate()
        name = optional_text_at(raw, self.step.name) or ""
        if action_type == "click":
            return Click(name=name, click_type=optional_text_at(raw, self.step.click_type))
        submitted = optional_at(raw, self.step.submitted)
        if submitted not in (None, True, False):
            raise BadSession(f"{self.step.submitted!r} is {submitted!r}, and true or false was expected")
        return TypeAndSubmit(
            name=name, text=optional_text_at(raw, self.step.text) or "", submitted=submitted is not False
        )

    def _check_keys(self, line: dict[str, Any]) -> None:
        steps = self.session.steps
        fields = [*_paths(self.session), *(f"{steps}.{path}" for path in _paths(self.step)), *self.ignored]
        known = set(fields)
        inner = {path[:end] for path in known for end, character in enumerate(path) if character == "."}
        unknown = next(unknown_keys(line, "", known, inner), None)
        if unknown is not None:
            raise BadSession(
                f'unknown field {unknown!r}: map it, or list it under `ignored` in the mapping ("*" ignores all)'
            )


class NoActions(BadSession):
    """A session none of whose events is an action of ours; they are still counted."""

    def __init__(self, message: str, left_out: list[LeftOut]) -> None:
        super().__init__(message)
        self.left_out = left_out


def built_in_mappings() -> dict[str, FieldMapping]:
    """The mappings of this package by name, in alphabetical order."""
    folder = files("replay_sessions.importers.mapped") / "mappings"
    entries = sorted(entry.name for entry in folder.iterdir() if entry.name.endswith(".toml"))
    return {name.removesuffix(".toml"): _decode((folder / name).read_bytes(), name) for name in entries}


def load_mapping(name_or_file: str) -> FieldMapping:
    """A mapping of this package by name, or one of a user's own by file name.

    Raises:
        BadConfig: There is none, or it does not say what it should.
    """
    if name_or_file.endswith(".toml"):
        path = Path(name_or_file).expanduser()
        try:
            return _decode(path.read_bytes(), str(path))
        except OSError as error:
            raise BadConfig(f"cannot read the mapping '{path}': {error.strerror}") from error
    mappings = built_in_mappings()
    if name_or_file not in mappings:
        hint = did_you_mean(name_or_file, mappings)
        raise BadConfig(f"unknown mapping {name_or_file!r}. {hint} One of your own is a file that ends in .toml.")
    return mappings[name_or_file]


def _decode(content: bytes, where: str) -> FieldMapping:
    try:
        mapping = msgspec.toml.decode(content, type=FieldMapping)
    except (msgspec.DecodeError, UnicodeDecodeError, ValueError) as error:
        raise BadConfig(f"mapping '{where}': {what_is_wrong(error, FieldMapping)}") from error
    mapping.reading.rules()  # a recipe of no such name is told now
    if mapping.pages == "simplified":
        if mapping.step.name is None:
            raise BadConfig(f"mapping '{where}': [step] has no name, which only pages = \"raw\" can do without")
        if mapping.recipe or mapping.step.selector or mapping.step.element_text:
            raise BadConfig(f"mapping '{where}': recipe, selector and element_text are for pages = \"raw\"")
    return mapping


def _paths(fields: msgspec.Struct) -> Iterable[str]:
    return (path for path in msgspec.structs.astuple(fields) if isinstance(path, str))


def _split(value: str | None) -> Split | None:
    try:
        return msgspec.convert(value, Split | None)  # type: ignore[no-any-return]
    except msgspec.ValidationError as error:
        raise BadSession(f"official split is {value!r}, and train, validation or test was expected") from error
