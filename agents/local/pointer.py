"""`pointer`: a network that scores the page's own elements (train/pointer), fitted to the train split or from a checkpoint.

    TrainView ─► fit_pointer ─► Pointer     observation ─► Pointer.weigh ─► choices and their probabilities

shop-r1 rank --agents pointer,page_counts --likelihood --store STORE --out boards/pointer
make_agent("runs/mine/pointer")                      a checkpoint of `shop-r1 train --preset pointer_cpu`
"""  # noqa: E501 - a summary is a line

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

from agents.adapted import Distribution, DistributionAgent
from shop_env.observation import Observation, adapt
from shop_env.train_view import TrainView
from train.pointer.checkpoint import load_pointer
from train.pointer.fit import Pointer, fit_pointer


class PointerPolicy(DistributionAgent):
    """A pointer network of a checkpoint; it is shown no persona, goal or past rationales if it was trained without.

    Args:
        path: The checkpoint's folder.
        temperature: See DistributionAgent.
    """

    def __init__(self, path: str, *, temperature: float = 0.0) -> None:
        super().__init__(temperature)
        self._pointer, info = load_pointer(Path(path))
        self._context = info.context

    def distributions(self, observations: Sequence[Observation]) -> list[Distribution]:
        return list(self._pointer.weigh([adapt(observation, self._context) for observation in observations]))


class PointerAgent(DistributionAgent):
    """A GRU over past actions whose softmax runs over the page's own elements: GRU4Rec with the slate.

    Args:
        store: The store to learn from: its train split.
        temperature: See DistributionAgent.
        first_action: Learn from the first step of each session too.
        inferred: Learn from inferred actions too.
        max_steps: The maximum number of steps to learn from; None means all. If the split has more, a random sample of
            whole sessions is read.
        seed: The seed of the network's weights and of the order of sessions.
    """

    def __init__(
        self,
        store: TrainView | str,
        *,
        temperature: float = 0.0,
        first_action: bool = False,
        inferred: bool = False,
        max_steps: int | None = None,
        seed: int = 0,
    ) -> None:
        super().__init__(temperature)
        self._pointer = _fit(TrainView.of(store), seed, first_action, inferred, max_steps)

    def distributions(self, observations: Sequence[Observation]) -> list[Distribution]:
        return list(self._pointer.weigh(observations))


@lru_cache(maxsize=2)  # mixtures that are ranked together fit the same networks, to all users and to nine in ten
def _fit(store: TrainView, seed: int, first_action: bool, inferred: bool, max_steps: int | None) -> Pointer:
    return fit_pointer(store, seed=seed, first_action=first_action, inferred=inferred, max_steps=max_steps)
