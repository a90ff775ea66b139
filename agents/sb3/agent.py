"""A policy of Stable-Baselines3 as an agent: observation ─► candidates and features ─► number ─► reply.

python -m benchmarks.leaderboard --agents "sb3?path=runs/ppo" --out runs/board
python -m benchmarks.leaderboard --agents "sampled=sb3?path=runs/ppo&sample=true" --out runs/board
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from agents.sb3.saved import load_policy
from replay_sessions.errors import BadConfig
from shop_env.observation import Observation
from shop_env.replies import format_reply
from shop_env.wrappers import discrete_view

__all__ = ["Sb3Agent"]


class Sb3Agent:
    """Chooses among the page's candidates as a saved policy does; its replies have no rationale.

    Args:
        path: The folder that agents.sb3.train or agents.sb3.saved.save_policy wrote.
        sample: Draw from the policy instead of taking its likeliest candidate; for actor-critic policies.
        policy_class: See agents.sb3.saved.load_policy.
    """

    def __init__(self, path: str, *, sample: bool = False, policy_class: type[Any] | None = None) -> None:
        self._policy, self.saved = load_policy(path, policy_class)
        if sample and not hasattr(self._policy, "get_distribution"):
            raise BadConfig(f"'{path}' was trained by {self.saved.algorithm}, which gives no probabilities to sample.")
        self._sample = sample
        self._random = np.random.default_rng()

    def reset(self, *, seed: int | None = None) -> None:
        """Seeds the sampling."""
        self._random = np.random.default_rng(seed)

    def act(self, observation: Observation) -> str:
        """The reply to one observation."""
        return self.act_batch([observation])[0]

    def act_batch(self, observations: Sequence[Observation]) -> list[str]:
        """One reply per observation."""
        if not observations:
            return []
        views = [discrete_view(observation, self.saved.max_candidates, self.saved.view) for observation in observations]
        counts = [len(candidates) for _, candidates in views]
        chosen = self._choose(_stacked([features for features, _ in views]), counts)
        return [format_reply("", candidates[number]) for number, (_, candidates) in zip(chosen, views, strict=True)]

    def _choose(self, features: Any, counts: Sequence[int]) -> list[int]:
        """For each page the number of a candidate that is there."""
        if not hasattr(self._policy, "get_distribution"):
            numbers, _ = self._policy.predict(features, deterministic=True)
            # Without probabilities there is no second choice: a number without a candidate leaves (number 0).
            return [int(number) if number < count else 0 for number, count in zip(numbers, counts, strict=True)]
        probabilities = self._probabilities(features)
        probabilities *= np.arange(self.saved.max_candidates) < np.array(counts)[:, None]
        if not self._sample:
            return [int(number) for number in probabilities.argmax(axis=1)]
        shares = probabilities / probabilities.sum(axis=1, keepdims=True)
        return [int(self._random.choice(len(share), p=share)) for share in shares]

    def _probabilities(self, features: Any) -> NDArray[np.float64]:
        with torch.no_grad():
            tensors, _ = self._policy.obs_to_tensor(features)
            found = self._policy.get_distribution(tensors).distribution.probs
        probabilities: NDArray[np.float64] = found.double().cpu().numpy()
        return probabilities


def _stacked(features: Sequence[Any]) -> Any:
    first = features[0]
    if isinstance(first, dict):
        return {key: np.stack([one[key] for one in features]) for key in first}
    return np.stack(features)
