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
from replay_sessions.schema import Action
from shop_env.observation import Observation
from shop_env.replies import format_reply
from shop_env.wrappers import discrete_view

__all__ = ["Sb3Agent"]

_SMALLEST = 1e-12


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
        (reply,) = self._replies([observation], [self._random])
        return reply

    def act_batch(self, observations: Sequence[Observation], *, seeds: Sequence[int | None]) -> list[str]:
        """One reply per observation."""
        return self._replies(observations, [np.random.default_rng(seed) for seed in seeds])

    def _replies(self, observations: Sequence[Observation], sources: Sequence[np.random.Generator]) -> list[str]:
        if not observations:
            return []
        features, candidates = self._views(observations)
        chosen = self._choose(features, [len(offered) for offered in candidates], sources)
        return [format_reply("", offered[number]) for number, offered in zip(chosen, candidates, strict=True)]

    def probabilities(
        self, observations: Sequence[Observation], *, seeds: Sequence[int | None] = ()
    ) -> list[dict[Action, float]] | None:
        """The policy's probability of each candidate of each page; None where it gives none (DQN)."""
        if not hasattr(self._policy, "get_distribution"):
            return None
        features, candidates = self._views(observations)
        shares = self._shares(features, [len(offered) for offered in candidates])
        return [
            dict(zip(offered, map(float, row), strict=False)) for offered, row in zip(candidates, shares, strict=True)
        ]

    def _views(self, observations: Sequence[Observation]) -> tuple[Any, list[list[Action]]]:
        views = [discrete_view(observation, self.saved.max_candidates, self.saved.view) for observation in observations]
        return _stacked([features for features, _ in views]), [candidates for _, candidates in views]

    def _choose(self, features: Any, counts: Sequence[int], sources: Sequence[np.random.Generator]) -> list[int]:
        """For each page the number of a candidate that is there."""
        if not hasattr(self._policy, "get_distribution"):
            numbers, _ = self._policy.predict(features, deterministic=True)
            # Without probabilities there is no second choice: a number without a candidate leaves (number 0).
            return [int(number) if number < count else 0 for number, count in zip(numbers, counts, strict=True)]
        shares = self._shares(features, counts)
        if not self._sample:
            return [int(number) for number in shares.argmax(axis=1)]
        return [int(source.choice(len(share), p=share)) for source, share in zip(sources, shares, strict=True)]

    def _shares(self, features: Any, counts: Sequence[int]) -> NDArray[np.float64]:
        """The probabilities, shape (B, max_candidates); 0 where there is no candidate."""
        with torch.no_grad():
            tensors, _ = self._policy.obs_to_tensor(features)
            found = self._policy.get_distribution(tensors).distribution.probs.double().cpu().numpy()
        there = np.arange(self.saved.max_candidates) < np.array(counts)[:, None]
        found = (found + _SMALLEST) * there  # a policy without a mask may put all it has on what is not there
        shares: NDArray[np.float64] = found / found.sum(axis=1, keepdims=True)
        return shares


def _stacked(features: Sequence[Any]) -> Any:
    first = features[0]
    if isinstance(first, dict):
        return {key: np.stack([one[key] for one in features]) for key in first}
    return np.stack(features)
