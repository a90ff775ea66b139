"""Importer `shopcart`: ShopCART, the corpus behind Shop-R1, whose pages are reported to be shifted by one step.

    python -m replay_sessions import shopcart FOLDER --out STORE                     the audit decides the page offset
    python -m replay_sessions import shopcart FOLDER --page-offset -1 --out STORE    it is given
    python -m replay_sessions import shopcart FOLDER --mapping my_fields.toml --out STORE

The published files could not be looked at here, so their field names are those of a mapping (mappings/shopcart.toml)
that is easily replaced, and records may be sessions or single actions, in JSON lines or parquet (record_files.py).
With page offset -1 the first page of a session is unknown: the step is kept, for its action is known to the next one
and is not scored itself, and its page is empty.
"""

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any, ClassVar, Literal, Self

import msgspec

from replay_sessions.errors import ImportFailed
from replay_sessions.hub.download import download, how_to_fetch, is_hub_id
from replay_sessions.importers.importer import Imported, Importer, Part, state_of_files
from replay_sessions.importers.mapped.field_mapping import FieldMapping, load_mapping
from replay_sessions.importers.mapped.jsonl import map_line
from replay_sessions.importers.mapped.page_offset import choose_page_offset
from replay_sessions.importers.mapped.record_paths import plain_paths
from replay_sessions.importers.page_reading import AS_LOGGED, PageReading, reading_of
from replay_sessions.importers.sources.field_names import listed
from replay_sessions.importers.sources.record_files import SessionLine, find_record_files, first_record, session_lines
from replay_sessions.schema import Session
from replay_sessions.splits import SPLITS
from replay_sessions.store.manifest import SetAside

__all__ = ["HUB_ID", "ShopcartImporter"]

HUB_ID = "NEU-HAI/ShopCART"
_PATTERNS = ["*.jsonl", "*.jsonl.gz", "*.parquet"]
_PART_BYTES = 16 << 20
_PART_LINES = 100_000
_SAMPLE_SESSIONS = 200

_HELP = """\
  python -m replay_sessions import shopcart ShopCART --out stores/shopcart
  python -m replay_sessions check stores/shopcart

SOURCE is a file or folder of JSON lines or parquet, one session or one action a
record. The pages may belong to the action before (offset -1) or to their own (0):
what share of the clicked names stands on them decides, and is told. Its field names
are guessed: for others copy replay_sessions/importers/mapped/mappings/shopcart.toml,
change the paths and give it as --mapping."""


class _Lines(msgspec.Struct, frozen=True):
    """Sessions of one file, and what of it is no session."""

    file: Path
    lines: list[SessionLine]
    set_aside: list[SetAside]


class ShopcartOptions(PageReading, frozen=True, kw_only=True):
    """How ShopCART is read.

    Attributes:
        mapping: Where the fields stand: the name of a mapping or a FILE.toml.
        page_offset: The page of a step is the one logged with the step before (-1), itself (0) or the one after (1);
            None: the grounding audit decides.
        revision: Which commit of NEU-HAI/ShopCART to fetch, where SOURCE is that id.
    """

    mapping: str = "shopcart"
    page_offset: Literal[-1, 0, 1] | None = None
    revision: str | None = None


class ShopcartImporter(Importer):
    """Reads ShopCART, or any log whose pages may be shifted; see the module."""

    Options: ClassVar[type[msgspec.Struct]] = ShopcartOptions

    def __init__(
        self,
        source: Path,
        mapping: str = "shopcart",
        page_offset: int | None = None,
        *,
        reading: PageReading = AS_LOGGED,
    ) -> None:
        self._files = find_record_files(source.absolute())
        self.size = sum(path.stat().st_size for path in self._files)
        self.notes = []
        self._mapping = load_mapping(mapping).with_page_offset(0).with_reading(reading)
        self._recipe_rules = self._mapping.reading.rules()
        self.source = self._mapping.source
        self._check_fields()
        if page_offset is None and self._mapping.pages == "raw":
            raise ImportFailed(
                "whose page is whose is decided by names, which raw pages have none of: give --page-offset"
            )
        if page_offset is None:
            chosen = choose_page_offset(self._sample())
            page_offset = chosen.offset
            self.notes.append(f"page offset {page_offset:+d}: {chosen.reason}")
            decided_by = "grounding audit"
        else:
            decided_by = "the command"
        self._mapping = self._mapping.with_page_offset(page_offset)
        self.options = {"mapping": mapping, "page_offset": f"{page_offset:+d}", "page_offset_decided_by": decided_by}
        self.options |= self._mapping.reading.told()

    @classmethod
    def from_options(cls, source: Path, options: ShopcartOptions) -> Self:
        if is_hub_id(source):
            source = _fetch(source.as_posix(), options.revision)
        return cls(source, options.mapping, options.page_offset, reading=reading_of(options))

    @classmethod
    def help(cls) -> str:
        return _HELP

    def state(self) -> str:
        return state_of_files(path.absolute() for path in self._files)

    def rules(self) -> Any:
        return self._mapping, self._recipe_rules

    def parts(self) -> Iterator[Part]:
        for path in self._files:
            lines: list[SessionLine] = []
            set_aside: list[SetAside] = []
            size, done = 0, 0
            for item in session_lines(path, self._mapping, self.longest_session_bytes):
                if isinstance(item, SetAside):
                    set_aside.append(item)
                    reached = done
                else:
                    lines.append(item)
                    size += len(item.line)
                    reached = item.done_bytes
                if size >= _PART_BYTES or len(lines) + len(set_aside) == _PART_LINES:
                    yield Part(content=_Lines(path, lines, set_aside), size=reached - done)
                    lines, set_aside, size, done = [], [], 0, reached
            if lines or set_aside:
                yield Part(content=_Lines(path, lines, set_aside), size=path.stat().st_size - done)

    def read(self, part: Part) -> Iterator[Imported]:
        content: _Lines = part.content
        yield from content.set_aside
        split = next((split for split in SPLITS if content.file.name.startswith(split)), None)
        for line in content.lines:
            for imported in map_line(self._mapping, line.line, line.where):
                if isinstance(imported, Session) and imported.official_split is None:
                    imported = msgspec.structs.replace(imported, official_split=split)
                yield imported

    def _sample(self) -> Iterator[Session]:
        """Some sessions of each file, with the pages as they were logged."""
        each = max(1, _SAMPLE_SESSIONS // len(self._files))
        for path in self._files[:_SAMPLE_SESSIONS]:
            yield from islice(_sessions(path, self._mapping, self.longest_session_bytes), each)

    def _check_fields(self) -> None:
        record = first_record(self._files[0])
        fields = self._mapping.session
        is_session = fields.steps.partition(".")[0] in record
        wanted = list(plain_paths(fields.session_id if is_session else self._mapping.step.page))
        if wanted and not any(path.partition(".")[0] in record for path in wanted):
            raise ImportFailed(
                f"the first record of '{self._files[0]}' has no field {wanted[0]!r}, but {listed(record)}: "
                "copy replay_sessions/importers/mapped/mappings/shopcart.toml, change its paths, "
                "give it as --mapping"
            )


def _sessions(path: Path, mapping: FieldMapping, longest_bytes: int) -> Iterator[Session]:
    for item in session_lines(path, mapping, longest_bytes):
        if isinstance(item, SessionLine):
            yield from (found for found in map_line(mapping, item.line, item.where) if isinstance(found, Session))


def _fetch(hub_id: str, revision: str | None) -> Path:
    if revision is None:
        raise ImportFailed(
            f"'{hub_id}' is no file or folder here, and to fetch it from the hub a commit is needed, so that others "
            "can fetch the same: look it up on its page (and its licence, which this project could not establish) and "
            f"give --revision COMMIT; or {how_to_fetch(hub_id, 'COMMIT', _PATTERNS, 'shopcart')}"
        )
    return download(hub_id, revision=revision, patterns=_PATTERNS, importer="shopcart")
