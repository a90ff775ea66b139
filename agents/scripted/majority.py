"""`majority`: always the whole action that is most frequent in the train split of the store it is evaluated on."""

from collections import Counter

import msgspec

from agents.train_view import TrainView
from replay_sessions.errors import BadConfig
from replay_sessions.schema import Action, reply_action
from replay_sessions.store import SessionStore
from shop_env.observation import Observation
from shop_env.replies import format_reply

__all__ = ["MajorityAgent", "most_frequent_action"]


class MajorityAgent:
    """Answers every page with one action; ties go to the action whose JSON text sorts first."""

    def __init__(self, store: TrainView | str, skip_first_action: bool = True) -> None:
        store = TrainView(SessionStore.open(store)) if isinstance(store, str) else store
        action = most_frequent_action(store, skip_first_action=skip_first_action)
        self._reply = format_reply("This is what shoppers do most often.", action)

    def reset(self, *, seed: int | None = None) -> None:
        """Nothing to forget."""

    def act(self, observation: Observation) -> str:
        return self._reply


def most_frequent_action(store: TrainView, *, skip_first_action: bool = True) -> Action:
    """The most frequent action among the steps that are scored (without each session's first, unless told)."""
    counts: Counter[bytes] = Counter()
    for session in store.sessions():
        for step in session.steps[skip_first_action:]:
            counts[msgspec.json.encode(reply_action(step.action))] += 1
    if not counts:
        raise BadConfig(f"Agent 'majority' learns from the train split, and that of store '{store.name}' is empty")
    highest = max(counts.values())
    most_frequent: Action = msgspec.json.decode(
        min(text for text, count in counts.items() if count == highest), type=Action
    )
    return most_frequent
