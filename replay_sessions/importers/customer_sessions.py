"""Removes what a shop's table of customers says of each session's user from sessions on their way into a store.

    items of an import -> the first items, held until the words that users share are counted -> all items, changed

Words of a name may also be the shop's words (Rose, Brown). Only the pages of other users show which, so the first
sessions wait in memory. The pages are simplified by then, and may come from any importer.
"""

import itertools
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from replay_sessions.foundation.errors import ImportFailed
from replay_sessions.importers.importer import Settled
from replay_sessions.importers.mapped.record_paths import as_text
from replay_sessions.importers.private_sessions import without_private_data
from replay_sessions.importers.sources.record_files import read_records
from replay_sessions.private_data.customers import Customer, Customers, words_in
from replay_sessions.private_data.ner import FindEntities
from replay_sessions.private_data.own_values import OwnValues, SharedWords, lines_of
from replay_sessions.schema import Session
from replay_sessions.store.manifest import Rejected

_HELD_CHARACTERS = 100_000_000


def read_customers(path: Path | None) -> Customers:
    """Reads a table of customers from a CSV, TSV, JSON lines or parquet file; a user may have several rows.

    Without a file, there are no customers.

    Raises:
        ImportFailed: The file cannot be read.
        BadConfig: The table has no column `user_id`.
    """
    rows = []
    for record in read_records(path) if path else ():
        if isinstance(record, Rejected):
            raise ImportFailed(f"the table of customers cannot be read: {record.where}: {record.reason}")
        rows.append({name: as_text(value) or value for name, value in record.decode(dict).items()})
    if path and not rows:
        raise ImportFailed(f"the table of customers '{path}' has no rows")
    return Customers(rows)


class CustomerRemoval:
    """Removes the known data of users from their sessions; other items of an import are unchanged.

    Args:
        customers: The table of customers.
        find_entities: Function that finds names and addresses in a line, of any person. If None, only the table is
            used.
    """

    def __init__(self, customers: Customers, find_entities: FindEntities | None) -> None:
        self._customers = customers.by_user
        self._find_entities = find_entities
        self._shared = SharedWords(customers)
        self._counts: Counter[str] = Counter()
        self._users: set[str] = set()

    def apply(self, items: Iterator[Settled]) -> Iterator[Settled]:
        """Yields the items of an import in order, with the sessions cleaned."""
        rejected: list[Rejected] = []  # their reasons quote the session that follows
        for item in itertools.chain(self._hold(items), items):
            if isinstance(item, Rejected):
                rejected.append(item)
            elif isinstance(item, Session):
                values = self._values(item)
                clean = values.remove_from_text
                yield from (Rejected(where=entry.where, reason=clean(entry.reason)) for entry in rejected)
                rejected.clear()
                yield without_private_data(item, values)
            else:
                yield item
        yield from rejected

    def _hold(self, items: Iterator[Settled]) -> list[Settled]:
        """Reads the first items into memory and counts the words on their pages."""
        held: list[Settled] = []
        characters = 0
        for item in items:
            held.append(item)
            if isinstance(item, Session):
                self._shared.count(item.user_id, [step.page for step in item.steps])
                characters += sum(len(step.page) for step in item.steps)
            if characters > _HELD_CHARACTERS:
                break
        return held

    def _values(self, session: Session) -> OwnValues:
        self._users.add(session.user_id)
        customer = self._customers.get(session.user_id, Customer())
        if self._find_entities is not None:
            customer = Customer(forms=dict(customer.forms), phones=customer.phones)
            for line in dict.fromkeys(line for step in session.steps for line in lines_of(step.page)):
                for start, end, kind in self._find_entities(line):
                    customer.add_forms(kind, [words_in(line[start:end])])
        return OwnValues(customer, self._shared, self._counts)

    def report(self) -> str:
        """Returns a line with the number of known users, and how often a customer's word was also the shop's."""
        known_users, counts = len(self._users & self._customers.keys()), self._counts
        return (
            f"customers: {known_users:,} of {len(self._users):,} users are in the table; words that other users' pages "
            f"hold too went {counts['beside']:,} times beside another value of the user's and {counts['account']:,} "
            f"times in an account area, and stayed {counts['stayed']:,} times"
        )
