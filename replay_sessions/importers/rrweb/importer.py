"""Importer `rrweb`: recordings of rrweb 2 become sessions.

    python -m replay_sessions import rrweb visit.json --out stores/mine
    python -m replay_sessions import rrweb recordings --purchase-url /thank-you --out stores/mine

Each file is a recording, or holds several; docs/rrweb.md lists the packings and what becomes what. The page is rebuilt
event by event and simplified where something is done (`importers.rrweb`).
"""

from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

from replay_sessions.foundation.errors import BadConfig, BadSession
from replay_sessions.importers.importer import (
    Imported,
    Importer,
    Part,
    changed_options,
    find_files,
    listed,
    too_long,
)
from replay_sessions.importers.rrweb.events import Unpacker
from replay_sessions.importers.rrweb.packings import Recording, joined, recordings_in
from replay_sessions.importers.rrweb.pages import PageReader
from replay_sessions.importers.rrweb.player import Player
from replay_sessions.importers.rrweb.recorded_sessions import Leaving, RrwebOptions, read_sessions
from replay_sessions.simplify import load_recipe
from replay_sessions.store.manifest import Rejected

_ENDINGS = (".gz", ".json", ".jsonl", ".ndjson", ".txt", ".rrweb")

_HELP = """\
SOURCE is a recording of rrweb 2, or a folder of them: an array of events, JSON lines,
what @rrweb/packer makes of them, PostHog's exports and stored lines, Sentry's segments;
all also .gz.

  python -m replay_sessions import rrweb visit.json --out stores/mine
  python -m replay_sessions import rrweb recordings --purchase-url /thank-you \\
    --idle-minutes 30 --terminate-at-end --out stores/mine
  python -m replay_sessions check stores/mine

A folder's files are recordings of their own; with --pieces all files that lie in one
folder are one recording, in the order of their names.

docs/rrweb.md says what becomes what, and what is refused."""


class RrwebImporter(Importer):
    """Reads recordings; see the module."""

    Options = RrwebOptions
    help_text = _HELP

    def __init__(self, source: Path, options: RrwebOptions | None = None) -> None:
        super().__init__(source, options)
        options = self.options
        if not 0 <= options.max_masked <= 1:
            raise BadConfig(f"--max-masked is {options.max_masked:g}, and a share from 0 to 1 was expected")
        self._root = source.absolute() if source.is_dir() else source.absolute().parent
        endings = ", ".join(_ENDINGS)
        empty = f"'{source}' holds no file that ends in {endings}"
        missing = f"there is no file or folder '{source}', and a recording or a folder of them was expected"
        self._files = find_files(source, _ENDINGS, empty, missing, any_file=True)
        self.size = sum(path.stat().st_size for path in self._files)
        self._recipe = load_recipe(options.recipe) if options.recipe else None
        leaving = changed_options(options, Leaving)
        self.name = "rrweb"
        self.settings |= {
            "recipe": options.recipe or "by site",
            "private_data": "kept" if options.keep_private_data else "removed",
            "pieces": str(options.pieces).lower(),
            "max_masked": f"{options.max_masked:g}",
            **{name: str(value) for name, value in leaving.items()},
        }
        if source.is_dir():
            files = (
                path for path in sorted(source.absolute().rglob("*")) if path.is_file() and path not in self._files
            )
            others = [path.name for path in files if not path.name.startswith(".")]
            if others:
                self.notes.append(f"files that end in none of {endings} are passed over: {listed(others)}")
        if not leaving:
            self.notes.append(
                "no session ends in a terminate: --purchase-selector, --purchase-url, --leave-selector, --leave-url, "
                "--idle-minutes and --terminate-at-end say where sessions end"
            )
        if options.keep_private_data:
            self.notes.append("private data stays in pages, typed text and rationales")

    def split(self) -> Iterator[Part | Rejected]:
        recordings = [[path] for path in self._files]
        if self.options.pieces:
            recordings = [list(group) for _, group in groupby(self._files, key=lambda path: path.parent)]
        for files in recordings:
            yield Part(files, sum(path.stat().st_size for path in files), files[0])

    def read(self, source: list[Path], options: RrwebOptions) -> Iterator[Imported]:
        files, has_pieces = source, options.pieces
        path = files[0].relative_to(self._root)
        name = (path.parent if has_pieces and path.parent.name else _without_endings(path)).as_posix()
        location = f"{path.parent.as_posix()}/" if has_pieces else path.as_posix()
        unpacker = Unpacker(self.longest_session_bytes)
        try:
            if sum(path.stat().st_size for path in files) > self.longest_session_bytes:
                raise BadSession(too_long(self.longest_session_bytes))
            recordings = [item for path in files for item in recordings_in(path.read_bytes(), unpacker)]
        except (BadSession, OSError) as error:
            yield Rejected(where=location, reason=getattr(error, "strerror", None) or str(error))
            return
        if len(files) > 1:
            recordings = [joined(recordings)]
        for number, recording in enumerate(recordings, start=1):
            suffix = f" ({number})" if number > 1 else ""
            try:
                yield from self._play(recording, unpacker, f"{name}{suffix}", f"{location}{suffix}")
            except BadSession as error:
                yield Rejected(where=f"{location}{suffix}", reason=str(error))

    def _play(self, recording: Recording, unpacker: Unpacker, session_id: str, location: str) -> Iterator[Imported]:
        """The sessions of one recording, or BadSession where it cannot be played."""
        if not recording.has_page():
            raise BadSession(
                "it holds no full snapshot, so no page is known: a piece of a longer recording? (--pieces)"
            )
        options = self.options
        reader = PageReader(
            self._recipe,
            options.selectors,
            private_data=not options.keep_private_data,
            longest=self.longest_session_bytes,
        )
        timeline = Player(unpacker, reader, options.idle_minutes).play(recording.in_time_order())
        yield from read_sessions(
            timeline,
            options,
            reader,
            session_id=session_id,
            location=location,
            longest_bytes=self.longest_session_bytes,
        )


def _without_endings(path: Path) -> Path:
    while path.name.endswith(_ENDINGS) and path.stem:
        path = path.with_suffix("")
    return path
