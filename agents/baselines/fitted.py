"""What all fitted baselines share: reading the train split, and from a page to its distribution.

TrainView ─► train_steps ─► FittedBaseline.learn        observation ─► Page ─► FittedBaseline.weigh ─► probabilities
"""

from abc import abstractmethod
from collections.abc import Iterable, Sequence
from functools import lru_cache

import numpy as np

from agents.baselines.choices import Example, Page, Reader
from agents.distribution import DistributionAgent, Floats
from agents.train_view import TrainView
from replay_sessions.foundation.errors import BadConfig
from replay_sessions.schema import Action
from shop_env.observation import Observation

UNIFORM_SHARE = 0.01  # of every distribution, over all choices: no choice on the page has probability 0


class FittedBaseline(DistributionAgent):
    """Chooses among the page's choices.

    Args:
        temperature: See DistributionAgent; simulated visits need 1.
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
        super().__init__(temperature)
        if max_steps < 1:
            raise BadConfig(f"max_steps is {max_steps}; it must be 1 or more")
        store = TrainView.of(store)
        self._reader, examples = train_steps(store, skip_first_action, max_steps)
        if not examples:
            raise BadConfig(
                f"A baseline learns from the train split, and that of store '{store.name}' has no step to learn from"
            )
        self.learn(examples)

    @abstractmethod
    def learn(self, examples: Sequence[Example]) -> None:
        """Takes from the train split what `weigh` needs."""

    @abstractmethod
    def weigh(self, pages: Sequence[Page]) -> Iterable[Floats]:
        """For each page how likely each of its choices is, (choices,), summing to 1; never called without a page."""

    def distributions(self, observations: Sequence[Observation]) -> list[tuple[Sequence[Action], Floats]]:
        pages = [self._reader.read(observation) for observation in observations]
        return [
            (
                [choice.action for choice in page.choices],
                (1 - UNIFORM_SHARE) * shares + UNIFORM_SHARE / len(page.choices),
            )
            for page, shares in zip(pages, self.weigh(pages), strict=True)
        ]


@lru_cache(maxsize=1)  # baselines are ranked together, and reading takes longer than most of them learn
def train_steps(store: TrainView, skip_first_action: bool, max_steps: int) -> tuple[Reader, list[Example]]:
    """What is learnt from: held in memory for the next baseline of the same store, and nowhere else."""
    reader = Reader(store)
    return reader, list(reader.examples(store, skip_first_action=skip_first_action, max_steps=max_steps))


def divide_shares(labels: Sequence[str], shares: Iterable[float]) -> Floats:
    """The share of each label, in the order of their first appearance, divided among those that carry it.

    >>> divide_shares(["click a", "click b", "click a"], [0.5, 0.5]).tolist()
    [0.25, 0.5, 0.25]
    """
    per_label = {label: share / labels.count(label) for label, share in zip(dict.fromkeys(labels), shares, strict=True)}
    return np.array([per_label[label] for label in labels])
