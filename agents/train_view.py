"""What an agent sees of the store that it will be evaluated on: the train split, and nothing else.

An agent is code that runs in the same process, so this stops nobody from opening the store's folder again. It only
ensures that the answers are not handed over, and not read by mistake.
"""

from collections.abc import Iterator
from typing import Literal

from replay_sessions.foundation.errors import BadConfig
from replay_sessions.schema import Session
from replay_sessions.store import SessionStore


class TrainView:
    """The train split of a store, read as a store is.

    Attributes:
        name, source, fingerprint: Of the whole store.
    """

    def __init__(self, store: SessionStore) -> None:
        self.name = store.path.name
        self.source = store.manifest.source
        self.fingerprint = store.fingerprint
        self._store = store
        self._ids = dict.fromkeys(store.session_ids("train"))

    @classmethod
    def of(cls, store: "TrainView | str") -> "TrainView":
        """A view as it is, or that of a store named by its path or as `demo`."""
        return cls(SessionStore.open(store)) if isinstance(store, str) else store

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TrainView) and other.fingerprint == self.fingerprint

    def __hash__(self) -> int:
        return hash(self.fingerprint)

    def __len__(self) -> int:
        return len(self._ids)

    def __contains__(self, session_id: object) -> bool:
        return session_id in self._ids

    def session_ids(self, split: Literal["train"] = "train") -> list[str]:
        _check(split)
        return list(self._ids)

    def sessions(self, split: Literal["train"] = "train") -> Iterator[Session]:
        """Streams them in storage order."""
        _check(split)
        return self._store.sessions("train")

    def session(self, session_id: str) -> Session:
        """Reads one of them."""
        if session_id not in self._ids:
            raise BadConfig(f"Session {session_id!r} is not in the train split, and an agent sees no other.")
        return self._store.session(session_id)


def _check(split: str) -> None:
    if split != "train":
        raise BadConfig(f"An agent asked for the split '{split}'; it sees the train split alone.")
