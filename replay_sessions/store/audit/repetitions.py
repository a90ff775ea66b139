"""Finds sessions of a store that repeat another one.

A session may repeat another session exactly, or nearly so across splits. A held-out session nearly repeats a session
of train if it has the same goal, if its actions are the same except for at most one on either side, and if most of the
content of its pages is the same. Sessions with fewer than three distinct actions are too short to compare.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from functools import reduce
from operator import xor

from replay_sessions.store import SessionStore
from replay_sessions.store.audit.scan import SessionFacts

_LEAST_ACTIONS = 3
_SAME_CONTENT = 0.8
# Common short walks share their actions with many sessions, so only this many are compared page by page.
_COMPARED = 5


def find_exact_duplicates(facts: Iterable[SessionFacts]) -> list[tuple[str, str]]:
    """Finds pairs (first, copy) of sessions with the same goal, pages, actions and rationales."""
    first: dict[bytes, str] = {}
    return [
        (original, fact.session_id)
        for fact in facts
        if (original := first.setdefault(fact.content, fact.session_id)) != fact.session_id
    ]


def find_leaks(store: SessionStore, facts: Sequence[SessionFacts]) -> list[tuple[str, str]]:
    """Finds pairs (held out, in train) of sessions that are nearly the same.

    Each held-out session is in at most one pair.
    """
    in_train: defaultdict[int, list[str]] = defaultdict(list)
    for fact in facts:
        if fact.split == "train":
            for key in _keys(fact):
                in_train[key].append(fact.session_id)
    leaks = []
    for fact in facts:
        if fact.split == "train":
            continue
        candidates = dict.fromkeys(other for key in _keys(fact) for other in in_train.get(key, ()))
        for other in list(candidates)[:_COMPARED]:
            if _content_overlap(store, fact.session_id, other) >= _SAME_CONTENT:
                leaks.append((fact.session_id, other))
                break
    return leaks


def _keys(fact: SessionFacts) -> Iterator[int]:
    """Yields hashes of the goal with the set of actions, and with the set minus each action.

    Two sets that differ by one action therefore share a key.
    """
    if len(fact.action_keys) < _LEAST_ACTIONS or fact.may_coincide:
        return
    actions = [int.from_bytes(key, "big") for key in fact.action_keys]
    key = reduce(xor, actions, hash(fact.goal))
    yield key
    yield from (key ^ action for action in actions)


def _content_overlap(store: SessionStore, *session_ids: str) -> float:
    """Returns the overlap (Jaccard) between the pieces (texts between `<`) of all pages of two sessions."""
    first, second = (
        {piece for step in store.session(session_id).steps for piece in step.page.split("<")}
        for session_id in session_ids
    )
    return len(first & second) / max(1, len(first | second))
