"""The one way to a language model in training: packed trees in, statistics of their reply tokens out.

    PackedTrees ─► decoder (tree attention) ─► the states that predict reply tokens ─► head, in chunks ─► PolicyStats

Decoder and head run inside one `forward`, so what acts on a module's forward acts on all of it: mixed precision here,
and whatever wraps a module (hooks of sharding, compilation, adapters) without a change to the trainers.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

import torch
from torch import Tensor, nn

from shop_env.reward.score import SelfCertainty
from train.policy_stats import PolicyStats, log_probabilities, policy_stats
from train.session_tree import PackedTrees, predicting_states

__all__ = ["Policy"]

T = TypeVar("T")


class Policy(nn.Module):
    """A causal language model with session-tree attention (train.session_tree.enable_tree_attention).

    Args:
        autocast: What matrix products are computed in while weights, gradients and the softmax stay float32; None: as
            the weights are. bfloat16 needs no loss scaling.
    """

    def __init__(self, model: Any, *, autocast: torch.dtype | None = None) -> None:
        super().__init__()
        self.model = model
        self._autocast = autocast

    @property
    def device(self) -> torch.device:
        found: torch.device = self.model.device
        return found

    def forward(self, packed: PackedTrees, head: Callable[[Tensor, Tensor], T]) -> T:
        """`head` of the states (N, H) that predict the reply tokens, and of the output weight (V, H)."""
        with torch.autocast(self.device.type, dtype=self._autocast, enabled=self._autocast is not None):
            return head(predicting_states(self.model, packed), self.model.get_output_embeddings().weight)

    def log_probs(self, packed: PackedTrees, *, temperature: float = 1.0) -> Tensor:
        """(N,) of the reply tokens under softmax(logits / temperature)."""
        found: Tensor = self(packed, partial(log_probabilities, targets=packed.targets, temperature=temperature))
        return found

    def stats(self, packed: PackedTrees, *, temperature: float, definition: SelfCertainty) -> PolicyStats:
        """Log-probabilities, entropy and self-certainty of the reply tokens."""
        measure = partial(policy_stats, targets=packed.targets, temperature=temperature, definition=definition)
        found: PolicyStats = self(packed, measure)
        return found
