"""A folder written whole or not at all: work happens in a hidden folder beside the target, which is renamed at the end.

A work folder is locked while its process lives. The lock dies with the process, so one that is not locked was left
behind by a killed process: it is taken up again (`resume`) or removed.
"""

import fcntl
import os
import shutil
import tempfile
from pathlib import Path
from types import TracebackType
from typing import IO, Self

from replay_sessions.errors import BadConfig
from replay_sessions.store.manifest import MANIFEST_FILE

__all__ = ["WorkFolder", "check_target"]

_LOCK_FILE = ".lock"


class WorkFolder:
    """A locked hidden folder beside `target`, whose folder `store` `put_in_place` makes the target.

    Leaving the context removes it, unless `keep` was set.

    Args:
        target: The folder to be.
        resume: Take up what a killed process left behind; else such leftovers are removed.
        marker: The file that tells a folder of this kind from any other, which is never replaced.
    """

    def __init__(self, target: Path, *, resume: bool = False, marker: str = MANIFEST_FILE) -> None:
        self.target = target.absolute()
        self._marker = marker
        self.keep = False
        self._resume = resume
        self.path: Path
        self._lock: IO[bytes]

    def __enter__(self) -> Self:
        try:
            self.target.parent.mkdir(parents=True, exist_ok=True)
            if self._resume:
                self.path = self.target.parent / f".{self.target.name}.importing"
                self.path.mkdir(exist_ok=True)
            else:
                self._remove_leftovers()
                self.path = Path(tempfile.mkdtemp(prefix=f".{self.target.name}.writing-", dir=self.target.parent))
            self._lock = (self.path / _LOCK_FILE).open("wb")
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self.store.mkdir(exist_ok=True)
        except BlockingIOError as error:
            self._lock.close()
            raise BadConfig(
                f"another import is writing to '{self.target}': wait for it or choose another place"
            ) from error
        except OSError as error:
            raise BadConfig(f"cannot write to '{self.target}': {error.strerror or error}") from error
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self.keep:
            shutil.rmtree(self.path, ignore_errors=True)
        self._lock.close()

    @property
    def store(self) -> Path:
        return self.path / "store"

    def put_in_place(self, *, overwrite: bool) -> None:
        """Renames the finished folder to the target; with `overwrite`, one of its kind that is there makes way."""
        check_target(self.target, overwrite=overwrite, marker=self._marker)
        if (self.target / self._marker).exists():
            os.rename(self.target, self.path / "replaced")
        os.rename(self.store, self.target)
        self.keep = False

    def _remove_leftovers(self) -> None:
        for leftover in self.target.parent.glob(f".{self.target.name}.writing-*"):
            try:
                with (leftover / _LOCK_FILE).open("rb+") as lock:
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    shutil.rmtree(leftover, ignore_errors=True)
            except OSError:
                continue  # someone is writing it


def check_target(path: Path, *, overwrite: bool, marker: str = MANIFEST_FILE) -> None:
    """Raises BadConfig when a folder that `marker` tells (a session store) may not be written to `path`."""
    kind = "session store" if marker == MANIFEST_FILE else f"folder with a {marker}"
    if not path.exists() or (path.is_dir() and not any(path.iterdir())):
        return
    if not (path / marker).is_file():
        raise BadConfig(f"'{path}' exists and is no {kind}: it will not be replaced; choose another place")
    if not overwrite:
        raise BadConfig(f"there is a {kind} at '{path}': choose another place or add --overwrite to replace it")
