"""A store is replaced again and again, and the process killed (SIGKILL) at one step later each time.

    python -m tests.replay_sessions.store.killed_at_each_step FOLDER WRITER WAY

WRITER is `writer` or `import`, WAY is `exchange` (as this system can) or `renames` (as one that cannot). A step is
whatever Python asks of the file system: opening, making, renaming, removing, syncing. One line of JSON is printed for
each kill: the step, whether the target was there, and what could be opened. All of it happens in forks, so that the
hundreds of processes need not import anything.
"""

import errno
import os
import shutil
import signal
import sys
import traceback
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pyarrow.dataset  # noqa: F401 - Arrow would import it in each fork anew

from replay_sessions import Session, SessionStore, StoreWriter
from replay_sessions.importers.mapped.jsonl import JsonlImporter
from replay_sessions.importers.running.run_import import run_import
from replay_sessions.store import work_folder
from tests.replay_sessions.conftest import make_session

__all__ = ["Killed"]

OLD, NEW = [make_session(number) for number in range(3)], [make_session(number) for number in range(5, 9)]
STEPS = ("open", "os.", "shutil.", "tempfile.")  # of Python's audit events
DONE, IS_OLD, IS_NEW, NEITHER = 10, 11, 12, 13  # exit codes


class Killed(msgspec.Struct, frozen=True):
    """What a kill left behind."""

    step: str
    target_was_there: bool
    opened: str
    left_after_next: list[str]


def main() -> None:
    folder, writer, way = Path(sys.argv[1]), sys.argv[2], sys.argv[3]
    if way == "renames":
        work_folder.exchange = refuse
    replace = write if writer == "writer" else import_log
    place, store, told = folder / "place", folder / "place" / "store", folder / "step"
    in_fork(lambda: write(folder / "old", OLD))
    number = 0
    while True:
        number += 1
        shutil.rmtree(place, ignore_errors=True)
        shutil.copytree(folder / "old", store)
        if in_fork(partial(replace_and_die, replace, store, number, told)) == DONE:
            return
        was_there = (store / "manifest.json").is_file()
        opened = in_fork(lambda: opened_and_replaced(replace, store))
        assert opened in (IS_OLD, IS_NEW, NEITHER)
        left = sorted(str(path.relative_to(place)) for path in place.rglob("*") if not path.is_relative_to(store))
        killed = Killed(told.read_text(), was_there, {IS_OLD: "old", IS_NEW: "new"}.get(opened, "neither"), left)
        print(msgspec.json.encode(killed).decode(), flush=True)


def refuse(one: Path, other: Path) -> None:
    raise OSError(errno.ENOSYS, "no exchange here")


def write(store: Path, sessions: list[Session]) -> Path:
    with StoreWriter(store, source="test", overwrite=True) as writer:
        for session in sessions:
            writer.write(session)
    return store


def import_log(store: Path, sessions: list[Session]) -> Path:
    log = store.parent.parent / "log.jsonl"
    if not log.exists():
        log.write_bytes(b"".join(msgspec.json.encode(session) + b"\n" for session in sessions))
    run_import(JsonlImporter(log), store, overwrite=True)
    return store


def which(store: Path) -> int:
    """What is there, read to its end."""
    found = list(SessionStore.open(store).sessions())
    return IS_OLD if found == OLD else IS_NEW if found == NEW else NEITHER


def opened_and_replaced(replace: Callable[[Path, list[Session]], Path], store: Path) -> int:
    """What could be opened, where the next writer comes to its end."""
    opened = which(store)
    return opened if which(replace(store, NEW)) == IS_NEW else 1


def replace_and_die(replace: Callable[[Path, list[Session]], Path], store: Path, number: int, told: Path) -> int:
    """Replaces the store and kills this process when it is about to do its step of that number."""
    left = [number]
    sync = os.fsync

    def count(event: str, arguments: tuple[Any, ...]) -> None:
        if left[0] <= 0 or not event.startswith(STEPS):
            return
        name = os.fsdecode(arguments[0]) if arguments and isinstance(arguments[0], str | bytes | os.PathLike) else ""
        if os.path.isabs(name) and not Path(name).is_relative_to(store.parent):
            return  # such as a module of this package
        left[0] -= 1
        if not left[0]:
            told.write_text(f"{event} {name}")
            os.kill(os.getpid(), signal.SIGKILL)

    def sync_counted(file: int) -> None:
        count("os.fsync", ())
        sync(file)

    os.fsync = sync_counted
    sys.addaudithook(count)
    replace(store, NEW)
    return DONE


def in_fork(do: Callable[[], Any]) -> int:
    """What `do` returned in a process of its own; 1 where it raised, -9 where it was killed."""
    child = os.fork()
    if not child:
        code = 1
        try:
            code = do() or 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code if isinstance(code, int) else 0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


if __name__ == "__main__":
    main()
