"""Agents to compare with: every action alike, and what people did most often on such pages."""

from collections import Counter
from collections.abc import Sequence

import numpy as np

from agents.adapted import DistributionAgent, Floats, TrainView
from benchmarks.studies.real_shoppers.logged_shop import page_kind
from replay_sessions.schema import Action, reply_action
from shop_env.candidates import candidate_actions
from shop_env.observation import Observation
from shop_env.replies import action_json

MOST_ACTIONS = 400


class Uniform(DistributionAgent):
    """Every action of the page alike."""

    def __init__(self, temperature: float = 1.0) -> None:
        super().__init__(temperature)

    def distributions(self, observations: Sequence[Observation]) -> list[tuple[Sequence[Action], Floats]]:
        """See DistributionAgent."""
        pages = [(candidate_actions(observation, MOST_ACTIONS), observation["page"]) for observation in observations]
        weights = [np.array([self.weigh(page, action) for action in actions]) for actions, page in pages]
        return [(actions, own / own.sum()) for (actions, _), own in zip(pages, weights, strict=True)]

    def weigh(self, page: str, action: Action) -> float:
        """What the probability of an action is proportional to."""
        return 1.0


class Popularity(Uniform):
    """By how often the action was done on pages of this kind in the train split, plus one."""

    def __init__(self, store: TrainView | str, temperature: float = 1.0) -> None:
        super().__init__(temperature)
        sessions = TrainView.of(store).sessions()
        self._counts = Counter(self._key(step.page, step.action) for session in sessions for step in session.steps)

    def weigh(self, page: str, action: Action) -> float:
        """See Uniform."""
        return 1.0 + self._counts[self._key(page, action)]

    def _key(self, page: str, action: Action) -> tuple[frozenset[str], str]:
        return page_kind(page), action_json(reply_action(action))
