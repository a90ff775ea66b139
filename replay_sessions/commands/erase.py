"""Erases the data of a person or of a visit.

  shop-r1 erase 9f3c27 recordings stores/mine
  shop-r1 erase 9f3c27 stores/mine --customers customers.csv

ID is a user's, a customer's or a browser's, or a session's. Folders of recordings lose the files of its
sessions, even while a collector writes there. Stores are rewritten without the
sessions. Give all folders in one call, because the recordings tell which
sessions are a user's. What would be erased is printed first, and more than one
user's sessions are erased only after a yes. Results made from a store (reports, boards, checkpoints)
are not searched.
"""

import sys
from collections.abc import Collection, Iterable
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

import tyro

from replay_sessions.foundation.command_line import command
from replay_sessions.foundation.durable_files import UNREADABLE, open_unpacked, sync_folder, writing
from replay_sessions.foundation.errors import BadConfig
from replay_sessions.foundation.records import Record
from replay_sessions.foundation.table import plain_text
from replay_sessions.importers.customer_table import read_customers
from replay_sessions.importers.private_sessions import without_number, without_private_data
from replay_sessions.private_data.customer_values import OwnValues
from replay_sessions.private_data.customers import Customers
from replay_sessions.recorder.batches import get_file_name, read_ids
from replay_sessions.schema import Session
from replay_sessions.store import SessionStore
from replay_sessions.store.audit.findings import pluralize
from replay_sessions.store.audit.repair import open_alone, rewrite_store
from replay_sessions.store.manifest import MANIFEST_FILE, IndexRow
from replay_sessions.store.work_folder import find_unfinished


class Erase(Record):
    """The options of `erase`.

    Attributes:
        id: ID of a user or a session.
        folders: Folders of recordings, and stores.
        customers: The table of `import --customers`; its values for the user are removed from all other sessions of
            the stores.
        yes: Erase the sessions of several users without asking.
    """

    id: tyro.conf.Positional[Annotated[str, tyro.conf.arg(metavar="ID")]]
    folders: tyro.conf.Positional[Annotated[tuple[Path, ...], tyro.conf.arg(metavar="FOLDER")]]
    customers: Path | None = None
    yes: bool = False

    def __post_init__(self) -> None:
        if not self.id:
            raise BadConfig("the ID is empty: that of a user or a session was expected")


def _erase(options: Erase) -> int:
    customers = Customers(read_customers(options.customers))
    folders = sorted(dict.fromkeys(options.folders), key=_is_store)  # recordings tell the session ids that stores need
    for folder in folders:
        if not folder.is_dir() and not find_unfinished(folder):
            raise BadConfig(f"there is no folder '{folder}': nothing was erased")
    with ExitStack() as locks:  # of all stores, before anything is erased
        stores = {folder: locks.enter_context(open_alone(folder)) for folder in filter(_is_store, folders)}
        sessions = {options.id}
        files = {folder: _find_files(folder, options.id, sessions) for folder in folders if folder not in stores}
        rows = {folder: _find_rows(store, options.id, sessions) for folder, store in stores.items()}
        users = {user for paths in files.values() for user in paths.values()}
        users |= {row.user_id for matching in rows.values() for row in matching}
        counts = {folder: len(matching) for folder, matching in (*files.items(), *rows.items())}
        for folder in folders:
            print(f"{folder}: {pluralize(counts[folder], 'session')} to erase")
        if len(users) > 1 and not options.yes:
            _ask(users)
        for folder in folders:
            if folder in stores:
                _erase_rows(stores[folder], rows[folder], {options.id} | sessions, customers)
            else:
                _delete(files[folder])
            print(f"{folder}: {pluralize(counts[folder], 'session')} erased")
            for left in find_unfinished(folder):
                print(f"{left}: not searched; delete it unless an import is at work: a killed one left sessions there")
    if not any(counts.values()):
        raise BadConfig(
            f"no session is of {options.id!r}, nor is it one's id: `show STORE` lists the sessions of a store"
        )
    return 0


def _is_store(folder: Path) -> bool:
    return (folder / MANIFEST_FILE).is_file()


def _ask(users: Collection[str]) -> None:
    """Asks whether the sessions of several users are to be erased.

    Raises:
        BadConfig: The answer is not yes, or nobody can be asked.
    """
    names = plain_text(", ".join(sorted(users)[:12]))
    print(f"these are sessions of {len(users):,} users ({names})")
    if not sys.stdin.isatty():
        raise BadConfig(f"the sessions are of {len(users):,} users: nothing was erased; add --yes to erase them all")
    if input("erase them all? [y/N] ").strip().lower() not in ("y", "yes"):
        raise BadConfig("nothing was erased")


def _find_files(folder: Path, wanted: str, sessions: set[str]) -> dict[Path, str]:
    """Returns the files of recordings that are of a user or a session, with the last user of each.

    Args:
        wanted: ID of the user or the session.
        sessions: Set to which the ids of these files' sessions are added. The ids of their users are not, so that what
            a file says of a user leads to no other session.
    """
    matching: dict[Path, str] = {}
    for path in (*folder.rglob("*.jsonl"), *folder.rglob("*.jsonl.gz")):
        ids: list[tuple[str, str]] = []
        try:
            with open_unpacked(path) as file:
                ids.extend(read_ids(file))
        except UNREADABLE as error:
            print(f"{path}: searched only as far as it can be read ({plain_text(str(error))})")
        if any(wanted in pair for pair in ids):
            sessions |= {session_id for session_id, _ in ids if session_id}
            written = [user for session_id, user in ids if session_id] or [user for _, user in ids]
            matching[path] = written[-1]
    return matching


def _find_rows(store: SessionStore, wanted: str, sessions: Collection[str]) -> list[IndexRow]:
    return [
        row
        for row in store.index()
        if wanted in row.user_ids or {row.session_id, without_number(row.session_id)} & set(sessions)
    ]


def _delete(paths: Iterable[Path]) -> None:
    for path in paths:
        with writing(path):
            path.unlink()
            sync_folder(path.parent)


def _erase_rows(store: SessionStore, rows: list[IndexRow], ids: Collection[str], customers: Customers) -> None:
    erased = dict.fromkeys((row.session_id for row in rows), "erased on request")
    forgotten = {*ids, *erased}
    users = {user for user in (*ids, *(name for row in rows for name in row.user_ids)) if user in customers.by_user}
    removers = [OwnValues(customers.by_user[user], None) for user in users]

    def change(session: Session) -> Session:
        for remover in removers:
            session = without_private_data(session, remover)
        return session

    rewrite_store(store, erased, forgotten=forgotten | set(map(get_file_name, forgotten)), change=change)


run = command(Erase, _erase, program="shop-r1 erase")
