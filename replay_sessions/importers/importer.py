"""What an importer is: it cuts a source into parts, and reads sessions out of a part.

Parts are made in order by the main process and may be read by other processes, in any order; a part is also the unit
that a resumed import need not do again. So `parts` must cut the same source in the same way every time, and a part and
the importer itself must pickle.
"""

import os
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from hashlib import blake2b
from pathlib import Path
from typing import Any, ClassVar, Literal, Self

import msgspec

from replay_sessions.schema import Session
from replay_sessions.store.manifest import SetAside

__all__ = ["Imported", "Importer", "LeftOut", "NoOptions", "Part", "state_of_files"]


class Part(msgspec.Struct, frozen=True, kw_only=True):
    """A piece of a source.

    Attributes:
        content: What `read` needs: some lines, a byte range, a list of files.
        size: How much of the source it is, in the unit of `Importer.size` (for progress).
    """

    content: Any
    size: int


class LeftOut(msgspec.Struct, frozen=True, kw_only=True):
    """A logged event that is no action of the schema."""

    action_type: str


Imported = Session | SetAside | LeftOut


class NoOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Of an importer that has none of its own."""


class Importer(ABC):
    """Reads one source.

    Attributes:
        Options: The importer's own flags, each with a default, and what they mean.
        source: What the sessions come from (manifest).
        options: How they are read (manifest); together with the source's files they identify an import.
        notes: What to tell the user before reading, such as a choice that was guessed.
        size: The whole source in units of `Part.size`; None where it is not known.
        unit: What that unit is.
        longest_session_bytes: A session is held in memory as a whole, so one that is longer is set aside: a crawler's,
            or a log's whose ids tell no visits apart.
        helpers: How many processes may be started to help read a part, where the source is of a single one.
    """

    Options: ClassVar[type[msgspec.Struct]] = NoOptions
    source: str
    options: dict[str, str]
    notes: list[str]
    size: int | None
    unit: Literal["bytes", "actions"] = "bytes"
    longest_session_bytes: int = 256 << 20  # a session of 30 pages of OPeRA's longest takes 20 MB
    helpers: int = 0

    @classmethod
    @abstractmethod
    def from_options(cls, source: Path, options: Any) -> Self:
        """Makes the importer from a command's `Options`; checks that the source is there and can be read."""

    @classmethod
    def help(cls) -> str:
        """What `--help` says beside the summary and the options: what a source looks like, and examples."""
        return ""

    @abstractmethod
    def state(self) -> str:
        """Changes when the source does: paths, sizes, times. A killed import goes on only with the same state."""

    def rules(self) -> Any:
        """What says how the source is read, such as a field mapping or a recipe: its content, not its name.

        A killed import goes on only with the same rules. Structs and plain values that JSON can hold.
        """
        return None

    def report(self) -> list[str]:
        """What to tell the user when all is read, in lines."""
        return []

    @abstractmethod
    def parts(self) -> Iterator[Part]:
        """Cuts the source into parts of bounded size."""

    @abstractmethod
    def read(self, part: Part) -> Iterator[Imported]:
        """Reads a part: its sessions, what was set aside and which events were left out, in order."""


def state_of_files(paths: Iterable[Path]) -> str:
    """A digest of paths, sizes and times, in this order: what `Importer.state` is of a source made of files."""
    digest = blake2b(digest_size=16)
    for path in paths:
        status = path.stat()
        digest.update(os.fsencode(path) + f" {status.st_size} {status.st_mtime_ns}\n".encode())
    return digest.hexdigest()
