"""Removes what a shop's table of customers says of each session's user from sessions on their way into a store.

    items of an import -> the first items, held until the words that users share are counted -> all items, changed

Words of a name may also be the shop's words (Rose, Brown). Only the pages of other users show which, so the first
sessions wait in memory. The pages are simplified by then, and may come from any importer.
"""

import itertools
import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from urllib.parse import unquote

import msgspec
from msgspec.structs import replace

from replay_sessions.foundation.errors import ImportFailed
from replay_sessions.importers.importer import Settled
from replay_sessions.importers.mapped.record_paths import as_text
from replay_sessions.importers.private_sessions import without_private_data
from replay_sessions.importers.remaining_values import RemainingValues
from replay_sessions.importers.sources.record_files import read_records
from replay_sessions.private_data.customers import Customer, Customers, parts_of_words, unfold, words_in
from replay_sessions.private_data.ner import FindEntities
from replay_sessions.private_data.own_values import OwnValues, SharedWords, lines_of, phone_ends
from replay_sessions.schema import Session
from replay_sessions.store import SessionStore
from replay_sessions.store.manifest import REJECTED_FILE, Rejected, write_options

_HELD_CHARACTERS = 100_000_000
_LISTED = 12
_LEAST_USERS = 2  # whose pages lose a value, for it to be listed
_QUOTED = re.compile(r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"")


Rows = list[dict[str, object]]


def read_customers(path: Path | None) -> Rows:
    """Reads the rows of a table of customers from a CSV, TSV, JSON lines or parquet file; a user may have several.

    Without a file, there are no rows.

    Raises:
        ImportFailed: The file cannot be read, or has no rows.
    """
    rows = []
    for record in read_records(path) if path else ():
        if isinstance(record, Rejected):
            raise ImportFailed(f"the table of customers cannot be read: {record.where}: {record.reason}")
        rows.append({name: as_text(value) or value for name, value in record.decode(dict).items()})
    if path and not rows:
        raise ImportFailed(f"the table of customers '{path}' has no rows")
    return rows


class CustomerRemoval:
    """Removes the known data of users from their sessions; other items of an import are unchanged.

    Args:
        rows: The rows of the table of customers.
        find_entities: Function that finds names and addresses in a line, of any person. If None, only the table is
            used.
    """

    def __init__(self, rows: Rows, find_entities: FindEntities | None) -> None:
        self._rows = rows
        self._table = Customers(rows)
        self._customers = self._table.by_user
        self._find_entities = find_entities
        self._shared = SharedWords(self._table)
        self._removed: defaultdict[str, set[str]] = defaultdict(set)  # by value, the users whose sessions lost it
        self._users: set[str] = set()
        self._listed_users: set[str] = set()  # in the table by any of their ids
        self._remaining = RemainingValues(rows)

    def apply(self, items: Iterator[Settled]) -> Iterator[Settled]:
        """Yields the items of an import in order, with the sessions cleaned."""
        for item in itertools.chain(self._hold(items), items):
            if isinstance(item, Rejected):
                yield Rejected(where=item.where, reason=self.clean_message(item.reason))
            elif isinstance(item, Session):
                values = self._values(item)
                yield without_private_data(item, values)
                for value in values.removed:
                    self._removed[value].add(item.user_id)
            else:
                yield item

    def clean_message(self, message: str) -> str:
        """Returns a message without the values of any user: it may quote any, and says of none whose it is."""
        words = set(words_in(message))
        words |= parts_of_words(words, self._table.unspaced_words)
        users = {user for word in words & self._table.words.keys() for user in self._table.words[word]}
        forms = [pair for user in users for pair in self._customers[user].forms.items() if words.issuperset(pair[0])]
        phones = {end for end in phone_ends(message) if end in self._phones}
        if self._find_entities is not None:
            entities = self._find_entities(message)
            forms += [(words_in(message[start:end]), kind) for start, end, kind in entities]
        if not forms and not phones:
            return message
        nothing = SharedWords(Customers(()))
        quoted = OwnValues(Customer(forms=dict(forms), phones=phones), nothing)
        # A single word outside quotes is the message's own.
        forms = [pair for pair in forms if len(pair[0]) > 1 or any(map(str.isdigit, pair[0][0]))]
        other = OwnValues(Customer(forms=dict(forms), phones=phones), nothing)
        return other.remove_from_text(_QUOTED.sub(lambda quote: quoted.remove_from_text(quote[0]), message))

    @cached_property
    def _phones(self) -> frozenset[str]:
        return frozenset(end for customer in self._customers.values() for end in customer.phones)

    def _hold(self, items: Iterator[Settled]) -> list[Settled]:
        """Reads the first items into memory and counts the words on their pages."""
        held: list[Settled] = []
        characters = 0
        for item in items:
            held.append(item)
            if isinstance(item, Session):
                addresses = (unquote(step.url) for step in item.steps if step.url)
                self._shared.count(item.user_ids, [*(step.page for step in item.steps), *addresses])
                characters += sum(len(step.page) for step in item.steps)
            if characters > _HELD_CHARACTERS:
                break
        return held

    def _values(self, session: Session) -> OwnValues:
        self._users.add(session.user_id)
        ids = [name for name in session.user_ids if name in self._customers]
        self._listed_users.update([session.user_id] if ids else ())
        customer = self._table.customer_of(ids)
        if self._find_entities is not None:
            customer = replace(customer, forms=dict(customer.forms))
            for line in dict.fromkeys(line for step in session.steps for line in lines_of(step.page)):
                for start, end, kind in self._find_entities(line):
                    customer.add_forms(kind, [words_in(line[start:end])])
        return OwnValues(customer, self._shared)

    def search(self, store: SessionStore, *, allow_found: bool) -> bool:
        """Searches a finished store for values of the table, and stores the counts in its manifest.

        Args:
            allow_found: Whether the manifest says `private_data = customers` even if values are found that no stated
                rule lets stay.

        Returns:
            Whether the manifest says so.
        """
        if not self._rows:
            return True
        manifest, rejected = store.manifest, store.path / REJECTED_FILE
        texts = [*manifest.options.values(), *manifest.warnings, *manifest.left_out_steps, *manifest.changed_values]
        messages = {"manifest.json": "\n".join(texts)}
        if rejected.is_file():
            records = (msgspec.json.decode(line, type=Rejected) for line in rejected.read_bytes().splitlines())
            messages[REJECTED_FILE] = "\n".join(record.reason for record in records)
        self._remaining.search(store, store, messages)
        leaks = self._remaining.leaks
        stayed = sum(map(Counter.total, self._remaining.stayed.values()))
        counts = {"values_found": str(len(leaks)), "values_stayed": str(stayed)}
        is_clean = allow_found or not leaks
        write_options(store.path, counts | ({"private_data": "customers"} if is_clean else {}))
        return is_clean

    def report(self) -> Iterator[str]:
        """Yields lines about what was removed, what a search of the store found, and what stays by a rule."""
        if self._rows:
            leaks = len(self._remaining.leaks)
            yield f"customers: {len(self._listed_users):,} of {len(self._users):,} users are in the table"
            advice = ": so it is not called `customers`, unless you --allow-found" if leaks else ""
            yield f"values of the table that are still in the store: {leaks:,}{advice}"
        for value, place in self._remaining.leaks[:_LISTED]:
            yield f"  found: {value.column} of user {value.user_id!r} in {place}"
        for rule, values in self._remaining.stayed.items():
            yield f"  stayed, {rule}: {_listed(values)}"
        many = max(_LEAST_USERS, 0.1 * len(self._users))
        if common := Counter(
            {unfold(value): len(users) for value, users in self._removed.items() if len(users) > many}
        ):
            yield f"  removed from the sessions of over a tenth of the users, so perhaps the shop's: {_listed(common)}"


def _listed(values: Counter[str]) -> str:
    text = ", ".join(f"{value!r} ({count:,})" for value, count in values.most_common(_LISTED))
    return f"{text} and {len(values) - _LISTED:,} more" if len(values) > _LISTED else text
