"""Removes private data from sessions on their way into a store.

    what importers read -> the first sessions, held until the values that users share are counted -> all, cleaned

What the pages of many users hold belongs to the shop: a contact line of its own, or a word that is also a customer's
name (Rose, Brown). Only other users' pages show which, so the first sessions wait in memory. Their pages are simplified
by then, and may come from any importer.
"""

import itertools
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from functools import cached_property
from urllib.parse import unquote

from msgspec.structs import replace

from replay_sessions.importers.importer import Read
from replay_sessions.importers.private_sessions import settle_session, without_number, without_private_data
from replay_sessions.importers.remaining_values import listed_values
from replay_sessions.private_data.customer_values import OwnValues, SharedWords, lines_of, phone_ends
from replay_sessions.private_data.customers import Customer, Customers, parts_of_words, unfold, words_in
from replay_sessions.private_data.ner import FindEntities
from replay_sessions.private_data.removal import MARKED
from replay_sessions.schema import Session
from replay_sessions.store.manifest import Rejected

_HELD_CHARACTERS = 100_000_000
# A household or a shared computer may be four users. A person's value that others see, too, in a review or a list of
# sellers, reaches few of a shop's users; a contact line reaches all users of some kind of page.
_LEAST_CONTACT_USERS = 5
_LEAST_CONTACT_SHARE = 0.1
_LEAST_USERS = 2  # whose pages lose a value, for it to be reported
_QUOTED = re.compile(r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"")


class Cleaner:
    """Removes values that look private by their form, and the known data of users from their own sessions.

    Args:
        customers: The shop's table of customers. If None, nothing is known of users.
        find_entities: Function that finds names and addresses in a line, of any person. If None, only the table is
            used.

    Attributes:
        contacts: The marked values that stay, because they are the shop's contact lines.
    """

    def __init__(self, customers: Customers | None = None, find_entities: FindEntities | None = None) -> None:
        self._table = customers or Customers(())
        self._find_entities = find_entities
        self._knows_users = bool(customers) or find_entities is not None
        self._shared = SharedWords(self._table)
        self.contacts: set[str] = set()
        self._removed: defaultdict[str, set[str]] = defaultdict(set)  # by value, the users whose sessions lost it
        self._users: set[str] = set()
        self._listed_users: set[str] = set()  # in the table by any of their ids

    def clean_all(self, reads: Iterator[Read]) -> Iterator[Read]:
        """Yields what an importer read, in order, with the sessions and the reasons of rejected records cleaned."""
        for read in itertools.chain(self._hold(reads), reads):
            session = read.session and self.clean(read.session, is_marked=read.is_marked)
            rejected = [Rejected(where=item.where, reason=self.clean_message(item.reason)) for item in read.rejected]
            yield replace(read, session=session, is_marked=False, rejected=rejected)

    def clean(self, session: Session, *, is_marked: bool) -> Session:
        """Returns a session without private data.

        Args:
            is_marked: Whether the values on its pages that look private by their form are marked.
        """
        if is_marked:
            session = settle_session(session, self.contacts)
        if self._knows_users:
            values = self._values(session)
            session = without_private_data(session, values)
            for value in values.removed:
                self._removed[value].add(session.user_id)
        return session

    def clean_message(self, message: str) -> str:
        """Returns a message without the values of any user: it may quote any, and says of none whose it is."""
        words = set(words_in(message))
        words |= parts_of_words(words, self._table.unspaced_words)
        users = {user for word in words & self._table.words.keys() for user in self._table.words[word]}
        forms = [
            pair for user in users for pair in self._table.by_user[user].forms.items() if words.issuperset(pair[0])
        ]
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
        return frozenset(end for customer in self._table.by_user.values() for end in customer.phones)

    def _hold(self, reads: Iterator[Read]) -> list[Read]:
        """Reads the first sessions into memory, and counts the values that users share."""
        held: list[Read] = []
        characters = 0
        for read in reads:
            held.append(read)
            if read.session is not None:
                characters += sum(len(step.page) for step in read.session.steps)
                is_counted = read.is_marked or self._table  # an import marks all sessions or none
                if not is_counted or characters > _HELD_CHARACTERS:
                    break
        self.contacts = find_contact_lines(read.session for read in held if read.session and read.is_marked)
        for session in (read.session for read in held if read.session and self._table):
            addresses = (unquote(step.url) for step in session.steps if step.url)
            pages = (step.page for step in settle_session(session, self.contacts).steps)
            self._shared.count(session.user_ids, [*pages, *addresses])
        return held

    def _values(self, session: Session) -> OwnValues:
        self._users.add(session.user_id)
        ids = [name for name in session.user_ids if name in self._table.by_user]
        self._listed_users.update([session.user_id] if ids else ())
        customer = self._table.customer_of(ids)
        if self._find_entities is not None:
            customer = replace(customer, forms=dict(customer.forms))
            for line in dict.fromkeys(line for step in session.steps for line in lines_of(step.page)):
                for start, end, kind in self._find_entities(line):
                    customer.add_forms(kind, [words_in(line[start:end])])
        return OwnValues(customer, self._shared)

    def report(self) -> Iterator[str]:
        """Yields lines about the values of users that were removed."""
        if not self._knows_users:
            yield "without --customers, names of people and postal addresses in texts stay (docs/privacy.md)"
        if self._table:
            yield f"customers: {len(self._listed_users):,} of {len(self._users):,} users are in the table"
        many = max(_LEAST_USERS, 0.1 * len(self._users))
        if common := Counter(
            {unfold(value): len(users) for value, users in self._removed.items() if len(users) > many}
        ):
            values = listed_values(common)
            yield f"  removed from the sessions of over a tenth of the users, so perhaps the shop's: {values}"


def find_contact_lines(sessions: Iterable[Session]) -> set[str]:
    """Returns the marked values that belong to the shop, because they are on the pages of many users.

    Such a value stays on every page. Names of elements never contain it, so that no name depends on the other users of
    a log.
    """
    users_with: defaultdict[str, set[str]] = defaultdict(set)
    users: set[str] = set()
    private: set[str] = set()
    for session in sessions:
        # Sessions without an id of a user may all be of one person.
        user_id = session.user_id if session.user_id != without_number(session.session_id) else ""
        users.add(user_id)
        for kind, value in MARKED.findall("".join(step.page for step in session.steps)):
            users_with[value].add(user_id)
            if kind:  # a value without a kind stays in any case
                private.add(value)
    least = max(_LEAST_CONTACT_USERS, _LEAST_CONTACT_SHARE * len(users))
    return {value for value in private if len(users_with[value]) >= least}
