"""What all floors have in common: reading the train split, and from probabilities to replies.

TrainView ─► train_steps ─► Floor.learn        observation ─► Page ─► Floor.weigh ─► probabilities, likeliest reply
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from agents.floors.choices import Example, Page, Reader
from agents.train_view import TrainView
from replay_sessions.errors import BadConfig
from replay_sessions.schema import Action
from replay_sessions.store import SessionStore
from shop_env.observation import Observation
from shop_env.replies import format_reply

__all__ = ["Floats", "Floor", "shared_out"]

Floats = NDArray[np.float64]

UNIFORM_SHARE = 0.01  # of every distribution, over all choices: nothing on the page is held impossible


class Floor(ABC):
    """Chooses among the page's choices; its replies have no rationale.

    Args:
        temperature: 0 chooses the likeliest; T > 0 draws from p^(1/T), 1 being what was learnt, as simulated visits
            want it.
        store: What to learn from: its train split.
        skip_first_action: Learn from the steps that are scored, without each session's first.
        max_steps: Learn from at most so many steps, the first of the split: 30,000 take a minute to read, and up to a
            gigabyte of memory.
    """

    def __init__(
        self,
        store: TrainView | str,
        *,
        temperature: float = 0.0,
        skip_first_action: bool = True,
        max_steps: int = 30_000,
    ) -> None:
        if max_steps < 1:
            raise BadConfig(f"max_steps is {max_steps}; it must be 1 or more")
        if temperature < 0:
            raise BadConfig(f"temperature is {temperature}; it must not be below 0")
        self._temperature = temperature
        self._seed: int | None = None
        store = TrainView(SessionStore.open(store)) if isinstance(store, str) else store
        self._reader, examples = train_steps(store, skip_first_action, max_steps)
        if not examples:
            raise BadConfig(
                f"A floor learns from the train split, and that of store '{store.name}' has no step to learn from"
            )
        self.learn(examples)

    @abstractmethod
    def learn(self, examples: Sequence[Example]) -> None:
        """Takes from the train split what `weigh` needs."""

    @abstractmethod
    def weigh(self, pages: Sequence[Page]) -> list[Floats]:
        """For each page how likely each of its choices is, (choices,), summing to 1."""

    def reset(self, *, seed: int | None = None) -> None:
        """Seeds the next draw."""
        self._seed = seed

    def act(self, observation: Observation) -> str:
        """One action."""
        return self.act_batch([observation], seeds=[self._seed])[0]

    def act_batch(self, observations: Sequence[Observation], *, seeds: Sequence[int | None]) -> list[str]:
        """An action for each page; of equally likely ones the one offered first."""
        pages = [self._reader.read(observation) for observation in observations]
        return [
            format_reply("", page.choices[self._chosen(shares, seed)].action)
            for page, shares, seed in zip(pages, self._smoothed(pages), seeds, strict=True)
        ]

    def _chosen(self, shares: Floats, seed: int | None) -> int:
        if self._temperature == 0:
            return int(shares.argmax())
        powers = (shares / shares.max()) ** (1 / self._temperature)
        return int(np.random.default_rng(seed).choice(len(shares), p=powers / powers.sum()))

    def probabilities(self, observations: Sequence[Observation]) -> list[dict[Action, float]]:
        """Of every choice on each page."""
        pages = [self._reader.read(observation) for observation in observations]
        return [
            {choice.action: float(share) for choice, share in zip(page.choices, shares, strict=True)}
            for page, shares in zip(pages, self._smoothed(pages), strict=True)
        ]

    def _smoothed(self, pages: Sequence[Page]) -> list[Floats]:
        return [
            (1 - UNIFORM_SHARE) * shares + UNIFORM_SHARE / len(page.choices)
            for page, shares in zip(pages, self.weigh(pages) if pages else [], strict=True)
        ]


@lru_cache(maxsize=1)  # floors are ranked together, and reading takes longer than most of them learn
def train_steps(store: TrainView, skip_first_action: bool, max_steps: int) -> tuple[Reader, list[Example]]:
    """What is learnt from: kept in memory for the next floor of the same store, and nowhere else."""
    reader = Reader(store)
    return reader, list(reader.examples(store, skip_first_action=skip_first_action, max_steps=max_steps))


def shared_out(labels: Sequence[str], shares: Iterable[float]) -> Floats:
    """The share of each label, in the order of their first appearance, divided among those that carry it.

    >>> shared_out(["click a", "click b", "click a"], [0.5, 0.5]).tolist()
    [0.25, 0.5, 0.25]
    """
    of_label = dict(zip(dict.fromkeys(labels), shares, strict=True))
    carriers = {label: labels.count(label) for label in of_label}
    return np.array([of_label[label] / carriers[label] for label in labels])
