"""Sessions that repeat another one: exactly anywhere, or nearly so across splits.

A held-out session nearly repeats one in train when it has the same goal, its actions are the same but for at most one
on either side, and most of its pages' content is the same. Sessions with fewer than three distinct actions are too
short to compare.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import reduce
from operator import xor
from typing import NamedTuple

from replay_sessions.store import SessionStore
from replay_sessions.store.audit.scan import SessionFacts

_LEAST_ACTIONS = 3
_SAME_CONTENT = 0.8
# Common short walks share their actions with many sessions; so many are compared page by page.
_COMPARED = 5


class Leak(NamedTuple):
    """A held-out session and one in train that it nearly repeats."""

    held_out: str
    train: str


def exact_duplicates(facts: Iterable[SessionFacts]) -> list[tuple[str, str]]:
    """Pairs (first, copy) of sessions with the same goal, pages, actions and rationales."""
    first: dict[bytes, str] = {}
    return [
        (original, fact.session_id)
        for fact in facts
        if (original := first.setdefault(fact.content, fact.session_id)) != fact.session_id
    ]


def leaks_across_splits(
    store: SessionStore, facts: Sequence[SessionFacts], on_progress: Callable[[int], None] = lambda _: None
) -> list[Leak]:
    """Held-out sessions that nearly repeat one in train; each is named once.

    Args:
        on_progress: Told how many held-out sessions were compared since the last call.
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
                leaks.append(Leak(fact.session_id, other))
                break
        on_progress(1)
    return leaks


def _keys(fact: SessionFacts) -> Iterator[int]:
    """The goal with the set of actions, and with that set less any one: sets that differ by one share a key."""
    if len(fact.action_keys) < _LEAST_ACTIONS:
        return
    actions = [int.from_bytes(key, "big") for key in fact.action_keys]
    key = reduce(xor, actions, hash(fact.goal))
    yield key
    yield from (key ^ action for action in actions)


def _content_overlap(store: SessionStore, *session_ids: str) -> float:
    """Overlap (Jaccard) of the pieces between tags of all pages of two sessions."""
    first, second = (
        {piece for step in store.session(session_id).steps for piece in step.page.split("<")}
        for session_id in session_ids
    )
    return len(first & second) / max(1, len(first | second))
