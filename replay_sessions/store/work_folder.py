"""A folder written whole or not at all: work happens in a hidden folder beside the target, which takes its place.

    TARGET                    what is there now; at every moment the old folder or the new one
    .TARGET.writing-ab12cd34  a work folder; an import's, which goes on after a kill, is .TARGET.importing
      .lock                   held by the process that writes
      store                   the folder to be
      replaced                the old folder, while it makes way on a system that cannot exchange two folders

When the new folder is whole it is brought to the disk, and then takes the target's name: both are exchanged in one step
where the system can (`durable_files.exchange`). Elsewhere the old one is first renamed to `replaced`, and comes back
when anything fails; after a kill in between, whoever opens or writes the target puts it back (`put_back`).

A work folder is locked while its process lives. The lock dies with the process, so one that is not locked was left
behind by a killed process: it is taken up again (`resume`) or removed. Systems without such locks (Windows) leave it.
"""

import errno
import os
import shutil
import tempfile
from contextlib import suppress
from glob import escape
from pathlib import Path
from typing import IO, Self

from replay_sessions.foundation.durable_files import (
    HAS_LOCKS,
    LOCK_FILE,
    check_name,
    exchange,
    lock,
    sync_folder,
    sync_tree,
    writing,
)
from replay_sessions.foundation.errors import BadConfig, WriteFailed
from replay_sessions.store.manifest import MANIFEST_FILE

_REPLACED = "replaced"
_ATTEMPTS = 3
_IN_THE_WAY = (errno.ENOTEMPTY, errno.EEXIST)


class WorkFolder:
    """A locked hidden folder beside `target`, whose folder `store` `commit` makes the target.

    Leaving the context removes it, unless `keep` was set.

    Args:
        target: The folder to be; where it is a link, the folder that it leads to.
        resume: Take up what a killed process left behind; else such leftovers are removed.
        marker: The file by which a folder of this kind is recognized; any other folder is never replaced.
    """

    def __init__(self, target: Path, *, resume: bool = False, marker: str = MANIFEST_FILE) -> None:
        self.target = target.resolve()
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
                self.keep = self.path.exists()  # what an earlier process did, until it is known that it is of no use
                self.path.mkdir(exist_ok=True)
            else:
                self._remove_leftovers()
                self.path = Path(tempfile.mkdtemp(prefix=f".{self.target.name}.writing-", dir=self.target.parent))
            self._lock = (self.path / LOCK_FILE).open("wb")
            lock(self._lock)
            self._settle(self.path)
            self.store.mkdir(exist_ok=True)
        except BlockingIOError as error:
            self._lock.close()
            raise BadConfig(
                f"another import is writing to '{self.target}': wait for it or choose another place"
            ) from error
        except OSError as error:
            raise BadConfig(f"cannot write to '{self.target}': {error.strerror or error}") from error
        try:
            self._check_renaming()
        except BadConfig:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        try:
            if not self.keep:
                self._remove(self.path)
        finally:
            self._lock.close()

    @property
    def store(self) -> Path:
        return self.path / "store"

    def commit(self, *, overwrite: bool) -> None:
        """Gives the finished folder the target's name; with `overwrite`, one of its kind that is there makes way.

        Raises:
            BadConfig: What is there may not be replaced.
            WriteFailed: The system refused; what is there is as it was, unless the message says otherwise.
        """
        check_target(self.target, overwrite=overwrite, marker=self._marker)
        with writing(self.target):
            sync_tree(self.store)
            if overwrite and self.target.exists():
                try:
                    exchange(self.store, self.target)
                except OSError:
                    self._replace_in_two_steps()
            else:
                self._take_free_name(overwrite=overwrite)
        self.keep = False
        try:
            sync_folder(self.target.parent)  # before the old one is removed
        except OSError as error:
            raise WriteFailed(
                f"'{self.target}' is written and in place, but the disk did not confirm it ({error.strerror}), so a "
                "power cut may undo it: check the disk; the command need not be given again"
            ) from error

    def _take_free_name(self, *, overwrite: bool) -> None:
        """Renames to a target that is missing or empty; the system refuses where another writer was quicker."""
        try:
            with suppress(OSError):
                self.target.rmdir()  # Windows renames to no folder, not even to an empty one
            os.rename(self.store, self.target)
        except OSError as error:
            if error.errno in _IN_THE_WAY:
                check_target(self.target, overwrite=overwrite, marker=self._marker)
            raise

    def _replace_in_two_steps(self) -> None:
        for attempt in range(_ATTEMPTS):
            try:
                os.rename(self.target, self.path / _REPLACED)
                os.rename(self.store, self.target)
                return
            except BaseException as error:
                came_back = put_back(self.target, self._marker)
                # A reader that found no target in between may have put the old one back: then it is tried again.
                is_in_the_way = isinstance(error, OSError) and error.errno in _IN_THE_WAY
                if came_back or not is_in_the_way or attempt == _ATTEMPTS - 1:
                    raise

    def _check_renaming(self) -> None:
        """Finds out before the work whether the target's name can be given to another folder at all.

        An empty folder is renamed to it: one that is not empty refuses it, which is well, and an empty one is replaced.
        """
        if not self.target.exists():
            return
        probe = self.path / "probe"
        try:
            probe.mkdir(exist_ok=True)
            os.rename(probe, self.target)
        except OSError as error:
            if error.errno not in _IN_THE_WAY:
                raise BadConfig(
                    f"'{self.target}' cannot be replaced by a finished folder ({error.strerror}), perhaps because a "
                    f"disk is mounted there: choose a folder in it, such as '{self.target / 'store'}'"
                ) from error
            probe.rmdir()

    def _remove_leftovers(self) -> None:
        for leftover in _work_folders(self.target):
            if leftover.suffix == ".importing" or not HAS_LOCKS:
                continue  # an import may go on; without locks, someone may be writing it
            try:
                with (leftover / LOCK_FILE).open("rb+") as lock_file:
                    lock(lock_file)
                    self._remove(leftover)
            except OSError:
                continue  # someone is writing it

    def _remove(self, work: Path) -> None:
        if not self._settle(work):
            return
        for entry in work.iterdir():
            if entry.name != LOCK_FILE:  # by which a removal that is cut short is found and ended
                shutil.rmtree(entry, ignore_errors=True) if entry.is_dir() else entry.unlink(missing_ok=True)
        shutil.rmtree(work, ignore_errors=True)

    def _settle(self, work: Path) -> bool:
        """Ends a replacement that was cut short; False where a work folder still holds the only copy of the old."""
        put_back(self.target, self._marker)
        marker = work / _REPLACED / self._marker
        if self.target.exists():
            marker.unlink(missing_ok=True)  # first of all, so that half of it is never put back
        if marker.exists():
            return False
        shutil.rmtree(work / _REPLACED, ignore_errors=True)
        return True


def check_target(path: Path, *, overwrite: bool, marker: str = MANIFEST_FILE) -> None:
    """Raises BadConfig when a folder of the kind of `marker` (a session store) may not be written to `path`."""
    check_name(path)
    put_back(path, marker)
    kind = "session store" if marker == MANIFEST_FILE else f"folder with a {marker}"
    if not path.exists() or (path.is_dir() and not any(path.iterdir())):
        return
    if not (path / marker).is_file():
        raise BadConfig(f"'{path}' exists and is no {kind}: it will not be replaced; choose another place")
    if not overwrite:
        raise BadConfig(f"there is a {kind} at '{path}': choose another place or add --overwrite to replace it")


def put_back(target: Path, marker: str = MANIFEST_FILE) -> bool:
    """Restores a folder that was moved away for a replacement that never came; returns whether there was one.

    Raises:
        BadConfig: The system does not allow it.
    """
    target = target.resolve()
    if target.exists():
        return False
    replaced = [folder for work in _work_folders(target) if ((folder := work / _REPLACED) / marker).is_file()]
    if not replaced:
        return False
    latest = max(replaced, key=lambda folder: folder.stat().st_ctime_ns)
    try:
        os.rename(latest, target)
    except OSError as error:
        if target.exists():  # another process was quicker
            return False
        raise BadConfig(
            f"a replacement of '{target}' was cut short and what stood there cannot be moved back ({error.strerror}): "
            f"it is whole, move it by hand from '{latest}'"
        ) from error
    sync_folder(target.parent)
    return True


def _work_folders(target: Path) -> list[Path]:
    """The work folders of living and killed writers of a target."""
    name = escape(target.name)
    return [*target.parent.glob(f".{name}.importing"), *target.parent.glob(f".{name}.writing-????????")]
