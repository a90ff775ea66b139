"""The base class of importers, which read sessions from a source.

    read(source, options) -> a Read for each session: the session, and all that was rejected, left out or changed in it

An importer needs nothing else. If reading takes long, `split` cuts the source into parts, and `read` gets the content
of each part, in this process, in others or on other machines, in any order (running/). Importers and parts must
therefore be picklable.

A new importer is a class with `read` and, if it has flags, `Options`. It is registered in IMPORTERS and _CLASSES. A
user's own importer is named as "module:Class" or "file.py:Class".
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar

import msgspec

from replay_sessions.foundation.durable_files import check_name
from replay_sessions.foundation.errors import ImportFailed
from replay_sessions.foundation.plugins import error_with_line, load_own
from replay_sessions.foundation.records import Record
from replay_sessions.schema import Session
from replay_sessions.store.manifest import Rejected

IMPORTERS = {
    "jsonl": "JSON lines: our own sessions, or another log (MiniWoB++, AutoWebBench, WebShop, yours) by a mapping.",
    "opera": "OPeRA, people shopping on Amazon: a local copy of its parquet files, or the hub id NEU-HAI/OPeRA.",
    "shopcart": "ShopCART, or any records whose pages may be shifted by a step.",
    "raw": "A shop's own log: a folder of raw HTML pages and a table of what was done on them.",
    "events": "E-commerce events without pages (GA4, Universal Analytics, clicks): pages are rendered from them.",
    "rrweb": "Recordings of rrweb 2, also as PostHog and Sentry keep them: the page is rebuilt event by event.",
    "hub": "A folder that `export hub` wrote, or a data set of the hub made so.",
}


_CLASSES = {
    "jsonl": "mapped.jsonl:JsonlImporter",
    "opera": "opera.importer:OperaImporter",
    "shopcart": "mapped.shopcart:ShopcartImporter",
    "raw": "raw.importer:RawImporter",
    "events": "events.importer:EventsImporter",
    "rrweb": "rrweb.importer:RrwebImporter",
    "hub": "hub.importer:HubImporter",
}


def importer_class(name: str) -> "type[Importer]":
    """Returns the importer of a name of IMPORTERS, or a user's own of "module:Class" or "file.py:Class".

    Each importer is imported alone, because their libraries take time to load.

    Raises:
        ImportFailed: A user's own importer cannot be loaded.
    """
    if ":" in name:
        try:
            importer_of_user: type[Importer] = load_own(name, importable=True)
            return importer_of_user
        except Exception as error:
            raise ImportFailed(f"importer {name!r} cannot be loaded: {error_with_line(error)}") from error
    module, _, kind = _CLASSES[name].partition(":")
    importer: type[Importer] = getattr(import_module(f"{__package__}.{module}"), kind)
    return importer


class Read(msgspec.Struct):
    """Holds all that was read of a session of the log, or of records that belong to no session.

    Attributes:
        session: The session. If None, there is none, or it could not be read.
        is_marked: Whether the values on the session's pages that look private by their form are only marked
            (private_data/removal.py); `Cleaner` removes them.
        rejected: The records that could not be read, in order.
        left_out: The types of the logged events that are no action of the schema.
        trimmed_texts: Number of typed texts that lost the blanks at their ends.
        changed_values: A line for each logged value that the store has otherwise, the same for all such values.
    """

    session: Session | None = None
    is_marked: bool = False
    rejected: list[Rejected] = []
    left_out: list[str] = []
    trimmed_texts: int = 0
    changed_values: list[str] = []

    def reject(self, where: str, reason: str) -> None:
        """Adds a rejected record."""
        self.rejected.append(Rejected(where=where, reason=reason))


class Part(msgspec.Struct, frozen=True):
    """A part of a source.

    Attributes:
        content: The argument of `Importer.read`.
        size: The share of the source, in the unit of `Importer.size`.
        file: The file that the part belongs to. If None, it is the source itself.
    """

    content: Any
    size: int = 0
    file: Path | None = None


class NoOptions(Record):
    """The options of an importer without options."""


class Importer(ABC):
    """An importer of one source.

    Args:
        source: The user's source: a file, a folder or an id of the hub.
        options: An instance of `Options`. If None, its defaults.

    Attributes:
        Options: The importer's own flags, each with a default and a description.
        help_text: The text that `help` returns by default: the form of a source, and examples.
        name: Origin of the sessions, for the manifest; "" stands for the class's name.
        settings: Options of the reading, for the manifest.
        notes: Lines for the user before reading, such as a choice that was guessed.
        report: Lines for the user after all is read.
        warnings: Doubts about the data, complete after all is read; the store keeps them.
        size: Size of the source in units of `Part.size`; None if unknown.
        batch_size: Parts are read together up to this size, so that shared pages stay cached and processes exchange
            data less often.
    """

    Options: ClassVar[type[msgspec.Struct]] = NoOptions
    help_text: ClassVar[str] = ""
    name: str = ""
    batch_size: ClassVar[int] = 4 << 20

    def __init__(self, source: Path, options: Any = None) -> None:
        self.source = source
        self.options: Any = self.Options() if options is None else options
        self.name = self.name or type(self).__name__
        self.settings = {"source": source.name}
        self.size: int | None = None
        self.notes: list[str] = []
        self.report: list[str] = []
        self.warnings: list[str] = []

    def __getstate__(self) -> dict[str, Any]:
        """Returns the state to pickle: without cached pages and the table, because parts contain the table's rows."""
        return {name: value for name, value in self.__dict__.items() if name not in ("_table", "_pages")}

    @classmethod
    def help(cls) -> str:
        """Returns the text of `--help` besides the summary and the options."""
        return cls.help_text

    def split(self) -> Iterator[Part | Read]:
        """Cuts the source into parts, and yields records that belong to no part; by default, the source is one part."""
        yield Part(self.source)

    @abstractmethod
    def read(self, source: Any, options: Any) -> Iterator[Read | Session | Rejected]:
        """Reads the source, or the content of a part.

        A Session alone stands for a Read of it, and a Rejected alone for a record without a session.
        """


# A session is held in memory. A longer one is a crawler's, or of a log with ids that do not separate visits: a session
# of 30 pages of OPeRA's longest takes 20 MB.
LONGEST_SESSION_BYTES = 256 << 20
TOO_LONG = f"the session is longer than {LONGEST_SESSION_BYTES >> 20} MiB"


def is_too_long(size_bytes: int) -> bool:
    return size_bytes > LONGEST_SESSION_BYTES


class SessionRows:
    """The rows of a session in the order of arrival; if the session is too long, only its length."""

    def __init__(self) -> None:
        self.rows: list[dict[str, Any]] = []
        self.size_bytes = 0

    @property
    def is_too_long(self) -> bool:
        return is_too_long(self.size_bytes)

    def add(self, row: dict[str, Any], size_bytes: int) -> None:
        self.size_bytes += size_bytes
        if self.is_too_long:
            self.rows.clear()
        else:
            self.rows.append(row)


def find_files(source: Path, endings: tuple[str, ...], warnings: list[str], *, any_file: bool = False) -> list[Path]:
    """Returns the files of a source with one of the endings: the source itself, or all such files in a folder, sorted.

    Args:
        warnings: List to which a line about the folder's other files is added.
        any_file: Whether a source that is a file may have any ending.

    Raises:
        ImportFailed: The source has no such file.
    """
    if not source.exists():
        raise ImportFailed(f"there is no file or folder '{source}'")
    is_folder = source.is_dir()
    paths = sorted(filter(Path.is_file, source.absolute().rglob("*"))) if is_folder else [source.absolute()]
    files = [path for path in paths if path.name.lower().endswith(endings) or (any_file and not is_folder)]
    if not files:
        raise ImportFailed(f"'{source}' is no file, and holds none, that ends in {', '.join(endings)}")
    for path in files:
        check_name(path)
    others = sorted(path.name for path in set(paths).difference(files) if not path.name.startswith("."))
    if others:
        endings_text = ", ".join(endings)
        warnings.append(f"{len(others):,} files end in none of {endings_text} and are passed over: {listed(others)}")
    return files


def changed_options(options: msgspec.Struct, kind: type[msgspec.Struct]) -> dict[str, Any]:
    """Returns the options of class `kind` that differ from its defaults."""
    defaults = msgspec.structs.asdict(kind())
    return {name: value for name, default in defaults.items() if (value := getattr(options, name)) != default}


def reason_of(error: Exception) -> str:
    """Returns an error's message on one line, because a quoted text of a log may contain line breaks."""
    return " ".join(str(error).split()) or type(error).__name__


def listed(names: Iterable[str]) -> str:
    r"""Returns the first names in quotes, each cut to a readable length.

    >>> listed(["id", "two\nlines"])
    "'id', 'two\\nlines'"
    """
    return ", ".join(repr(name[:60]) for name in list(names)[:12])
