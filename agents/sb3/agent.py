"""A policy of Stable-Baselines3 as an agent: observation ─► candidates and features ─► number ─► reply.

python -m benchmarks.leaderboard --agents "sb3?path=runs/ppo" --out runs/board
python -m benchmarks.leaderboard --agents "sampled=sb3?path=runs/ppo&sample=true" --out runs/board
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from agents.distribution import DistributionAgent, Floats
from agents.sb3.saved import load_policy
from replay_sessions.foundation.errors import BadConfig
from replay_sessions.schema import Action
from shop_env.observation import Observation
from shop_env.wrappers import discrete_view

_SMALLEST = 1e-12


class Sb3Agent(DistributionAgent):
    """Chooses among the page's candidates as a saved policy does; its replies have no rationale.

    Args:
        path: The folder that agents.sb3.train or agents.sb3.saved.save_policy wrote.
        sample: Draw from the policy instead of taking its likeliest candidate; for actor-critic policies.
        policy_class: See agents.sb3.saved.load_policy.
    """

    def __init__(self, path: str, *, sample: bool = False, policy_class: type[Any] | None = None) -> None:
        super().__init__(temperature=float(sample))
        self._policy, self.saved = load_policy(path, policy_class)
        self._is_stochastic = hasattr(self._policy, "get_distribution")
        if sample and not self._is_stochastic:
            raise BadConfig(f"'{path}' was trained by {self.saved.algorithm}, which gives no probabilities to sample.")

    def probabilities(
        self, observations: Sequence[Observation], *, seeds: Sequence[int | None] = ()
    ) -> list[dict[Action, float]] | None:
        """The policy's probability of each candidate of each page; None where it gives none (DQN)."""
        return super().probabilities(observations) if self._is_stochastic else None

    def distributions(self, observations: Sequence[Observation]) -> list[tuple[Sequence[Action], Floats]]:
        views = [discrete_view(observation, self.saved.max_candidates, self.saved.view) for observation in observations]
        rows = self._shares(_stack([features for features, _ in views]))
        results: list[tuple[Sequence[Action], Floats]] = []
        for (_, candidates), row in zip(views, rows, strict=True):
            shares = row[: len(candidates)] + _SMALLEST  # a policy without a mask may prefer candidates that are absent
            results.append((candidates, shares / shares.sum()))
        return results

    def _shares(self, features: Any) -> Floats:
        """The probabilities of all candidates, present or not: shape (B, max_candidates)."""
        if not self._is_stochastic:  # all on one candidate; where that is absent, terminate (number 0) remains
            numbers, _ = self._policy.predict(features, deterministic=True)
            chosen: Floats = np.eye(self.saved.max_candidates)[numbers]
            return chosen
        with torch.no_grad():
            tensors, _ = self._policy.obs_to_tensor(features)
            shares: Floats = self._policy.get_distribution(tensors).distribution.probs.double().cpu().numpy()
        return shares


def _stack(features: Sequence[Any]) -> Any:
    if isinstance(features[0], dict):
        return {key: np.stack([row[key] for row in features]) for key in features[0]}
    return np.stack(features)
