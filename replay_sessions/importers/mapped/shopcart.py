"""Importer `shopcart` reads ShopCART. Its pages are reported to be shifted by one step; Shop-R1's corpus is another.

    shop-r1 import shopcart FOLDER --out STORE                     the audit decides the page offset
    shop-r1 import shopcart FOLDER --page-offset -1 --out STORE    the page offset is -1
    shop-r1 import shopcart FOLDER --mapping my_fields.toml --out STORE

We had no access to the published files. So a mapping, which is easy to replace, has their field names
(mappings/shopcart.toml), and records may be sessions or single actions, in JSON lines or parquet (record_files.py).
Consecutive actions of a session are joined, in the order of their times. Only one session at a time is in memory.

With page offset -1 the first page of a session is unknown, so it is empty. The step is kept, because the next step
shows its action; the first action of a session is not scored.
"""

from collections.abc import Iterable, Iterator
from itertools import groupby, islice
from operator import itemgetter
from pathlib import Path
from typing import Any, Literal

import msgspec

from replay_sessions.foundation.errors import BadSession, ImportFailed
from replay_sessions.foundation.times import in_time_order
from replay_sessions.importers.hub.download import fetch
from replay_sessions.importers.importer import TOO_LONG, Read, SessionRows
from replay_sessions.importers.logged_pages import PageOptions
from replay_sessions.importers.mapped.field_mapping import FieldMapping, load_mapping, paths_of
from replay_sessions.importers.mapped.jsonl import MappedImporter
from replay_sessions.importers.mapped.record_paths import optional_text_at, text_at
from replay_sessions.importers.sources.record_files import Record, first_object, read_records
from replay_sessions.schema import Session
from replay_sessions.store.audit.findings import MOST_SHIFT
from replay_sessions.store.audit.scan import OFFSETS, add_counts, count_matches
from replay_sessions.store.manifest import Rejected
from replay_sessions.store.splits import SPLITS

_PATTERNS = ["*.jsonl", "*.jsonl.gz", "*.parquet"]
_SAMPLE_SESSIONS = 200
_LEAST_SHARE = 0.5  # a lower share means that the mapping is wrong, not that pages are shifted
_OFFSET_NAMES = {-1: "one step earlier", 0: "on their own page", 1: "one step later"}

_HELP = """\
  shop-r1 import shopcart ShopCART --out stores/shopcart
  shop-r1 check stores/shopcart

SOURCE is a file or folder of JSON lines or parquet; a record is a session or an
action. The page of an action may be in its own record (offset 0) or in the record
before (-1). The share of clicked names on these pages decides, and is printed. The
field names are guessed. If yours differ, copy
replay_sessions/importers/mapped/mappings/shopcart.toml, change the paths and give
the copy as --mapping."""


class ShopcartOptions(PageOptions):
    """Options of reading ShopCART.

    Attributes:
        mapping: The mapping of the log's fields: a NAME or a FILE.toml.
        page_offset: The step that has a step's page: the step before (-1), the step itself (0) or the step after (1).
            If None, the grounding audit decides.
        revision: The commit to fetch, if SOURCE is the id of a data set on the hub.
    """

    mapping: str = "shopcart"
    page_offset: Literal[-1, 0, 1] | None = None
    revision: str = "main"


class ShopcartImporter(MappedImporter):
    """Reads ShopCART, or any log with pages that may be shifted (see the module's docstring)."""

    Options = ShopcartOptions
    help_text = _HELP
    _mapping: FieldMapping

    def __init__(self, source: Path, options: ShopcartOptions | None = None) -> None:
        super().__init__(source, options)
        options = self.options
        folder = fetch(source, options.revision, _PATTERNS)
        self._set_files(folder)
        mapping = _shift_pages(load_mapping(options.mapping), 0)
        self._set_mapping(mapping, options)
        offset: int | None = options.page_offset
        if offset is None and self._reading.pages == "raw":
            raise ImportFailed(
                "whose page is whose is decided by names, which raw pages have none of: give --page-offset"
            )
        if offset is None:
            offset, reason = choose_page_offset(self._sample())
            self.notes.append(f"page offset {offset:+d}: {reason}")
        self._set_mapping(_shift_pages(mapping, offset), options)
        self.settings |= {
            "source": folder.name,
            "mapping": options.mapping,
            "page_offset": f"{offset:+d}",
            "page_offset_decided_by": "grounding audit" if self.notes else "the command",
            **self._reading.described(),
        }

    def _records(self, path: Path) -> Iterator[Record | Rejected]:
        return read_sessions(path, self._mapping)

    def read(self, source: Record, options: Any) -> Iterator[Read]:
        split = next((split for split in SPLITS if source.location.startswith(split)), None)  # by the file's name
        for read in super().read(source, options):
            if read.session is not None and read.session.official_split is None:
                read.session = msgspec.structs.replace(read.session, official_split=split)
            yield read

    def _sample(self) -> Iterator[Session]:
        """Yields the first sessions of each file, about _SAMPLE_SESSIONS in all, with page offset 0."""
        per_file = max(1, _SAMPLE_SESSIONS // len(self._files))
        for path in self._files[:_SAMPLE_SESSIONS]:
            records = (record for record in self._records(path) if isinstance(record, Record))
            sessions = (read.session for record in records for read in self.read(record, self.options))
            yield from islice(filter(None, sessions), per_file)


def read_sessions(path: Path, mapping: FieldMapping) -> Iterator[Record | Rejected]:
    """Yields each session of a file as a record; the file's records may be sessions or steps."""
    if mapping.session.steps.partition(".")[0] in first_object(read_records(path)):
        yield from read_records(path)
        return
    for _, group in groupby(_read_steps(path, mapping), key=itemgetter(0)):
        session, first = SessionRows(), None
        for _, record, step in group:
            if isinstance(record, Rejected):
                yield record
                continue
            first, done_bytes = first or record, record.done_bytes
            session.add(step, len(record.content))
        if first is not None and session.is_too_long:
            yield Rejected(where=first.location, reason=TOO_LONG)
        elif first is not None:
            yield Record(first.location, msgspec.json.encode(_join_steps(session.rows, mapping)), done_bytes)


def _read_steps(path: Path, mapping: FieldMapping) -> Iterator[tuple[str | None, Record | Rejected, Any]]:
    """Yields records that are steps, with the ids of their sessions; a rejected record has that of the step before."""
    session_id = None
    for record in read_records(path):
        step = None
        if isinstance(record, Record):
            try:
                step = record.decode()
                session_id = text_at(step, mapping.session.session_id)
            except BadSession as error:
                record = Rejected(where=record.location, reason=str(error))
        yield session_id, record, step


def _join_steps(steps: list[dict[str, Any]], mapping: FieldMapping) -> dict[str, Any]:
    """Joins the records of steps to the record of a session; its session fields come from the first step in time."""
    ordered = in_time_order(steps, lambda step: optional_text_at(step, mapping.step.timestamp))
    session_keys, step_keys = (
        {path.partition(".")[0] for path in paths_of(fields)} for fields in (mapping.session, mapping.step)
    )
    session = {key: value for key, value in ordered[0].items() if key in session_keys}
    *outer, last = mapping.session.steps.split(".")
    inner = session
    for key in outer:
        inner = inner.setdefault(key, {})
    inner[last] = [
        {key: value for key, value in step.items() if key in step_keys or key not in session_keys} for step in ordered
    ]
    return session


def choose_page_offset(sample: Iterable[Session]) -> tuple[int, str]:
    """Returns the page offset that explains the logged targets of sessions, and the evidence in words.

    A log may have the page that an action led to beside the action. Then the clicked name is on the page of the step
    before (offset -1), and seldom on the page of the step itself; for ShopCART 92% against 18% are reported. Offset 0
    is chosen unless another offset explains more targets by a margin of over MOST_SHIFT.

    Args:
        sample: Sessions that were read with page offset 0.

    Raises:
        ImportFailed: No offset explains enough targets.
    """
    matches = [count_matches(session) for session in sample]
    if not matches:
        return 0, "no session could be read"
    counts = dict.fromkeys(OFFSETS, (0, 0))
    counts |= add_counts((offset, count) for steps in matches for (_, offset), count in steps.items())
    shares = {offset: hits / max(1, targets) for offset, (hits, targets) in counts.items()}
    ranked = sorted(OFFSETS, key=lambda offset: -shares[offset])
    evidence = f"of {counts[0][1]:,} targets in the first {len(matches):,} sessions " + ", ".join(
        f"{shares[offset]:.0%} stand {_OFFSET_NAMES[offset]}" for offset in ranked
    )
    best = 0 if shares[0] + MOST_SHIFT >= shares[ranked[0]] else ranked[0]
    if shares[best] < _LEAST_SHARE:
        raise ImportFailed(
            f"the page offset cannot be decided: {evidence}; give --page-offset, or mend the field mapping"
        )
    return best, f"{evidence}; --page-offset says otherwise"


def _shift_pages(mapping: FieldMapping, offset: int) -> FieldMapping:
    return msgspec.structs.replace(mapping, page=msgspec.structs.replace(mapping.page, offset=offset))
