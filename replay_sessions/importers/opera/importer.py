"""Importer `opera`: OPeRA (arXiv 2506.05606), people shopping on Amazon, from a local copy or the hub.

    python -m replay_sessions import opera OPeRA --out STORE                         the filtered version
    python -m replay_sessions import opera OPeRA --version full --split-by official --out STORE
    python -m replay_sessions import opera NEU-HAI/OPeRA --out STORE                 fetched, at a pinned revision

Users, sessions and actions are joined: opera_files.py finds the rows of each session, opera_personas.py makes personas
of surveys and interviews, opera_steps.py makes steps. The official splits stand in every session, and `--split-by
official` uses them: their sessions are disjoint, their users are not (12 of the 15 test users are in train as well), so
the default splits by user.
"""

from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar, Self

import msgspec

from replay_sessions.errors import ImportFailed
from replay_sessions.hub.download import download, how_to_fetch, is_hub_id
from replay_sessions.importers.importer import Imported, Importer, Part, state_of_files
from replay_sessions.importers.opera.files import (
    OperaVersion,
    RowGroup,
    SessionPlace,
    find_files,
    find_sessions,
    read_table,
)
from replay_sessions.importers.opera.personas import USER_COLUMNS, personas
from replay_sessions.importers.opera.steps import ACTION_COLUMNS, ActionRow, steps_of
from replay_sessions.importers.page_reading import (
    AS_LOGGED,
    PageReading,
    as_stored,
    reading_of,
)
from replay_sessions.importers.sources.parquet import ParquetSource
from replay_sessions.importers.sources.session_rows import SessionRows, too_long
from replay_sessions.schema import Persona, Session
from replay_sessions.store.manifest import SetAside

__all__ = ["HUB_ID", "REVISION", "OperaImporter"]

HUB_ID = "NEU-HAI/OPeRA"
REVISION = "6f26a2c5cc69084f1714e39db9776e61791344d6"  # as others cite it; this project could not fetch it itself
_PART_ROWS = 256  # pages are 100 kB in the middle and 600 kB at most

_HELP = f"""\
  python -m replay_sessions import opera OPeRA --out stores/opera
  python -m replay_sessions import opera {HUB_ID} --out stores/opera

SOURCE is a folder in OPeRA's own layout, OPeRA_filtered/action/train-*.parquet and so
on, or its id on the hub, which needs pip install 'shop-r1[hub]' and a network. Where
there is none, fetch it elsewhere and copy the folder:

  hf download {HUB_ID} --repo-type dataset --local-dir OPeRA \\
    --revision {REVISION} \\
    --include 'OPeRA_filtered/*/*.parquet'"""


class _Sessions(msgspec.Struct, frozen=True):
    """Sessions to read together, the personas of their users, and what was found to be no session."""

    places: list[SessionPlace]
    personas: dict[str, Persona]
    set_aside: list[SetAside]


class OperaOptions(PageReading, frozen=True, kw_only=True):
    """How OPeRA is read.

    Attributes:
        version: full also logs scrolling, navigation and tabs: left out, counted, and told by Step.gap.
        no_interviews: Make personas of the surveys alone, even where there are interviews.
        revision: The commit of the hub's data.
    """

    version: OperaVersion = "filtered"
    no_interviews: bool = False
    revision: str = REVISION


class OperaImporter(Importer):
    """Reads OPeRA; see the module."""

    Options: ClassVar[type[msgspec.Struct]] = OperaOptions

    def __init__(
        self,
        folder: Path,
        version: OperaVersion = "filtered",
        *,
        interviews: bool = True,
        revision: str = REVISION,
        reading: PageReading = AS_LOGGED,
    ) -> None:
        self.source = "opera"
        self.options = {"version": version, "interviews": str(interviews).lower(), **reading.told()}
        self._recipe_rules = reading.rules()
        self._reading = reading
        self.notes = []
        self._interviews = interviews
        by_hand = how_to_fetch(HUB_ID, revision, _patterns(version), "opera")
        if is_hub_id(folder):
            folder = download(folder.as_posix(), revision=revision, patterns=_patterns(version), importer="opera")
            self.options["revision"] = folder.name
        elif not folder.is_dir():
            raise ImportFailed(f"there is no folder '{folder}', and a copy of OPeRA was expected; {by_hand}")
        self._files = find_files(folder.absolute(), version, by_hand)  # other machines read it too
        self.size = self._files.action_bytes
        if not self._files.users:
            self.notes.append("no user table was found: sessions come without personas")
        if not self._files.sessions:
            self.notes.append("no session table was found: users are read from the sessions' ids")

    @classmethod
    def from_options(cls, source: Path, options: OperaOptions) -> Self:
        return cls(
            source,
            options.version,
            interviews=not options.no_interviews,
            revision=options.revision,
            reading=reading_of(options),
        )

    @classmethod
    def help(cls) -> str:
        return _HELP

    def state(self) -> str:
        return state_of_files(self._files.all())

    def rules(self) -> Any:
        return self._recipe_rules

    def parts(self) -> Iterator[Part]:
        people = personas(read_table(self._files.users, USER_COLUMNS), interviews=self._interviews)
        places, set_aside = find_sessions(self._files)
        total = sum(place.rows for place in places) or 1
        for batch in _batches(places):
            rows = sum(place.rows for place in batch)
            mine = {place.user_id: people[place.user_id] for place in batch if place.user_id in people}
            yield Part(content=_Sessions(batch, mine, []), size=self._files.action_bytes * rows // total)
        if set_aside:
            yield Part(content=_Sessions([], {}, set_aside), size=0)

    def read(self, part: Part) -> Iterator[Imported]:
        content: _Sessions = part.content
        yield from content.set_aside
        rows = _read_rows(content.places, self.longest_session_bytes)
        for place in content.places:
            mine = rows[place.split, place.session_id]
            if mine.is_too_long:
                yield SetAside(where=place.session_id, reason=too_long(self.longest_session_bytes))
                continue
            steps, left_out = steps_of(mine.rows)
            yield from left_out
            if not steps:
                types = ", ".join(sorted({event.action_type for event in left_out}))
                yield SetAside(where=place.session_id, reason=f"no step is an action of ours (only {types})")
                continue
            session = Session(
                session_id=place.session_id,
                user_id=place.user_id,
                persona=content.personas.get(place.user_id),
                official_split=place.split,
                steps=tuple(steps),
                source=self.source,
            )
            yield from as_stored(session, self._reading, place.session_id)


def _patterns(version: OperaVersion) -> list[str]:
    """The files of a version without its screenshots, which are tens of gigabytes."""
    return [f"OPeRA_{version}/{table}/*" for table in ("action", "session", "user")]


def _batches(places: list[SessionPlace]) -> Iterator[list[SessionPlace]]:
    batch: list[SessionPlace] = []
    rows = 0
    for place in places:
        if batch and rows + place.rows > _PART_ROWS:
            yield batch
            batch, rows = [], 0
        batch.append(place)
        rows += place.rows
    if batch:
        yield batch


def _read_rows(places: list[SessionPlace], longest_bytes: int) -> dict[tuple[str, str], SessionRows[ActionRow]]:
    """The action rows of some sessions by split and session, in the order of the files."""
    wanted: defaultdict[RowGroup, set[tuple[str, str]]] = defaultdict(set)
    for place in places:
        for group in place.row_groups:
            wanted[group].add((place.split, place.session_id))
    rows: defaultdict[tuple[str, str], SessionRows[ActionRow]] = defaultdict(lambda: SessionRows(longest_bytes))
    for group, sessions in sorted(wanted.items(), key=lambda item: item[0]):
        split = next(iter(sessions))[0]
        for row in _rows_of(group, {session_id for _, session_id in sessions}):
            size_bytes = sum(len(text) for text in row.values() if text)
            rows[split, row["session_id"] or ""].add(row, size_bytes)
    return rows


def _rows_of(group: RowGroup, session_ids: set[str]) -> Iterator[ActionRow]:
    for row in ParquetSource(group.file).rows(ACTION_COLUMNS, [group.number]):
        told = {name: None if value is None else str(value) for name, value in row.items()}
        if told["session_id"] in session_ids:
            yield told
