"""Sessions prepared for replay: observations, logged actions and best rewards, cached between the store and the env.

Reading a session from disk takes a millisecond, and a step of the env a few microseconds. So prepared sessions are
cached up to a number of page characters, and the least recently used one is dropped first. The envs of a process share
the cache.
"""

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Literal, Protocol, runtime_checkable

from replay_sessions.foundation.errors import BadConfig
from replay_sessions.schema import Action, Session, Split, written_action
from replay_sessions.store import SessionStore
from shop_env.observation import ContextConfig, ObservedSession
from shop_env.reward.score import RewardConfig, best_breakdown

SplitChoice = Split | Literal["all"]


@runtime_checkable
class SessionSource(Protocol):
    """The part of a store that the env uses; `replay_sessions.SessionStore` is one."""

    @property
    def fingerprint(self) -> str: ...
    def session_ids(self, split: SplitChoice = "all") -> list[str]: ...
    def step_count(self, session_id: str) -> int: ...
    def inferred_steps(self, session_id: str) -> Sequence[int]: ...
    def user_id(self, session_id: str) -> str: ...
    def session(self, session_id: str) -> Session: ...


def open_source(store: str | Path | SessionSource) -> SessionSource:
    """Opens the store at a path, or the store called `demo`; returns an opened store unchanged."""
    if isinstance(store, str | Path):
        return SessionStore.open(store)
    if not isinstance(store, SessionSource):
        raise BadConfig(
            f"store is {store!r}; it must be the path of a session store, 'demo', or an opened SessionStore."
        )
    return store


def scored_indices(store: SessionSource, session_id: str, *, first_action: bool, inferred: bool) -> list[int]:
    """Returns the indices of the scored steps of a session, from 0; agents also learn from these steps alone.

    The other steps only appear in the history.

    Args:
        first_action: Whether the first step is scored too, which the papers count as given.
        inferred: Whether steps with an inferred action are scored too (`Step.is_inferred`).
    """
    passed_over = set() if inferred else set(store.inferred_steps(session_id))
    return [index for index in range(int(not first_action), store.step_count(session_id)) if index not in passed_over]


class Episode:
    """One session, ready to be replayed."""

    __slots__ = ("actions", "best_rewards", "characters", "logged", "observed", "session_id", "user_id")

    def __init__(
        self,
        session: Session,
        context: ContextConfig,
        reward: RewardConfig,
        personas: Mapping[str, str] | None,
    ) -> None:
        self.session_id = session.session_id
        self.user_id = session.user_id
        self.observed = ObservedSession(session, context, personas)
        self.actions: list[Action] = [step.action for step in session.steps]
        self.logged = [written_action(step.action) for step in session.steps]
        self.best_rewards = [best_breakdown(action, reward).total for action in self.actions]
        self.characters = session.page_characters


class EpisodeCache:
    """A cache of episodes by key; drops the least recently used ones when the pages exceed `max_characters`."""

    def __init__(self, max_characters: int) -> None:
        self.max_characters = max_characters
        self.characters = 0
        self._episodes: OrderedDict[object, Episode] = OrderedDict()

    def get(self, key: object, prepare: Callable[[], Episode]) -> Episode:
        """Returns the episode under `key`; prepares it if it is not cached."""
        episode = self._episodes.get(key)
        if episode is None:
            episode = self._episodes[key] = prepare()
            self.characters += episode.characters
            while self.characters > self.max_characters and len(self._episodes) > 1:
                self.characters -= self._episodes.popitem(last=False)[1].characters
        else:
            self._episodes.move_to_end(key)
        return episode
