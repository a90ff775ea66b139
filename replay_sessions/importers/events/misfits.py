"""Says why a mapping reads nothing of a log: another delimiter, or another kind of log."""

from collections.abc import Iterable
from itertools import islice
from pathlib import Path

from replay_sessions.foundation.config_errors import toml_names
from replay_sessions.foundation.errors import ImportFailed
from replay_sessions.importers.events.event_reader import EventReader
from replay_sessions.importers.events.mapping import MAPPINGS, EventMapping, load_event_mapping
from replay_sessions.importers.importer import listed
from replay_sessions.importers.sources.record_files import Record, first_object, read_records
from replay_sessions.store.manifest import Rejected

_DELIMITERS = ";,\t|"
_RECORDS = 50  # of each file, from which a mapping is suggested


def check_delimiter(files: Iterable[Path], delimiter: str) -> None:
    """Checks that no table has all its columns in one.

    Raises:
        ImportFailed: A table has a single column, whose name holds another delimiter.
    """
    for file in files:
        if not file.name.lower().endswith((".csv", ".csv.gz")):
            continue
        names = list(first_object(islice(read_records(file, delimiter), 1)))
        others = [sign for sign in _DELIMITERS if len(names) == 1 and sign in names[0]]
        if others:
            raise ImportFailed(
                f"'{file.name}' has one column, {names[0][:60]!r}: its delimiter seems to be {others[0]!r}, and the "
                f'mapping says {delimiter!r}. Set `delimiter = "{others[0]}"` in a copy of the mapping.'
            )


def describe_misfit(files: Iterable[Path], mapping: EventMapping) -> str:
    """Says which fields a log has, and which of the package's mappings read it."""
    records = [record for file in files for record in islice(read_records(file, mapping.delimiter), _RECORDS)]
    names = [name for name in toml_names(MAPPINGS) if _reads(load_event_mapping(name), records)]
    remedy = (
        f"it can be read with --mapping {' or '.join(names)}" if names else "correct the mapping's paths and [types]"
    )
    return f"the log has the fields {listed(first_object(records))}, which the mapping does not fit; {remedy}"


def _reads(mapping: EventMapping, records: Iterable[Record | Rejected]) -> bool:
    """Returns whether a mapping reads a record as an event of a type that it lists."""
    reader = EventReader(mapping)
    for record in records:
        if isinstance(record, Record):
            list(reader.rows(record))
    return any(map(mapping.kinds_of, reader.words))
