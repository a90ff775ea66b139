"""Counts typed texts that few users typed, and blanks them.

A search that one person alone has typed may name that person, a neighbor or an illness: shared logs of searches leak by
such texts first. Blanked are the text itself, the same text as a parameter of an address, and as a field's value.
Headings and rationales that repeat it stay.
"""

import html
import re
from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import NamedTuple

from msgspec.structs import replace

from replay_sessions.elements import normal_text
from replay_sessions.private_data.urls import with_changed_parts
from replay_sessions.schema import Session, Step, TypeAndSubmit
from replay_sessions.store import SessionStore
from replay_sessions.store.audit.repair import open_alone, rewrite_store
from replay_sessions.store.manifest import write_options

FEW_USERS = 5
_VALUE = re.compile(r'(?<= value=")[^"]+')  # of a field


class TypedTexts(NamedTuple):
    """The distinct typed texts of a log, in lower case and with single blanks.

    Attributes:
        every: All of them.
        rare: Those that few users typed.
    """

    every: frozenset[str]
    rare: frozenset[str]


def describe_rare(rare: int, every: int, few: int = FEW_USERS) -> str:
    """Returns a line about the numbers of rare and of all typed texts."""
    return (
        f"{rare:,} of {every:,} distinct ones are of fewer than {few} users (`import --rare-texts {few}` blanks them)"
    )


def normal_texts(session: Session) -> frozenset[str]:
    """Returns the typed texts of a session in lower case and with single blanks."""
    actions = (step.action for step in session.steps)
    return frozenset(
        normal for action in actions if isinstance(action, TypeAndSubmit) if (normal := normal_text(action.text))
    )


def find_rare(typed: Iterable[tuple[str, Iterable[str]]], few: int = FEW_USERS) -> TypedTexts:
    """Finds the typed texts that few users typed.

    Args:
        typed: Pairs of a user and texts of theirs, as `normal_texts` returns them.
        few: The least number of users that is not few.
    """
    users_of: defaultdict[str, set[str]] = defaultdict(set)
    for user, texts in typed:
        for text in texts:
            users_of[text].add(user)
    rare = frozenset(text for text, users in users_of.items() if len(users) < few)
    return TypedTexts(frozenset(users_of), rare)


def find_rare_in(store: SessionStore, few: int = FEW_USERS) -> TypedTexts:
    """Finds the typed texts of a store that few users typed."""
    return find_rare(((session.user_id, normal_texts(session)) for session in store.sessions()), few)


def blank_rare_texts(store: SessionStore, few: int) -> int:
    """Rewrites a store without the typed texts that few users typed, and returns how many texts these were."""
    rare = find_rare_in(store, few).rare
    with open_alone(store.path) as store:
        if rare:
            rewrite_store(store, {}, change=lambda session: _without(session, rare))
        write_options(store.path, {"rare_texts": f"of fewer than {few} users are blank ({len(rare)})"})
    return len(rare)


def _without(session: Session, rare: frozenset[str]) -> Session:
    own = normal_texts(session) & rare

    def blank(_: str, value: str) -> str:
        return "[text]" if normal_text(value) in own else value

    return replace(session, steps=tuple(_blank(step, own, blank) for step in session.steps)) if own else session


def _blank(step: Step, rare: frozenset[str], blank: Callable[[str, str], str]) -> Step:
    action = step.action
    if isinstance(action, TypeAndSubmit) and normal_text(action.text) in rare:
        action = replace(action, text="")
    page = _VALUE.sub(lambda value: "" if normal_text(html.unescape(value[0])) in rare else value[0], step.page)
    return replace(step, action=action, page=page, url=step.url and with_changed_parts(step.url, blank))
