"""Which steps of a split are scored, and what an agent sees at each.

    SessionStore ─► scored_keys (by the index alone) ─► steps_at ─► ScoredStep ─► agents/asking.py

The first action of a session is not scored unless told: every session begins on the home page, so the papers count one
page-action pair as known (Shop-R1, section 4.1; OPeRA).
"""

from collections.abc import Collection, Iterator
from typing import Literal, NamedTuple

from replay_sessions.errors import BadConfig
from replay_sessions.schema import Action, Session, Split
from replay_sessions.store import SessionStore
from shop_env.context import ContextConfig
from shop_env.observation import Observation, ObservedSession
from shop_env.personas import persona_texts

__all__ = ["AnySplit", "ScoredStep", "StepKey", "scored_keys", "scored_steps", "sessions_at", "steps_at"]

AnySplit = Split | Literal["all"]
StepKey = tuple[str, int]  # session id and step index


class ScoredStep(NamedTuple):
    """One step that an agent is asked about."""

    session: Session
    step_index: int
    observation: Observation

    @property
    def key(self) -> StepKey:
        return self.session.session_id, self.step_index

    @property
    def logged(self) -> Action:
        return self.session.steps[self.step_index].action


def scored_keys(
    store: SessionStore,
    split: AnySplit,
    *,
    skip_first_action: bool = True,
    max_sessions: int | None = None,
    session_ids: Collection[str] | None = None,
) -> list[StepKey]:
    """The steps to evaluate on, in the order of the store.

    Args:
        max_sessions: Only the first so many sessions of the split.
        session_ids: Only these sessions.

    Raises:
        BadConfig: There is none.
    """
    chosen = store.session_ids(split)[:max_sessions]
    if session_ids is not None:
        wanted = set(session_ids)
        chosen = [session_id for session_id in chosen if session_id in wanted]
    if not chosen:
        raise BadConfig(f"Split '{split}' of store '{store.path}' holds no session to evaluate")
    keys = [(one, index) for one in chosen for index in range(int(skip_first_action), store.step_count(one))]
    if not keys:
        raise BadConfig(
            f"Split '{split}' of store '{store.path}' has no step to score: each session has one step, and the first "
            "action is scored only when asked for"
        )
    return keys


def sessions_at(store: SessionStore, split: AnySplit, keys: Collection[StepKey]) -> Iterator[tuple[Session, list[int]]]:
    """The sessions of these steps of a split, each with the indices of those that are its own."""
    indices: dict[str, list[int]] = {}
    for session_id, index in keys:
        indices.setdefault(session_id, []).append(index)
    for session in store.sessions(split) if indices else ():
        if own := indices.pop(session.session_id, None):
            yield session, own
            if not indices:
                return


def steps_at(
    store: SessionStore, split: AnySplit, keys: Collection[StepKey], context: ContextConfig | None = None
) -> Iterator[ScoredStep]:
    """These steps of a split with what an agent sees there; context None: everything."""
    context = context or ContextConfig()
    personas = persona_texts(store, context)
    for session, indices in sessions_at(store, split, keys):
        observed = ObservedSession(session, context, personas)
        for index in indices:
            yield ScoredStep(session, index, observed.at(index))


def scored_steps(
    store: SessionStore,
    split: AnySplit,
    *,
    context: ContextConfig | None = None,
    skip_first_action: bool = True,
    max_sessions: int | None = None,
    session_ids: Collection[str] | None = None,
) -> Iterator[ScoredStep]:
    """The steps of `scored_keys` with what an agent sees there."""
    keys = scored_keys(
        store, split, skip_first_action=skip_first_action, max_sessions=max_sessions, session_ids=session_ids
    )
    yield from steps_at(store, split, keys, context)
