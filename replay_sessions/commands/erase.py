"""Erases the data of a person or of a visit.

  shop-r1 erase 9f3c27 recordings stores/mine
  shop-r1 erase 9f3c27 stores/mine --customers customers.csv

ID is a user's or a session's. Folders of recordings lose the files of its
sessions, even while a collector writes there. Stores are rewritten without the
sessions. Give all folders in one call, because the recordings tell which
sessions are a user's. Results made from a store (reports, boards, checkpoints)
are not searched.
"""

from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

import tyro

from replay_sessions.foundation.command_line import command
from replay_sessions.foundation.durable_files import UNREADABLE, open_unpacked, sync_folder, writing
from replay_sessions.foundation.errors import BadConfig
from replay_sessions.foundation.records import Record
from replay_sessions.importers.customer_sessions import read_customers
from replay_sessions.importers.private_sessions import without_number, without_private_data
from replay_sessions.private_data.customers import Customers
from replay_sessions.private_data.own_values import OwnValues
from replay_sessions.recorder.batches import get_file_name, read_ids
from replay_sessions.schema import Session
from replay_sessions.store import SessionStore
from replay_sessions.store.audit.findings import pluralize
from replay_sessions.store.audit.repair import open_alone, rewrite_store
from replay_sessions.store.manifest import MANIFEST_FILE
from replay_sessions.store.work_folder import find_unfinished


class Erase(Record):
    """The options of `erase`.

    Attributes:
        id: ID of a user or a session.
        folders: Folders of recordings, and stores.
        customers: The table of `import --customers`; its values for the user are removed from all other sessions of
            the stores.
    """

    id: tyro.conf.Positional[Annotated[str, tyro.conf.arg(metavar="ID")]]
    folders: tyro.conf.Positional[Annotated[tuple[Path, ...], tyro.conf.arg(metavar="FOLDER")]]
    customers: Path | None = None

    def __post_init__(self) -> None:
        if not self.id:
            raise BadConfig("the ID is empty: that of a user or a session was expected")


def _erase(options: Erase) -> int:
    ids = {options.id}
    count = 0
    customers = read_customers(options.customers)
    folders = sorted(dict.fromkeys(options.folders), key=_is_store)  # recordings tell the session ids that stores need
    for folder in folders:
        if not folder.is_dir() and not find_unfinished(folder):
            raise BadConfig(f"there is no folder '{folder}': nothing was erased")
    with ExitStack() as locks:  # of all stores, before anything is erased
        stores = {folder: locks.enter_context(open_alone(folder)) for folder in filter(_is_store, folders)}
        for folder in folders:
            if folder in stores:
                erased = _erase_from_store(stores[folder], ids, customers)
            else:
                erased = _erase_recordings(folder, ids)
            print(f"{folder}: {pluralize(erased, 'session')} erased")
            count += erased
            for left in find_unfinished(folder):
                print(f"{left}: not searched; delete it unless an import is at work: a killed one left sessions there")
    if not count:
        raise BadConfig(
            f"no session is of {options.id!r}, nor is it one's id: `show STORE` lists the sessions of a store"
        )
    return 0


def _is_store(folder: Path) -> bool:
    return (folder / MANIFEST_FILE).is_file()


def _erase_recordings(folder: Path, ids: set[str]) -> int:
    """Deletes the files of matching sessions, and adds their session ids to `ids`."""
    count = 0
    for path in (*folder.rglob("*.jsonl"), *folder.rglob("*.jsonl.gz")):
        sessions, users = set[str](), set[str]()
        try:
            with open_unpacked(path) as file:
                for session_id, user_id in read_ids(file):
                    sessions.add(session_id)
                    users.add(user_id)
        except UNREADABLE as error:
            print(f"{path}: searched only as far as it can be read ({error})")
        if ids & (sessions | users):
            ids |= sessions - {""}
            with writing(path):
                path.unlink()
                sync_folder(path.parent)
            count += 1
    return count


def _erase_from_store(store: SessionStore, ids: set[str], customers: Customers) -> int:
    mine = [row for row in store.index() if ids & {row.user_id, row.session_id, without_number(row.session_id)}]
    erased = dict.fromkeys((row.session_id for row in mine), "erased on request")
    ids |= erased.keys()
    users = {user for user in (*ids, *(row.user_id for row in mine)) if user in customers.by_user}
    removers = [OwnValues(customers.by_user[user], None) for user in users]

    def change(session: Session) -> Session:
        for remover in removers:
            session = without_private_data(session, remover)
        return session

    rewrite_store(store, erased, forgotten=ids | set(map(get_file_name, ids)), change=change)
    return len(mine)


run = command(Erase, _erase, program="shop-r1 erase")
