"""Importer `jsonl`: one session a line, plain or gzip, in our own form or another log's through a field mapping.

    python -m replay_sessions import jsonl sessions.jsonl.gz --out STORE [--mapping NAME|FILE.toml]

Our own form is a Session as JSON (schema.py). Without --mapping it is recognised by the first line's keys.
"""

import gzip
import zlib
from collections.abc import Iterator
from pathlib import Path
from textwrap import fill
from typing import IO, Any, ClassVar, Self

import msgspec

from replay_sessions.errors import BadSession, ImportFailed
from replay_sessions.importers.importer import Imported, Importer, NoOptions, Part, state_of_files
from replay_sessions.importers.mapped.field_mapping import FieldMapping, NoActions, built_in_mappings, load_mapping
from replay_sessions.importers.page_reading import AS_LOGGED, PageReading, as_stored, reading_of
from replay_sessions.importers.sources.field_names import listed
from replay_sessions.importers.sources.session_rows import too_long
from replay_sessions.schema import Session
from replay_sessions.store.file_names import check_name
from replay_sessions.store.manifest import SetAside

__all__ = [
    "OWN_FORM",
    "AutowebbenchImporter",
    "JsonlImporter",
    "MiniwobImporter",
    "WebshopImporter",
    "map_line",
    "read_lines",
]

OWN_FORM = "shop_r1"
_OWN_KEYS = frozenset({"session_id", "user_id", "source", "steps"})
_PART_BYTES = 16 << 20
_PART_LINES = 100_000
_GZIP_MAGIC = b"\x1f\x8b"

_HELP = """\
  python -m replay_sessions import jsonl sessions.jsonl.gz --out STORE
  python -m replay_sessions import jsonl log.jsonl --mapping my.toml --out STORE

A line is a session, in our own form (--mapping shop_r1) or in that of another log,
whose mapping says where its fields stand:

{known}

A mapping of your own is a TOML file; docs/field_mappings.md describes it."""


class _Lines(msgspec.Struct, frozen=True):
    """Consecutive lines of the file; None stands for one that is too long to be read."""

    first_number: int
    lines: list[bytes | None]


class JsonlOptions(PageReading, frozen=True, kw_only=True):
    """How JSON lines are read.

    Attributes:
        mapping: How the log's fields become ours: a NAME of those above or a FILE.toml of your own; None: it is guessed
            from the first line.
    """

    mapping: str | None = None


class JsonlImporter(Importer):
    """Reads JSON lines; see the module."""

    Options: ClassVar[type[msgspec.Struct]] = JsonlOptions

    def __init__(self, path: Path, mapping: str | None = None, *, reading: PageReading = AS_LOGGED) -> None:
        self.path = path
        self.size = _file_size(path)
        self.notes = []
        if mapping is None:
            mapping = self._guess_mapping()
        else:
            self._doubt(mapping)
        self._mapping = None if mapping == OWN_FORM else load_mapping(mapping)
        self.source = self._mapping.source if self._mapping else "jsonl"
        if self._mapping and reading != AS_LOGGED:
            self._mapping = self._mapping.with_reading(reading)
        self._reading = self._mapping.reading if self._mapping else reading
        self._recipe_rules = self._reading.rules()
        self.options = {"file": path.name, "mapping": mapping, **self._reading.told()}

    @classmethod
    def from_options(cls, source: Path, options: JsonlOptions) -> Self:
        return cls(source, options.mapping, reading=reading_of(options))

    @classmethod
    def help(cls) -> str:
        lines = [
            fill(f"{name:14}{mapping.description}", 80, initial_indent="  ", subsequent_indent=" " * 16)
            for name, mapping in built_in_mappings().items()
        ]
        return _HELP.format(known="\n".join(lines))

    def state(self) -> str:
        return state_of_files([self.path.absolute()])

    def rules(self) -> Any:
        return self._mapping, self._recipe_rules

    def parts(self) -> Iterator[Part]:
        first_number, lines, size, read_before = 1, [], 0, 0
        with self.path.open("rb") as raw:
            for line in read_lines(raw, self.path, self.longest_session_bytes):
                lines.append(line)
                size += len(line or b"")
                if size >= _PART_BYTES or len(lines) == _PART_LINES:
                    yield Part(content=_Lines(first_number, lines), size=raw.tell() - read_before)
                    first_number, lines, size, read_before = first_number + len(lines), [], 0, raw.tell()
            if lines:
                yield Part(content=_Lines(first_number, lines), size=raw.tell() - read_before)

    def read(self, part: Part) -> Iterator[Imported]:
        content: _Lines = part.content
        for number, line in enumerate(content.lines, start=content.first_number):
            if line is None:
                yield self._set_aside(number, too_long(self.longest_session_bytes))
            elif line.strip():
                yield from self._read_line(number, line)

    def _read_line(self, number: int, line: bytes) -> Iterator[Imported]:
        if self._mapping is not None:
            yield from map_line(self._mapping, line, f"{self.path.name}:{number}")
            return
        try:
            session = msgspec.json.decode(line, type=Session)
        except (ValueError, RecursionError) as error:  # msgspec's errors and UnicodeDecodeError are ValueErrors
            yield self._set_aside(number, _reason(error))
        else:
            yield from as_stored(session, self._reading, f"{self.path.name}:{number}")

    def _set_aside(self, number: int, reason: str) -> SetAside:
        return SetAside(where=f"{self.path.name}:{number}", reason=reason)

    def _guess_mapping(self) -> str:
        first = self._first_object()
        mappings: dict[str, FieldMapping] = built_in_mappings()
        for name, mapping in mappings.items():
            if mapping.recognises(first):
                self.notes.append(
                    f"{self.path.name} looks like {name} ({mapping.description}); --mapping says otherwise"
                )
                return name
        if first.keys() >= _OWN_KEYS:
            return OWN_FORM
        keys = listed(first) or "no JSON object on any of the first lines"
        raise ImportFailed(
            f"'{self.path}' is of no known form (first line: {keys}): give --mapping, one of "
            f"{', '.join([OWN_FORM, *mappings])}, or a file of your own (see `import jsonl --help`)"
        )

    def _doubt(self, mapping: str) -> None:
        """Tells where the file looks like another log than the one that was named."""
        known = built_in_mappings()
        if mapping in known and not known[mapping].recognises(first := self._first_object()):
            likely = [name for name, other in known.items() if other.recognises(first)]
            if likely:
                self.notes.append(f"{self.path.name} is read as {mapping}, and looks like {likely[0]}")

    def _first_object(self) -> dict[str, Any]:
        with self.path.open("rb") as raw:
            for _, line in zip(range(100), read_lines(raw, self.path, self.longest_session_bytes), strict=False):
                try:
                    value = msgspec.json.decode(line or b"")
                except (ValueError, RecursionError):
                    continue
                if isinstance(value, dict):
                    return value
        return {}


class _Mapped(JsonlImporter):
    """JSON lines of one known log."""

    mapping: ClassVar[str]

    Options: ClassVar[type[msgspec.Struct]] = NoOptions  # its mapping is fixed

    @classmethod
    def from_options(cls, source: Path, options: Any) -> Self:
        return cls(source, cls.mapping)

    @classmethod
    def help(cls) -> str:
        return ""


class MiniwobImporter(_Mapped):
    mapping = "miniwob"


class AutowebbenchImporter(_Mapped):
    mapping = "autowebbench"


class WebshopImporter(_Mapped):
    mapping = "webshop"


def map_line(mapping: FieldMapping, line: bytes, where: str) -> Iterator[Imported]:
    """A line of another log as a session, what was left out of it, or why it was set aside."""
    try:
        session, left_out, targets = mapping.read(msgspec.json.decode(line))
    except NoActions as error:
        yield from error.left_out
        yield SetAside(where=where, reason=str(error))
    except (BadSession, ValueError, RecursionError) as error:
        yield SetAside(where=where, reason=_reason(error))
    else:
        yield from left_out
        yield from as_stored(session, mapping.reading, where, targets)


def _file_size(path: Path) -> int:
    check_name(path)
    try:
        with path.open("rb"):
            return path.stat().st_size
    except IsADirectoryError as error:
        raise ImportFailed(f"'{path}' is a folder, and a file of JSON lines was expected") from error
    except OSError as error:
        raise ImportFailed(f"cannot read '{path}': {error.strerror}") from error


def read_lines(raw: IO[bytes], path: Path, longest_bytes: int) -> Iterator[bytes | None]:
    """Lines of a plain or gzip file; None for one that is too long.

    Raises:
        ImportFailed: The file is damaged.
    """
    is_gzip = raw.read(2) == _GZIP_MAGIC
    raw.seek(0)
    file: IO[bytes] = gzip.GzipFile(fileobj=raw) if is_gzip else raw  # type: ignore[assignment]
    try:
        while line := file.readline(longest_bytes + 1):
            if len(line) > longest_bytes and not line.endswith(b"\n"):
                del line
                while (rest := file.readline(_PART_BYTES)) and not rest.endswith(b"\n"):
                    pass
                yield None
            else:
                yield line
    except (OSError, EOFError, zlib.error) as error:
        raise ImportFailed(f"'{path}' is damaged ({error}): nothing was imported; fetch the file again") from error


def _reason(error: Exception) -> str:
    """Why a line was set aside, in one line: an unknown key, which the message quotes, may hold line breaks."""
    reason = " ".join(str(error).split()) or type(error).__name__
    is_syntax = isinstance(error, msgspec.DecodeError) and not isinstance(error, msgspec.ValidationError)
    return f"no JSON: {reason}" if is_syntax else reason
