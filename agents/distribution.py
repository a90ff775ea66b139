"""Agents that hold a probability distribution over a page's actions, and draw from it or take its mode.

observation ─► DistributionAgent.distributions ─► probabilities, or: temperature ─► action ─► reply
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from agents.adapted import SeededAgent
from replay_sessions.foundation.errors import BadConfig
from replay_sessions.schema import Action
from shop_env.observation import Observation
from shop_env.replies import format_reply

Floats = NDArray[np.float64]


class DistributionAgent(SeededAgent, ABC):
    """Chooses among the actions of a page by their probabilities; its replies have no rationale.

    Args:
        temperature: 0 chooses the likeliest, of equal ones the first; T > 0 draws from p^(1/T), 1 being p itself.
    """

    def __init__(self, temperature: float) -> None:
        if temperature < 0:
            raise BadConfig(f"temperature is {temperature}; it must not be below 0")
        self._temperature = temperature

    @abstractmethod
    def distributions(self, observations: Sequence[Observation]) -> list[tuple[Sequence[Action], Floats]]:
        """For each page its actions and their probabilities, (actions,), summing to 1; never called without a page."""

    def act(self, observation: Observation) -> str:
        """One reply."""
        return self.act_batch([observation], seeds=[self._seed])[0]

    def act_batch(self, observations: Sequence[Observation], *, seeds: Sequence[int | None]) -> list[str]:
        """A reply to each page."""
        pairs = zip(self.distributions(observations) if observations else [], seeds, strict=True)
        return [format_reply("", actions[self._choose(shares, seed)]) for (actions, shares), seed in pairs]

    def _choose(self, shares: Floats, seed: int | None) -> int:
        if self._temperature == 0:
            return int(shares.argmax())
        powers = (shares / shares.max()) ** (1 / self._temperature)
        return int(np.random.default_rng(seed).choice(len(shares), p=powers / powers.sum()))

    def probabilities(self, observations: Sequence[Observation]) -> list[dict[Action, float]] | None:
        """The probability of every action of each page, whatever the temperature."""
        pages = self.distributions(observations) if observations else []
        return [dict(zip(actions, shares.tolist(), strict=True)) for actions, shares in pages]
