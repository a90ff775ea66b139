"""Importer `rrweb`: recordings of rrweb 2 become sessions.

    python -m replay_sessions import rrweb visit.json --out stores/mine
    python -m replay_sessions import rrweb recordings --purchase-url /thank-you --out stores/mine

Each file is a recording, or holds several; docs/rrweb.md tells the packings, and what becomes what. The page is rebuilt
event by event and simplified where something is done (`importers.rrweb`).
"""

from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar, Self

import msgspec

from replay_sessions.errors import BadConfig, BadSession, ImportFailed
from replay_sessions.garbage_collection import paused_collection
from replay_sessions.importers.importer import Imported, Importer, Part, state_of_files
from replay_sessions.importers.rrweb.events import Unpacker
from replay_sessions.importers.rrweb.packings import Recording, recordings_in
from replay_sessions.importers.rrweb.page_helpers import PageHelpers
from replay_sessions.importers.rrweb.player import Player
from replay_sessions.importers.rrweb.recorded_sessions import Leaving, SessionReader
from replay_sessions.importers.rrweb.settled_pages import Settler
from replay_sessions.importers.sources.field_names import listed
from replay_sessions.importers.sources.session_rows import too_long
from replay_sessions.simplify import load_recipe
from replay_sessions.simplify.recipes import Rule
from replay_sessions.store.file_names import check_name
from replay_sessions.store.manifest import SetAside

__all__ = ["RrwebImporter"]

_ENDINGS = (".gz", ".json", ".jsonl", ".ndjson", ".txt", ".rrweb")
_PART_BYTES = 16 << 20
_WORTH_HELPERS_BYTES = 8 << 20  # a process takes a second to start

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


class RrwebOptions(Leaving, frozen=True, kw_only=True):
    """How recordings are read.

    Attributes:
        recipe: How the site's pages are simplified, a NAME or a FILE; None: it is found by the site.
        pieces: The files in one folder are pieces of one recording.
        max_masked: Recordings of whose pages a larger share is masked (***) are set aside.
        keep_private_data: Do not take names, addresses and numbers out.
    """

    recipe: str | None = None
    pieces: bool = False
    max_masked: float = 0.5
    keep_private_data: bool = False


class _Files(msgspec.Struct, frozen=True):
    """Recordings to read: the files of each."""

    recordings: list[list[Path]]


class RrwebImporter(Importer):
    """Reads recordings; see the module."""

    Options: ClassVar[type[msgspec.Struct]] = RrwebOptions

    def __init__(self, source: Path, options: RrwebOptions) -> None:
        self.source = "rrweb"
        self.notes = []
        options.check()
        if not 0 <= options.max_masked <= 1:
            raise BadConfig(f"--max-masked is {options.max_masked:g}, and a share from 0 to 1 was expected")
        self._options = options
        self._root = source.absolute() if source.is_dir() else source.absolute().parent
        self._files, others = _files_of(source)
        if others:
            self.notes.append(f"files that end in none of {', '.join(_ENDINGS)} are passed over: {listed(others)}")
        self.size = sum(path.stat().st_size for path in self._files)
        self._recipe = load_recipe(options.recipe) if options.recipe else None
        self._private_data = not options.keep_private_data
        self.options = {
            "source": source.name,
            "recipe": options.recipe or "by site",
            "private_data": "removed" if self._private_data else "kept",
            "pieces": str(options.pieces).lower(),
            "max_masked": f"{options.max_masked:g}",
            **_leaving_of(options).told(),
        }
        if not _leaving_of(options).told():
            self.notes.append(
                "no session ends in a terminate: --purchase-selector, --purchase-url, --leave-selector, --leave-url, "
                "--idle-minutes and --terminate-at-end say where sessions end"
            )
        if not self._private_data:
            self.notes.append("private data stays in pages, typed text and rationales")

    @classmethod
    def from_options(cls, source: Path, options: RrwebOptions) -> Self:
        return cls(source, options)

    @classmethod
    def help(cls) -> str:
        return _HELP

    def state(self) -> str:
        return state_of_files(self._files)

    def rules(self) -> tuple[Rule, ...] | None:
        return self._recipe.rules if self._recipe else None

    def parts(self) -> Iterator[Part]:
        batch: list[list[Path]] = []
        size = 0
        for files in self._recordings():
            batch.append(files)
            size += sum(path.stat().st_size for path in files)
            if size >= _PART_BYTES:
                yield Part(content=_Files(batch), size=size)
                batch, size = [], 0
        if batch:
            yield Part(content=_Files(batch), size=size)

    def read(self, part: Part) -> Iterator[Imported]:
        content: _Files = part.content
        helpers = self.helpers if part.size >= _WORTH_HELPERS_BYTES else 0
        selectors = self._options.selectors
        with PageHelpers(self._recipe, selectors, private_data=self._private_data, helpers=helpers) as pages:
            for files in content.recordings:
                yield from self._read(files, pages)

    def _recordings(self) -> Iterator[list[Path]]:
        if not self._options.pieces:
            yield from ([path] for path in self._files)
            return
        folders: dict[Path, list[Path]] = {}
        for path in self._files:
            folders.setdefault(path.parent, []).append(path)
        yield from folders.values()

    def _read(self, files: list[Path], pages: PageHelpers) -> Iterator[Imported]:
        shown = files[0].relative_to(self._root)
        name = (shown.parent if self._options.pieces and shown.parent.name else _without_endings(shown)).as_posix()
        where = shown.as_posix() if not self._options.pieces else f"{shown.parent.as_posix()}/"
        unpacker = Unpacker(self.longest_session_bytes)
        try:
            recordings = self._unpacked(files, unpacker)
        except (BadSession, OSError) as error:
            yield SetAside(where=where, reason=getattr(error, "strerror", None) or str(error))
            return
        for number, recording in enumerate(recordings, start=1):
            several = f" ({number})" if number > 1 else ""
            yield from self._played(recording, unpacker, pages, f"{name}{several}", f"{where}{several}")

    def _unpacked(self, files: list[Path], unpacker: Unpacker) -> list[Recording]:
        """The recordings of one file, or the one of several.

        Raises:
            BadSession: They hold no event, or are too long.
        """
        if sum(path.stat().st_size for path in files) > self.longest_session_bytes:
            raise BadSession(too_long(self.longest_session_bytes))
        with paused_collection():
            read = [recordings_in(path.read_bytes(), unpacker) for path in files]
        if len(read) == 1:
            return read[0]
        return [Recording([event for recordings in read for recording in recordings for event in recording.events])]

    def _played(
        self, recording: Recording, unpacker: Unpacker, pages: PageHelpers, name: str, where: str
    ) -> Iterator[Imported]:
        if not recording.has_page():
            reason = "it holds no full snapshot, so no page is known: a piece of a longer recording? (--pieces)"
            yield SetAside(where=where, reason=reason)
            return
        minutes = self._options.idle_minutes
        settle = Settler(pages, self.longest_session_bytes)
        reader = SessionReader(
            _leaving_of(self._options),
            settle.page,
            max_masked=self._options.max_masked,
            private_data=self._private_data,
            source=self.source,
            longest_bytes=self.longest_session_bytes,
        )
        try:
            player = Player(unpacker, settle.begin, minutes * 60 if minutes is not None else None)
            try:
                with paused_collection():
                    timeline = player.play(recording.in_time_order())
            except BadSession:
                settle.finish()  # where pages before that are too long, this is the reason, as without helpers
                raise
            yield from reader.read(settle.finish(timeline), name, where)
        except BadSession as error:
            yield SetAside(where=where, reason=str(error))


def _leaving_of(options: Leaving) -> Leaving:
    return Leaving(**{name: getattr(options, name) for name in Leaving.__struct_fields__})


def _files_of(source: Path) -> tuple[list[Path], list[str]]:
    """The files of a source, in the order of their paths, and the names of those that are no recordings.

    Raises:
        ImportFailed: There are none.
    """
    if source.is_file():
        found, others = [source.absolute()], []
    elif source.is_dir():
        files = sorted(path for path in source.absolute().rglob("*") if path.is_file())
        found = [path for path in files if path.name.endswith(_ENDINGS)]
        others = [path.name for path in files if not path.name.endswith(_ENDINGS) and path.name[0] != "."]
    else:
        raise ImportFailed(f"there is no file or folder '{source}', and a recording or a folder of them was expected")
    if not found:
        raise ImportFailed(f"'{source}' holds no file that ends in {', '.join(_ENDINGS)}")
    for path in found:
        check_name(path)
    return found, others


def _without_endings(path: Path) -> Path:
    while path.name.endswith(_ENDINGS) and path.stem:
        path = path.with_suffix("")
    return path
