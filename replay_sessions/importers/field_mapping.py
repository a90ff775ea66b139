"""A log's own fields -> our records, declared in a TOML file: no code for a log that is already JSON lines.

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
    text = "action.typed"                 # also: submitted, click_type, rationale, url, timestamp
    position = "number"                   # the step's number in the log: holes are counted in Step.gap

    [types]                               # the log's words -> click, type_and_submit, terminate
    press = "click"
    search = "type_and_submit"
    leave = "terminate"

    [page]
    notation = "html"                     # or bracket_lines, nested_angles (notations.py)

Types that [types] does not list are no action of ours: such a step is left out and counted, and the next step's `gap`
says so. A key that is neither mapped nor ignored sets the line aside: nothing is dropped silently.
"""

from collections.abc import Iterable, Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal

import msgspec

from replay_sessions.errors import BadConfig, BadSession, did_you_mean
from replay_sessions.importers.importer import LeftOut
from replay_sessions.importers.notations import NOTATIONS
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
    name: str
    text: str | None = None
    submitted: str | None = None
    click_type: str | None = None
    rationale: str | None = None
    url: str | None = None
    timestamp: str | None = None
    position: str | None = None


class _PageFields(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    notation: Literal["html", "bracket_lines", "nested_angles"] = "html"


class FieldMapping(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where our fields stand in another log; see the module."""

    description: str
    source: str
    recognised_by: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()
    session: _SessionFields
    step: _StepFields
    types: dict[str, ActionType]
    page: _PageFields = _PageFields()

    def recognises(self, line: dict[str, Any]) -> bool:
        return bool(self.recognised_by) and all(key in line for key in self.recognised_by)

    def read(self, line: Any) -> tuple[Session, list[LeftOut]]:
        """A line's session and the events that were left out of it.

        Raises:
            BadSession: A field is missing, unknown or of the wrong kind, or no step is an action of ours.
        """
        if not isinstance(line, dict):
            raise BadSession("the line is no JSON object")
        if "*" not in self.ignored:
            self._check_keys(line)
        session_id = _text(line, self.session.session_id)
        raw_steps = _value(line, self.session.steps)
        if not isinstance(raw_steps, list) or not raw_steps:
            raise BadSession(f"session {session_id!r} has no steps")
        steps, left_out = self._steps(raw_steps)
        if not steps:
            types = ", ".join(sorted({event.action_type for event in left_out}))
            raise NoActions(f"session {session_id!r} has no step that is an action of ours (only {types})", left_out)
        persona = _optional_text(line, self.session.persona)
        session = Session(
            session_id=session_id,
            user_id=_optional_text(line, self.session.user_id) or session_id,
            goal=_optional_text(line, self.session.goal) or None,
            persona=Persona(text=persona) if persona else None,
            official_split=_split(_optional_text(line, self.session.official_split)),
            steps=tuple(steps),
            source=self.source,
        )
        return session, left_out

    def _steps(self, raw_steps: list[Any]) -> tuple[list[Step], list[LeftOut]]:
        steps: list[Step] = []
        left_out: list[LeftOut] = []
        gap, expected = 0, 0
        for number, raw in enumerate(raw_steps, start=1):
            try:
                position = _value(raw, self.step.position) if self.step.position else None
                if isinstance(position, int):
                    gap += max(0, position - expected)
                    expected = position + 1
                action_type = _text(raw, self.step.type)
                if action_type not in self.types:
                    left_out.append(LeftOut(action_type=action_type))
                    gap += 1
                    continue
                steps.append(self._step(raw, self.types[action_type], gap))
            except BadSession as error:
                raise BadSession(f"step {number}: {error}") from error
            gap = 0
        return steps, left_out

    def _step(self, raw: dict[str, Any], action_type: ActionType, gap: int) -> Step:
        return Step(
            page=NOTATIONS[self.page.notation](_text(raw, self.step.page)),
            action=self._action(raw, action_type),
            rationale=_optional_text(raw, self.step.rationale) or None,
            url=_optional_text(raw, self.step.url),
            timestamp=_optional_text(raw, self.step.timestamp),
            gap=gap,
        )

    def _action(self, raw: dict[str, Any], action_type: ActionType) -> Action:
        if action_type == "terminate":
            return Terminate()
        name = _optional_text(raw, self.step.name) or ""
        if action_type == "click":
            return Click(name=name, click_type=_optional_text(raw, self.step.click_type))
        submitted = _optional(raw, self.step.submitted)
        if submitted not in (None, True, False):
            raise BadSession(f"{self.step.submitted!r} is {submitted!r}, and true or false was expected")
        return TypeAndSubmit(
            name=name, text=_optional_text(raw, self.step.text) or "", submitted=submitted is not False
        )

    def _check_keys(self, line: dict[str, Any]) -> None:
        steps = self.session.steps
        fields = [*_paths(self.session), *(f"{steps}.{path}" for path in _paths(self.step)), *self.ignored]
        known = set(fields)
        inner = {path[:end] for path in known for end, character in enumerate(path) if character == "."}
        unknown = next(_unknown_keys(line, "", known, inner), None)
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
    folder = files("replay_sessions.importers") / "mappings"
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
        return msgspec.toml.decode(content, type=FieldMapping)
    except (msgspec.DecodeError, UnicodeDecodeError, ValueError) as error:
        raise BadConfig(f"mapping '{where}': {error}") from error


def _paths(fields: msgspec.Struct) -> Iterable[str]:
    return (path for path in msgspec.structs.astuple(fields) if isinstance(path, str))


def _unknown_keys(value: Any, prefix: str, known: set[str], inner: set[str]) -> Iterator[str]:
    """Paths of keys that are neither mapped nor on the way to a mapped one."""
    if isinstance(value, list):
        for item in value:
            yield from _unknown_keys(item, prefix, known, inner)
    elif isinstance(value, dict):
        for key, below in value.items():
            path = f"{prefix}.{key}" if prefix else key
            if path in inner:
                yield from _unknown_keys(below, path, known, inner)
            elif path not in known:
                yield path


def _value(record: Any, path: str) -> Any:
    """The value at a dotted path.

    Raises:
        BadSession: There is none.
    """
    value = record
    for key in path.split("."):
        if not isinstance(value, dict) or key not in value:
            raise BadSession(f"field {path!r} is missing")
        value = value[key]
    return value


def _optional(record: Any, path: str | None) -> Any:
    if path is None:
        return None
    try:
        return _value(record, path)
    except BadSession:
        return None


def _text(record: Any, path: str) -> str:
    value = _as_text(_value(record, path), path)
    if value is None:
        raise BadSession(f"field {path!r} is null")
    return value


def _optional_text(record: Any, path: str | None) -> str | None:
    return _as_text(_optional(record, path), path or "")


def _as_text(value: Any, path: str) -> str | None:
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, int | float) and not isinstance(value, bool):
        return str(value)
    raise BadSession(f"field {path!r} is {type(value).__name__}, and text was expected")


def _split(value: str | None) -> Split | None:
    try:
        return msgspec.convert(value, Split | None)  # type: ignore[no-any-return]
    except msgspec.ValidationError as error:
        raise BadSession(f"official split is {value!r}, and train, validation or test was expected") from error
