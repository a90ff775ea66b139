"""`pointer`: a network that is fitted to the train split and scores the page's own elements (train/pointer).

    TrainView ─► fit_pointer ─► Pointer     observation ─► Pointer.weigh ─► choices and their probabilities

shop-r1 rank --agents pointer,page_counts --likelihood --store STORE --out boards/pointer
"""

from collections.abc import Sequence

from agents.adapted import Distribution, DistributionAgent
from shop_env.observation import Observation
from shop_env.train_view import TrainView
from train.pointer.fit import fit_pointer


class PointerAgent(DistributionAgent):
    """A GRU over past actions whose softmax runs over the page's own elements: GRU4Rec with the slate.

    Args:
        store: The store to learn from: its train split.
        temperature: See DistributionAgent.
        skip_first_action: Learn from the steps that are scored, without the first step of each session.
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
        skip_first_action: bool = True,
        inferred: bool = False,
        max_steps: int | None = None,
        seed: int = 0,
    ) -> None:
        super().__init__(temperature)
        self._pointer = fit_pointer(
            TrainView.of(store), skip_first_action=skip_first_action, inferred=inferred, max_steps=max_steps, seed=seed
        )

    def distributions(self, observations: Sequence[Observation]) -> list[Distribution]:
        return list(self._pointer.weigh(observations))
