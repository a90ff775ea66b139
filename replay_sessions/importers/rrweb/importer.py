"""The importer `rrweb`: converts recordings of rrweb 2 to sessions.

    shop-r1 import rrweb visit.json --out stores/mine
    shop-r1 import rrweb recordings --purchase-url /thank-you --out stores/mine

Each file has one recording or several. docs/rrweb.md lists the packings and what each event becomes. The page is
rebuilt event by event, and simplified at each act (`importers.rrweb`).
"""

from collections.abc import Iterator
from pathlib import Path

from replay_sessions.foundation.errors import BadSession
from replay_sessions.importers.importer import (
    LONGEST_SESSION_BYTES,
    TOO_LONG,
    Importer,
    Part,
    Read,
    changed_options,
    find_files,
    is_too_long,
)
from replay_sessions.importers.rrweb.events import Unpacker
from replay_sessions.importers.rrweb.packings import Recording, read_recordings
from replay_sessions.importers.rrweb.pages import PageReader
from replay_sessions.importers.rrweb.player import Player
from replay_sessions.importers.rrweb.recorded_sessions import RrwebOptions, read_sessions
from replay_sessions.importers.sources.record_files import Record, read_records
from replay_sessions.simplify import load_recipe
from replay_sessions.store.manifest import Rejected

_TABLES = (".csv", ".tsv", ".csv.gz", ".tsv.gz", ".parquet")
_ENDINGS = (".gz", ".json", ".jsonl", ".ndjson", ".txt", ".rrweb", ".csv", ".tsv", ".parquet")

_HELP = """\
SOURCE is a recording of rrweb 2, or a folder of them: an array of events, JSON lines,
what @rrweb/packer makes of them, PostHog's exports and stored lines, Sentry's segments,
rows of a data base (JSON, CSV, parquet) with a session's id and events; all also .gz.

  shop-r1 import rrweb visit.json --out stores/mine
  shop-r1 import rrweb recordings --purchase-url /thank-you \\
    --idle-minutes 30 --terminate-at-end --out stores/mine
  shop-r1 check stores/mine

A folder's files are recordings of their own.

docs/rrweb.md says what becomes what, and what is refused."""


class RrwebImporter(Importer):
    """An importer of recordings; see the module."""

    Options = RrwebOptions
    name = "rrweb"
    help_text = _HELP

    def __init__(self, source: Path, options: RrwebOptions | None = None) -> None:
        super().__init__(source, options)
        self._files = find_files(source, _ENDINGS, self.warnings, any_file=True)
        self.size = sum(path.stat().st_size for path in self._files)
        self._recipe = load_recipe(self.options.recipe) if self.options.recipe else None
        self.settings |= {name: str(value) for name, value in changed_options(self.options, RrwebOptions).items()}
        self.settings["private_data"] = "none" if self.options.keep_private_data else "patterns"
        if self.options.idle_minutes is None and not self.options.terminate_at_end:
            self.notes.append(
                "no session ends in a terminate: --idle-minutes and --terminate-at-end say where the shopper leaves"
            )
        if self.options.keep_private_data:
            self.notes.append("private data stays in pages, typed text and rationales")

    def split(self) -> Iterator[Part]:
        for path in self._files:
            yield Part(path, path.stat().st_size, path)

    def read(self, source: Path, options: RrwebOptions) -> Iterator[Read]:
        root = self.source.absolute()
        path = source.relative_to(root if root.is_dir() else root.parent)
        name, location = _without_endings(path).as_posix(), path.as_posix()
        unpacker = Unpacker(LONGEST_SESSION_BYTES)
        try:
            if is_too_long(source.stat().st_size):
                raise BadSession(TOO_LONG)
            recordings = read_recordings(
                _content(source), unpacker, session_key=options.session_key, event_path=options.event_path
            )
        except (BadSession, OSError) as error:
            yield Read(rejected=[Rejected(where=location, reason=getattr(error, "strerror", None) or str(error))])
            return
        for number, recording in enumerate(recordings, start=1):
            suffix = f" ({number})" if number > 1 else ""
            try:
                session_id = recording.session_id or f"{name}{suffix}"
                yield from self._play(recording, unpacker, session_id, f"{location}{suffix}")
            except BadSession as error:
                yield Read(rejected=[Rejected(where=f"{location}{suffix}", reason=str(error))])

    def _play(self, recording: Recording, unpacker: Unpacker, session_id: str, location: str) -> Iterator[Read]:
        """Plays a recording and yields its sessions; raises BadSession if it cannot be played."""
        if not recording.has_page():
            raise BadSession("it holds no full snapshot, so no page is known: a piece of a longer recording?")
        options = self.options
        reader = PageReader(
            self._recipe,
            options.purchase_selector,
            private_data=not options.keep_private_data,
        )
        timeline = Player(unpacker, reader, options.idle_minutes).play(recording.in_time_order())
        yield from read_sessions(timeline, options, reader, session_id=session_id, location=location)


def _content(path: Path) -> bytes:
    """Returns the JSON of a file or, if it is a table, of its rows."""
    if not path.name.lower().endswith(_TABLES):
        return path.read_bytes()
    return b"\n".join(record.content for record in read_records(path) if isinstance(record, Record))


def _without_endings(path: Path) -> Path:
    while path.name.lower().endswith(_ENDINGS) and path.stem:
        path = path.with_suffix("")
    return path
