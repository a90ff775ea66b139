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
    text = "action.typed"                 # also: submitted, click_type, rationale, url, timestamp; of raw pages
                                          # also selector (CSS), element_id, element_text and link_url
    position = "number"                   # the step's number in the log: holes are counted in Step.gap

    [types]                               # the log's words -> click, type_and_submit, input (typed, not known to be
    press = "click"                       # submitted), terminate; of a table of events (below) also purchase, view
    search = "type_and_submit"
    leave = "terminate"

    [of.search]                           # what stands elsewhere for one of the log's words; fields of [step]
    name = "form.field"

    [page]
    notation = "html"                     # or bracket_lines, nested_angles (notations.py)
    offset = 0                            # -1: the log holds each page beside the action that led to it, so the page
                                          # of a step stands one step earlier (page_offset.py finds out)

A path goes on inside text that holds JSON, and more (record_paths.py): of several the first counts that is there, and
what begins with `=` is no path but text of its own. What stands after the last page, or before the first, is an empty
page.

Types that [types] does not list are no action of ours: such a step is left out and counted, and the next step's `gap`
says so. A key that is neither mapped nor ignored sets the line aside: nothing is dropped silently.

A table of events (mappings/ga4.toml) is one event a record, and its pages are elsewhere: [step] then has no `page` but
`url` and `timestamp`, by which the importer `raw` finds them (raw/event_rows.py). `order` are the paths of numbers that
tell which of two events of one time came first.
"""

from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal

import msgspec

from replay_sessions.config_errors import what_is_wrong
from replay_sessions.errors import BadConfig, BadSession, did_you_mean
from replay_sessions.importers.importer import LeftOut
from replay_sessions.importers.mapped.mapped_steps import step_of, target_of
from replay_sessions.importers.mapped.mapping_fields import (
    STEP_TYPES,
    EventFields,
    EventType,
    PageFields,
    SessionFields,
    StepFields,
    paths_of,
)
from replay_sessions.importers.mapped.page_notations import NOTATIONS
from replay_sessions.importers.mapped.record_paths import (
    decoded,
    optional_text_at,
    text_at,
    unknown_keys,
    value_at,
)
from replay_sessions.importers.page_reading import AS_LOGGED, PageReading
from replay_sessions.importers.raw.targets import Target
from replay_sessions.schema import Persona, Session, Split, Step

__all__ = ["FieldMapping", "built_in_mappings", "load_any_mapping", "load_mapping"]

_OF_RAW = ("element_id", "link_url", "selector", "element_text")


class FieldMapping(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where our fields stand in another log; see the module."""

    description: str
    source: str
    pages: Literal["simplified", "raw"] = "simplified"
    recipe: str | None = None
    private_data: Literal["remove", "keep"] | None = None
    recognised_by: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()
    session: SessionFields
    step: StepFields
    of: dict[str, EventFields] = {}
    types: dict[str, EventType]
    page: PageFields = PageFields()

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

    def fields_of(self, word: str) -> StepFields:
        """Where the fields stand of a step that the log calls by a word."""
        if word not in self.of:
            return self.step
        given = msgspec.structs.asdict(self.of[word])
        return msgspec.structs.replace(self.step, **{name: path for name, path in given.items() if path is not None})

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
                if self.types.get(action_type) not in STEP_TYPES:
                    left_out.append(LeftOut(action_type=action_type))
                    gap += 1
                    continue
                page = "" if hole and self.page.offset < 0 else self._page(raw_steps, number - 1)
                fields = self.fields_of(action_type)
                steps.append(step_of(raw, fields, page, self.types[action_type], gap))
                targets.append(target_of(raw, fields))
            except BadSession as error:
                raise BadSession(f"step {number}: {error}") from error
            gap = 0
        return steps, left_out, targets

    def _page(self, raw_steps: list[Any], index: int) -> str:
        index += self.page.offset
        if not 0 <= index < len(raw_steps):
            return ""
        if self.pages == "raw":
            return text_at(raw_steps[index], self.step.page or "")
        return NOTATIONS[self.page.notation](text_at(raw_steps[index], self.step.page or ""))

    def _check_keys(self, line: dict[str, Any]) -> None:
        of_steps = (f"{self.session.steps}.{path}" for path in self._step_paths())
        self._check(line, {*paths_of(self.session), *of_steps})

    def event_paths(self) -> set[str]:
        """The paths of a table of events, one a record."""
        return {*paths_of(msgspec.structs.replace(self.session, steps="=")), *self._step_paths()}

    def check_event_keys(self, record: dict[str, Any]) -> None:
        """Raises BadSession where an event has a key that is neither mapped nor ignored."""
        if "*" not in self.ignored:
            self._check(record, self.event_paths())

    def _step_paths(self) -> Iterator[str]:
        for fields in (self.step, *self.of.values()):
            yield from paths_of(fields)

    def _check(self, line: dict[str, Any], mapped: set[str]) -> None:
        known = mapped | set(self.ignored)
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
    """A mapping of this package by name, or one of a user's own by file name, for a log that holds its pages.

    Raises:
        BadConfig: There is none, or it does not say what it should.
    """
    mapping = load_any_mapping(name_or_file)
    if mapping.step.page is None:
        raise BadConfig(
            f"mapping {name_or_file!r} is for a table of events, whose pages are elsewhere: give them to `import raw "
            f"PAGES --actions EVENTS --mapping {name_or_file}`; for a log that holds its pages [step] says where: page"
        )
    return mapping


def load_any_mapping(name_or_file: str) -> FieldMapping:
    """The same, also for a table of events."""
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
        if mapping.recipe or any(getattr(mapping.step, name) for name in _OF_RAW):
            raise BadConfig(
                f"mapping '{where}': recipe, {', '.join(_OF_RAW[:-1])} and {_OF_RAW[-1]} are for pages = \"raw\""
            )
    for word in mapping.of:
        if word not in mapping.types:
            raise BadConfig(
                f"mapping '{where}': [of.{word}] is of no word in [types]. {did_you_mean(word, mapping.types)}"
            )
    return mapping


def _split(value: str | None) -> Split | None:
    try:
        return msgspec.convert(value, Split | None)  # type: ignore[no-any-return]
    except msgspec.ValidationError as error:
        raise BadSession(f"official split is {value!r}, and train, validation or test was expected") from error
