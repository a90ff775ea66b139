"""Writes a folder completely or not at all: a temporary folder beside the target is renamed to the target at the end.

    TARGET                    the old folder, until the new one is complete and on the disk
    .TARGET.writing-ab12cd34  deleted at the end; after a kill it remains, and the target is unchanged
      new                     the new folder
      former                  the old folder, after it was moved away

An existing folder is replaced by two renames. After a kill between them, the old folder is intact, as `former`.
"""

import os
import shutil
import tempfile
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from typing import Self

from replay_sessions.foundation.durable_files import check_name, sync_folder, sync_tree, writing
from replay_sessions.foundation.errors import BadConfig
from replay_sessions.foundation.locks import working_alone_in
from replay_sessions.store.manifest import MANIFEST_FILE


class WorkFolder:
    """A hidden folder beside `target`; `commit` renames its subfolder `new` to the target.

    Args:
        target: The folder to write. If it is a link, the folder that the link leads to.
        overwrite: Whether an existing folder of this kind may be replaced.
        marker: The file that identifies a folder of this kind; any other folder is never replaced.

    Raises:
        BadConfig: The target exists and must not be replaced.
        WriteFailed: The system refused to write beside the target.
    """

    def __init__(self, target: Path, *, overwrite: bool = False, marker: str = MANIFEST_FILE) -> None:
        self.target = target.resolve()
        self._overwrite = overwrite
        self._marker = marker
        self.path: Path

    def __enter__(self) -> Self:
        check_target(self.target, overwrite=self._overwrite, marker=self._marker)
        with writing(self.target):
            self.target.parent.mkdir(parents=True, exist_ok=True)
            self.path = Path(tempfile.mkdtemp(prefix=f".{self.target.name}.writing-", dir=self.target.parent))
            self.new.mkdir()  # not the temporary folder itself, because only its owner may read it
        return self

    def __exit__(self, *_: object) -> None:
        if self.target.exists() or not self._former.exists():  # otherwise it has the only copy of the old folder
            shutil.rmtree(self.path, ignore_errors=True)

    @property
    def new(self) -> Path:
        return self.path / "new"

    @property
    def _former(self) -> Path:
        return self.path / "former"

    def commit(self) -> None:
        """Writes the new folder to the disk and renames it to the target.

        Raises:
            BadConfig: Another process has written the target meanwhile, and it must not be replaced.
            WriteFailed: The system refused; the target is unchanged.
        """
        check_target(self.target, overwrite=self._overwrite, marker=self._marker)
        with writing(self.target):
            sync_tree(self.new)
            with suppress(OSError):
                self.target.rmdir()  # an empty folder does not count as existing
            if self._overwrite and self.target.exists():
                os.rename(self.target, self._former)
            try:
                os.rename(self.new, self.target)
            except BaseException:
                if self._former.exists():
                    os.rename(self._former, self.target)
                raise
            sync_folder(self.target.parent)


def rewriting(target: Path) -> AbstractContextManager[None]:
    """Locks out other processes that would rewrite a folder; raises BadConfig if one does.

    The lock is beside the folder, because that is replaced.
    """
    target = target.resolve()
    return working_alone_in(target.parent, f".{target.name}.lock", target=target)


def find_unfinished(target: Path) -> list[Path]:
    """Returns the temporary folders of a target, left by running or killed processes."""
    target = target.resolve()
    return [path for path in target.parent.glob(".*") if path.name.startswith(f".{target.name}.writing-")]


def check_target(path: Path, *, overwrite: bool, marker: str = MANIFEST_FILE) -> None:
    """Raises BadConfig if a folder with the file `marker` (a session store) must not be written to `path`."""
    check_name(path)
    kind = "session store" if marker == MANIFEST_FILE else f"folder with a {marker}"
    if os.path.ismount(path):
        raise BadConfig(f"a disk is mounted at '{path}': choose a folder in it, such as '{path / 'store'}'")
    if not path.exists() or (path.is_dir() and not any(path.iterdir())):
        return
    if not (path / marker).is_file():
        raise BadConfig(f"'{path}' exists and is no {kind}: it will not be replaced; choose another place")
    if not overwrite:
        raise BadConfig(f"there is a {kind} at '{path}': choose another place or add --overwrite to replace it")
