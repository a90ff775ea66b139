"""Keeps the shop's own contact lines in the pages of sessions that are on their way into a store.

    items of an import -> the first items, held until users are counted -> all items, with their final pages

A value that was recognized by its form and is on the pages of many users belongs to the shop, wherever it is. Names of
elements never contain it, so that no name depends on the other users of a log.
"""

import itertools
from collections import defaultdict
from collections.abc import Iterator

from msgspec.structs import replace

from replay_sessions.importers.importer import Imported, MarkedSteps, Settled
from replay_sessions.importers.private_sessions import settle_steps
from replay_sessions.private_data.removal import MARKED
from replay_sessions.schema import Session, Step

# A household or a shared computer may be four users. A person's value that others see, too, in a review or a list of
# sellers, reaches few of a shop's users; a contact line reaches all users of some kind of page.
_LEAST_USERS = 5
_LEAST_SHARE = 0.1
_HELD_CHARACTERS = 50_000_000


def keep_contact_lines(items: Iterator[Imported], options: dict[str, str]) -> Iterator[Settled]:
    """Yields the items of an import; values that are on the pages of many users stay on the pages.

    Args:
        options: Options of the manifest; the number of values that stay is added as `kept_contacts`.
    """
    held: list[Imported] = []
    users_with: defaultdict[str, set[str]] = defaultdict(set)
    users: set[str] = set()
    removed: set[str] = set()
    characters = 0
    for item in items:
        held.append(item)
        if isinstance(item, MarkedSteps):
            text = "".join(step.page for step in item.steps)
            characters += len(text)
            users.add(item.user_id)
            for kind, value in MARKED.findall(text):
                users_with[value].add(item.user_id)
                if kind:  # a value without a kind stays in any case
                    removed.add(value)
        elif isinstance(item, Session) and not 0 < characters < _HELD_CHARACTERS:
            break  # an import marks all sessions or none
    least = max(_LEAST_USERS, _LEAST_SHARE * len(users))
    contacts = {value for value in removed if len(users_with[value]) >= least}
    if contacts:
        options["kept_contacts"] = str(len(contacts))
    items = itertools.chain(held, items)
    del held  # so that the chain can free the items
    steps: tuple[Step, ...] = ()
    for item in items:
        if isinstance(item, MarkedSteps):
            steps = item.steps
        elif isinstance(item, Session) and contacts:
            yield replace(item, steps=settle_steps(steps, contacts))
        else:
            yield item
