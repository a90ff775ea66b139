"""Importer `jsonl` reads sessions that are lines, or items of an array, plain or gzip, in our form or another log's.

    shop-r1 import jsonl sessions.jsonl.gz --out STORE [--mapping NAME|FILE.toml]

Our own form is a Session as JSON (schema.py); its source may be missing. Other forms are read by a field mapping.
Without --mapping the form is recognised by the keys of the first object.
"""

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any, ClassVar

import msgspec
from msgspec.structs import asdict, replace

from replay_sessions.foundation.errors import BadSession, ImportFailed
from replay_sessions.foundation.help_text import format_choices
from replay_sessions.importers.importer import (
    Importer,
    Part,
    Read,
    changed_options,
    find_files,
    listed,
    reason_of,
)
from replay_sessions.importers.logged_pages import InlinePages, PageOptions
from replay_sessions.importers.mapped.field_mapping import FieldMapping, built_in_mappings, load_mapping
from replay_sessions.importers.private_sessions import mark_by_form, without_secrets
from replay_sessions.importers.sessions import build_session, rows_of_session
from replay_sessions.importers.sources.record_files import Record, first_object, read_records
from replay_sessions.schema import Session
from replay_sessions.store.manifest import Rejected

OWN_FORM = "shop_r1"
_OWN_KEYS = frozenset({"session_id", "user_id", "steps"})

_HELP = """\
  shop-r1 import jsonl sessions.jsonl.gz --out STORE
  shop-r1 import jsonl log.jsonl --mapping my.toml --out STORE

A line is a session, in our own form (--mapping shop_r1) or in that of another log,
whose mapping says where its fields stand:

{mappings}
A mapping of your own is a TOML file; docs/field_mappings.md describes it."""


class _OwnSession(Session, frozen=True, kw_only=True):
    source: str = "jsonl"


class MappedImporter(Importer):
    """Reads sessions that are JSON records, by a field mapping or in our own form."""

    _mapping: FieldMapping | None
    _reading: PageOptions
    _files: list[Path]

    def _set_files(self, source: Path) -> None:
        self._files = find_files(source, (".jsonl", ".jsonl.gz", ".parquet"), self.warnings, any_file=True)
        self.size = sum(path.stat().st_size for path in self._files)

    def _set_mapping(self, mapping: FieldMapping | None, options: PageOptions) -> None:
        """Sets the mapping; options of the command that concern pages override it."""
        self.name = mapping.source if mapping else "jsonl"
        self._mapping = replace(mapping, **changed_options(options, PageOptions)) if mapping else None
        self._reading = self._mapping or options

    def _records(self, path: Path) -> Iterator[Record | Rejected]:
        """Yields the sessions of a file, each as a record."""
        return read_records(path)

    def split(self) -> Iterator[Part | Read]:
        for path in self._files:
            done = 0
            for record in self._records(path):
                if isinstance(record, Rejected):
                    yield Read(rejected=[record])
                else:
                    yield Part(record, record.done_bytes - done, path)
                    done = record.done_bytes

    def read(self, source: Record, options: Any) -> Iterator[Read]:
        try:
            if self._mapping is None:
                session = Session(**asdict(source.decode(_OwnSession)))
                if self._reading.pages == "raw":
                    rows, persona, name = rows_of_session(session), session.persona, session.source
                elif self._reading.removes_private_data:
                    yield Read(mark_by_form(session, has_simplified_pages=True), is_marked=True)
                    return
                else:
                    yield Read(without_secrets(session))
                    return
            else:
                rows, persona = self._mapping.session_rows(source.decode()), None
                name = self.name
        except BadSession as error:
            yield Read(rejected=[Rejected(where=source.location, reason=reason_of(error))])
            return
        yield build_session(
            rows,
            InlinePages(self._reading),
            source=name,
            row_prefix=f"{source.location}, step ",
            session_location=source.location,
            persona=persona,
        )


class JsonlOptions(PageOptions):
    """Options of reading JSON lines.

    Attributes:
        mapping: The mapping of the log's fields: a FILE.toml of your own, or a NAME of --help-all. If None, it is
            recognised by the first line.
    """

    mapping: str | None = None


class JsonlImporter(MappedImporter):
    """Reads JSON lines (see the module's docstring)."""

    Options: ClassVar[type[msgspec.Struct]] = JsonlOptions

    def __init__(self, source: Path, options: JsonlOptions | None = None) -> None:
        super().__init__(source, options)
        if source.suffix in (".csv", ".tsv"):
            raise ImportFailed(
                f"'{source}' is a table, and a file of JSON lines was expected: `import events` reads tables"
            )
        self._set_files(source)
        name, self.notes = self._choose_mapping(self.options.mapping)
        self._set_mapping(None if name == OWN_FORM else load_mapping(name), self.options)
        self.settings |= {"mapping": name, **self._reading.described()}

    @classmethod
    def help(cls) -> str:
        mappings = {name: mapping.description for name, mapping in built_in_mappings().items()}
        return _HELP.format(mappings=format_choices(mappings))

    def _choose_mapping(self, name: str | None) -> tuple[str, list[str]]:
        """Returns the name of a mapping and notes on it; if `name` is None, the first object decides.

        Raises:
            ImportFailed: `name` is None, and the log is not recognised.
        """
        file, mappings = self._files[0], built_in_mappings()
        first = first_object(islice(read_records(file), 100))
        likely = next((other for other, mapping in mappings.items() if mapping.recognises(first)), None)
        if name is not None:
            is_other = likely and name in mappings and not mappings[name].recognises(first)
            return name, [f"{file.name} is read as {name}, and looks like {likely}"] if is_other else []
        if likely:
            description = mappings[likely].description
            return likely, [f"{file.name} looks like {likely} ({description}); --mapping says otherwise"]
        if first.keys() >= _OWN_KEYS:
            return OWN_FORM, []
        keys = listed(first) or "no JSON object on any of the first lines"
        raise ImportFailed(
            f"'{file}' is of no known form (first line: {keys}): give --mapping, one of "
            f"{', '.join([OWN_FORM, *mappings])}, or a file of your own (see `import jsonl --help-all`)"
        )
