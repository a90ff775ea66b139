"""The train split of a store, with the methods of a store: what agents are given of the store they are evaluated on.

    SessionStore ─► TrainView ─► agents, and what reads choices to learn from (choices/)

An agent is code that may run in the same process, so the view does not stop it from opening the store's folder. The
view only ensures that the answers are neither passed to agents nor read by mistake.
"""

from collections.abc import Iterable, Iterator
from copy import copy
from typing import Literal
from zlib import crc32

import msgspec
import numpy as np

from replay_sessions.foundation.errors import BadConfig
from replay_sessions.schema import Session, Split
from replay_sessions.store import SessionStore
from shop_env.episodes import scored_indices
from shop_env.observation import ContextConfig

_DEFAULT_CONTEXT = ContextConfig()
HELD_OUT = 10  # one user of so many is held out


class TrainView:
    """The train split of a store, with the methods of a store.

    Attributes:
        name, source, fingerprint, typing, scrolls: Properties of the store.
        context: The context in which the agent will see sessions, and should learn from them. An agent that will see
            shuffled personas learns from matched ones, because shuffled personas teach nothing.
    """

    def __init__(self, store: SessionStore, context: ContextConfig = _DEFAULT_CONTEXT) -> None:
        self.name = store.path.name
        self.source = store.manifest.source
        self.fingerprint = store.fingerprint
        self.typing, self.scrolls = store.typing, store.scrolls
        is_shuffled = context.persona == "shuffled"
        self.context = msgspec.structs.replace(context, persona="matched") if is_shuffled else context
        self._store = store
        self._split: Split = "train"
        self._key: tuple[object, ...] = (store.path, store.fingerprint, self.context)
        self._ids = dict.fromkeys(store.session_ids("train"))

    @classmethod
    def of(cls, store: "TrainView | str") -> "TrainView":
        """Returns the view of a store that is named by its path or as `demo`; returns a view unchanged."""
        return cls(SessionStore.open(store)) if isinstance(store, str) else store

    def __eq__(self, other: object) -> bool:
        """Returns whether both show the same sessions, so that what was read of one serves the other."""
        return isinstance(other, TrainView) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    def __len__(self) -> int:
        return len(self._ids)

    def session_ids(self, split: Literal["train"] = "train") -> list[str]:
        _check(split)
        return list(self._ids)

    def sessions(self, split: Literal["train"] = "train") -> Iterator[Session]:
        """Yields the sessions in storage order."""
        _check(split)
        sessions = self._store.sessions(self._split)
        return (session for session in sessions if session.session_id in self._ids)

    def divided(self) -> "tuple[TrainView, TrainView]":
        """Returns the view of nine users in ten, to fit to, and that of the others (`held_out_users`)."""
        users = {session_id: self._store.user_id(session_id) for session_id in self._ids}
        held_out = set(held_out_users(users.values()))
        return (
            self._of((session_id for session_id, user in users.items() if user not in held_out), "train"),
            self._of((session_id for session_id, user in users.items() if user in held_out), "train"),
        )

    def _of(self, session_ids: Iterable[str], split: Split) -> "TrainView":
        view = copy(self)
        view._ids, view._split = dict.fromkeys(session_ids), split
        view._key = (*self._key, *view._ids)
        return view

    def learnt(
        self, *, first_action: bool = False, inferred: bool = False, max_steps: int | None = None
    ) -> Iterator[tuple[Session, list[int]]]:
        """Yields sessions in storage order, each with the indices of the steps to learn from.

        These are the steps that an evaluation with the same options scores.

        Args:
            first_action: Include the first step of each session.
            inferred: Include inferred actions.
            max_steps: The maximum number of steps; None means all. If the split has more, a random sample of whole
                sessions is read, which is always the same for a store. At least one session is read.

        Raises:
            BadConfig: The train split has no step to learn from, or `max_steps` is below 1.
        """
        if max_steps is not None and max_steps < 1:
            raise BadConfig(f"max_steps is {max_steps}; it must be 1 or more")
        steps = {
            session_id: scored_indices(self._store, session_id, first_action=first_action, inferred=inferred)
            for session_id in self._ids
        }
        if not any(steps.values()):
            raise BadConfig(
                f"A baseline learns from the train split, and that of store '{self.name}' has no step to learn from"
            )
        sessions = self.sessions()
        if max_steps is not None:
            order = np.random.default_rng(0).permutation(list(steps))
            ends = np.cumsum([len(steps[session_id]) for session_id in order])
            sampled = {*order[: max(1, int(np.searchsorted(ends, max_steps, "right")))].tolist()}
            if len(sampled) < len(steps):
                sessions = (self._store.session(session_id) for session_id in self._ids if session_id in sampled)
        for session in sessions:
            yield session, steps[session.session_id]

    def session(self, session_id: str) -> Session:
        """Reads a session of the train split.

        Raises:
            BadConfig: The session is in another split, or in none.
        """
        if session_id not in self._ids:
            raise BadConfig(f"Session {session_id!r} is not in the train split, and an agent sees no other.")
        return self._store.session(session_id)


def held_out_users(users: Iterable[str]) -> list[str]:
    """Returns a tenth of the users, rounded down, by the hashes of their names."""
    ordered = sorted({*users}, key=lambda user: (crc32(f"held out {user}".encode("utf-8", "surrogatepass")), user))
    return ordered[: len(ordered) // HELD_OUT]


def validation_of(view: TrainView) -> TrainView:
    """Returns the view of the validation split, for agents that choose a few numbers by it."""
    return view._of(view._store.session_ids("validation"), "validation")


def _check(split: str) -> None:
    if split != "train":
        raise BadConfig(f"An agent asked for the split '{split}'; it sees the train split alone.")
