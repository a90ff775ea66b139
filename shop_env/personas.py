"""Whose persona an agent sees: the shopper's own, nobody's, another user's, or a generic one.

Customer-R1 compares them (sections 4.5 and 4.7). `shuffled` needs to know the other users, so whoever observes sessions
of a store asks `persona_texts` once and hands the result on.
"""

import random
from collections.abc import Mapping
from typing import Protocol

from replay_sessions.errors import BadConfig
from replay_sessions.schema import Session
from shop_env.context import ContextConfig

__all__ = ["GENERIC_PERSONA", "persona_of", "persona_texts", "shuffle_personas"]

GENERIC_PERSONA = "A person who shops online now and then."


class _Users(Protocol):
    def session_ids(self) -> list[str]: ...
    def user_id(self, session_id: str) -> str: ...
    def session(self, session_id: str) -> Session: ...


def persona_texts(store: _Users, context: ContextConfig) -> Mapping[str, str] | None:
    """What `persona_of` needs beyond the session: for `shuffled` each user's foreign persona, else None."""
    if context.persona != "shuffled":
        return None
    first_sessions: dict[str, str] = {}
    for session_id in store.session_ids():
        first_sessions.setdefault(store.user_id(session_id), session_id)
    sessions = {user: store.session(session_id) for user, session_id in first_sessions.items()}
    return shuffle_personas(
        {user: session.persona.text for user, session in sessions.items() if session.persona}, context.persona_seed
    )


def shuffle_personas(personas: Mapping[str, str], seed: int) -> dict[str, str]:
    """For each user the persona of another; of another text too, unless more than half of all users share one.

    >>> shuffle_personas({"ada": "thrifty", "bob": "picky"}, seed=1)
    {'bob': 'thrifty', 'ada': 'picky'}
    """
    rng = random.Random(seed)
    by_text: dict[str, list[str]] = {}
    for user in sorted(personas):
        by_text.setdefault(personas[user], []).append(user)
    groups = list(by_text.values())
    rng.shuffle(groups)
    for group in groups:
        rng.shuffle(group)
    users = [user for group in groups for user in group]
    # Equal texts stand together, so a turn by the largest group's size takes everyone out of their own group.
    turn = max((len(group) for group in groups), default=0) % max(len(users), 1)
    return {user: personas[users[(place + turn) % len(users)]] for place, user in enumerate(users)}


def persona_of(session: Session, context: ContextConfig, foreign: Mapping[str, str] | None) -> str:
    """The persona text that is shown with a session, "" for none."""
    if context.persona == "none" or session.persona is None:
        return ""
    if context.persona == "generic":
        return GENERIC_PERSONA
    if context.persona == "matched":
        return session.persona.text
    if foreign is None:
        raise BadConfig(
            "context.persona is 'shuffled', which needs the other users: pass personas=persona_texts(store, context)."
        )
    return foreign.get(session.user_id, "")  # nobody's where the user's first session had no persona to exchange
