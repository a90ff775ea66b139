"""A folder written whole or not at all: a temporary folder beside the target takes its name at the end.

    TARGET                    the old folder, until the new one is whole and on the disk
    .TARGET.writing-ab12cd34  removed at the end; a killed process leaves it, and the target as it was
      new                     the folder to be
      former                  the old folder, when it has made way

A folder that is there is replaced by two renames. After a kill between them the old one is whole, as `former`.
"""

import os
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Self

from replay_sessions.foundation.durable_files import check_name, sync_folder, sync_tree, writing
from replay_sessions.foundation.errors import BadConfig
from replay_sessions.store.manifest import MANIFEST_FILE


class WorkFolder:
    """A hidden folder beside `target`; `commit` gives the target's name to its folder `new`.

    Args:
        target: The folder to be; where it is a link, the folder that it leads to.
        overwrite: Replace a folder of this kind that is there.
        marker: The file by which a folder of this kind is recognized; any other folder is never replaced.

    Raises:
        BadConfig: What is there may not be replaced.
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
            self.new.mkdir()  # not the temporary folder itself, which only its owner may read
        return self

    def __exit__(self, *_: object) -> None:
        if self.target.exists() or not self._former.exists():  # else the only copy of the old folder is in there
            shutil.rmtree(self.path, ignore_errors=True)

    @property
    def new(self) -> Path:
        return self.path / "new"

    @property
    def _former(self) -> Path:
        return self.path / "former"

    def commit(self) -> None:
        """Brings the new folder to the disk and gives it the target's name.

        Raises:
            BadConfig: Another writer was quicker, and what it wrote may not be replaced.
            WriteFailed: The system refused; what was there is as it was.
        """
        check_target(self.target, overwrite=self._overwrite, marker=self._marker)
        with writing(self.target):
            sync_tree(self.new)
            with suppress(OSError):
                self.target.rmdir()  # an empty folder may be in the way
            if self._overwrite and self.target.exists():
                os.rename(self.target, self._former)
            try:
                os.rename(self.new, self.target)
            except BaseException:
                if self._former.exists():
                    os.rename(self._former, self.target)
                raise
            sync_folder(self.target.parent)


def find_unfinished(target: Path) -> list[Path]:
    """Returns the temporary folders of a target, of processes at work or killed."""
    target = target.resolve()
    return [path for path in target.parent.glob(".*") if path.name.startswith(f".{target.name}.writing-")]


def check_target(path: Path, *, overwrite: bool, marker: str = MANIFEST_FILE) -> None:
    """Raises BadConfig when a folder of the kind of `marker` (a session store) may not be written to `path`."""
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
