"""What every importer is: it reads sessions out of a source.

    read(source, options) -> sessions, rejected records, counts of events that are no action

That is all an importer needs. Where reading takes long, `split` cuts the source into parts, and `read` gets the content
of each: here, in other processes or on other machines, in any order (running/). So importers and parts must pickle.

A new importer is a class with `read` and, where it has any, `Options`. It is named in IMPORTERS and _CLASSES, or by
"module:Class" or "file.py:Class" where it is a user's own.
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
from replay_sessions.schema import Session, Step
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
    """Returns the importer of a name of IMPORTERS; each is imported alone, since their libraries take time to start.

    Raises:
        ImportFailed: A user's own cannot be loaded.
    """
    if ":" in name:
        try:
            own: type[Importer] = load_own(name, importable=True)
            return own
        except Exception as error:
            raise ImportFailed(f"importer {name!r} cannot be loaded: {error_with_line(error)}") from error
    module, _, kind = _CLASSES[name].partition(":")
    importer: type[Importer] = getattr(import_module(f"{__package__}.{module}"), kind)
    return importer


class LeftOut(Record):
    """A logged event that is no action of the schema."""

    action_type: str


class TrimmedText(msgspec.Struct, frozen=True):
    """A typed text lost the blanks at its ends."""


class MarkedSteps(msgspec.Struct, frozen=True):
    """The steps of the session that comes next, their pages with what is private by its form, marked.

    Attributes:
        user_id: "" where the log has none; of such sessions several may be the same person's.
    """

    user_id: str
    steps: tuple[Step, ...]


Settled = Session | Rejected | LeftOut | TrimmedText
Imported = Settled | MarkedSteps


class Part(msgspec.Struct, frozen=True):
    """A piece of a source.

    Attributes:
        content: What `Importer.read` gets.
        size: How much of the source it is, in the unit of `Importer.size`.
        file: The file that it is of; None: the source itself.
    """

    content: Any
    size: int = 0
    file: Path | None = None


class NoOptions(Record):
    """Of an importer that has none of its own."""


class Importer(ABC):
    """Reads one source.

    Args:
        source: What the user named: a file, a folder or an id of the hub.
        options: Of the class `Options`; None: its defaults.

    Attributes:
        Options: The importer's own flags, each with a default, and what they mean.
        help_text: What `--help` says beside the summary and the options: what a source looks like, and examples.
        name: What the sessions come from (manifest); "": the class's name.
        settings: How they are read (manifest).
        notes: What to tell the user before reading, such as a choice that was guessed.
        report: What to tell the user when all is read, in lines.
        warnings: What is doubtful about it, once all is read; the store keeps them.
        size: The size of the source in units of `Part.size`; None where it is not known.
        batch_size: Parts are read together up to this size: pages that they share are kept, and processes are handed
            less often.
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
        """An importer as other processes get it: without cached pages and its table, whose rows come with parts."""
        return {name: value for name, value in self.__dict__.items() if name not in ("_table", "_pages")}

    @classmethod
    def help(cls) -> str:
        return cls.help_text

    def split(self) -> Iterator[Part | Rejected | LeftOut]:
        """Cuts the source into parts, and says what of it is none; here it is a part as a whole."""
        yield Part(self.source)

    @abstractmethod
    def read(self, source: Any, options: Any) -> Iterator[Imported]:
        """Reads the source, or the content of a part of it: sessions, what was rejected and left out, in order."""


# A session is held in memory. One that is longer is a crawler's, or of a log whose ids do not separate visits: a
# session of 30 pages of OPeRA's longest takes 20 MB.
LONGEST_SESSION_BYTES = 256 << 20
TOO_LONG = f"the session is longer than {LONGEST_SESSION_BYTES >> 20} MiB"


def is_too_long(size_bytes: int) -> bool:
    return size_bytes > LONGEST_SESSION_BYTES


class SessionRows:
    """The rows of one session, gathered in the order in which they come; of one that is too long, only its length."""

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
    """Returns the file that a source is, or the files of a folder that have one of some endings, in order.

    Args:
        warnings: A line is added to them that names the folder's other files.
        any_file: A source that is a file may have any ending.

    Raises:
        ImportFailed: There is none.
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
    """Returns those options of a kind that differ from its defaults."""
    defaults = msgspec.structs.asdict(kind())
    return {name: value for name, default in defaults.items() if (value := getattr(options, name)) != default}


def reason_of(error: Exception) -> str:
    """Returns an error in one line: the text of a log that it quotes may hold line breaks."""
    return " ".join(str(error).split()) or type(error).__name__


def listed(names: Iterable[str]) -> str:
    r"""Returns the first names of a log in quotes, none of them whole where it is very long.

    >>> listed(["id", "two\nlines"])
    "'id', 'two\\nlines'"
    """
    return ", ".join(repr(name[:60]) for name in list(names)[:12])
