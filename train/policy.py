"""The one way to a language model: sequences in, what a head makes of the states at some places out.

    PackedTrees ─► decoder (tree attention) ─► the states that predict reply tokens ─► head, in chunks ─► PolicyStats
    prompts     ─► decoder (rollouts)       ─► the last states                      ─► logits

Decoder and head run inside one `forward`, so what acts on a module's forward acts on all of it: mixed precision,
adapters and recomputation here, and whatever wraps a module (hooks of sharding, compilation) without a change to the
trainers, to sampling or to evaluation.
"""

import copy
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from typing import Any, TypeVar

import torch
from torch import Tensor, nn

from replay_sessions.errors import BadConfig
from shop_env.reward.score import SelfCertainty
from train.attention.depth_first import Head, Piece, depth_first
from train.attention.structured import Structured
from train.config import Precision
from train.lora import copy_adapter, has_adapter, using_adapter
from train.policy_stats import PolicyStats, log_probabilities, policy_stats
from train.session_tree import Attention, PackedTrees, TreeAttention, hidden_states

__all__ = ["Policy", "autocast_dtype"]

# At the first of its vector functions in a process MKL finds out which processor it runs on. Where two threads make
# that call at once, one of them may run other code: in one of some hundred processes the cosines of the first positions
# had other last bits, and from there on all weights. Here one thread makes it.
torch.cos(torch.zeros(1))

T = TypeVar("T")


def autocast_dtype(precision: Precision) -> torch.dtype | None:
    """What `Policy` is to compute matrix products in."""
    return torch.bfloat16 if precision == "bfloat16_autocast" else None


class Policy(nn.Module):
    """A causal language model with session-tree attention (train.session_tree.enable_tree_attention).

    Args:
        autocast: What matrix products are computed in while weights, gradients and the softmax stay float32; None: as
            the weights are. bfloat16 needs no loss scaling. Frozen matrices are then held in it, which halves their
            memory and changes no result: a product would round them to it anyway.
        adapter: The LoRA adapter that acts in this policy alone, and never learns; None: the model as it is.
        gradient_checkpointing: Layers are computed again in the backward pass instead of being kept, in training mode.
        stretch_tokens: `pieces` goes through trees depth-first, at most so many tokens of a trunk at a time
            (train/attention/depth_first.py); None: through all of a pack at once.
        attention: What attends in passes over a whole pack (train/attention/choice.py).

    Raises:
        BadConfig: A model with dropout is to be passed depth-first: its second reading would leave out other things.
    """

    def __init__(
        self,
        model: Any,
        *,
        autocast: torch.dtype | None = None,
        adapter: str | None = None,
        gradient_checkpointing: bool = False,
        stretch_tokens: int | None = None,
        attention: TreeAttention = Structured,
    ) -> None:
        super().__init__()
        self.model = model
        self.training = model.training and adapter is None
        self._autocast, self._adapter, self._stretch_tokens = autocast, adapter, stretch_tokens
        self._attention = attention
        dropout = max((module.p for module in model.modules() if isinstance(module, nn.Dropout)), default=0.0)
        if stretch_tokens is not None and dropout:
            raise BadConfig(
                f"model.stretch_tokens reads a session twice, and the dropout of {dropout} in this model or its LoRA "
                "would leave out other things each time; set it to 0, or leave out model.stretch_tokens."
            )
        if autocast is not None:
            _hold_frozen(model, autocast)
        if gradient_checkpointing:
            model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})

    @property
    def device(self) -> torch.device:
        found: torch.device = self.model.device
        return found

    @property
    def computed_in(self) -> torch.dtype:
        """What products are computed in, and what is kept of keys and values."""
        return self._autocast or self.model.dtype

    @contextmanager
    def acting(self) -> Iterator[None]:
        """The model in this policy's precision, mode and adapter; many passes inside share the weights' conversion."""
        before = self.model.training
        if before != self.training:
            self.model.train(self.training)
        try:
            with (
                using_adapter(self.model, self._adapter),
                torch.autocast(self.device.type, dtype=self._autocast, enabled=self._autocast is not None),
            ):
                yield
        finally:
            # The backward pass of whoever trains this model may compute layers again, in the mode that it left.
            if self._adapter is not None and before != self.training:
                self.model.train(before)

    def forward(
        self,
        input_ids: Tensor,
        position_ids: Tensor,
        attention: Attention,
        places: Tensor | None,
        head: Callable[[Tensor, Tensor], T],
    ) -> T:
        """`head` of the states (N, H) at `places` (N,) of a packed sequence, None for all, and of the weight (V, H)."""
        with self.acting():
            states = hidden_states(self.model, input_ids, position_ids, attention)
            if places is not None:
                # All replies to a prompt begin at one place, so places repeat. `index_select` adds their gradients up
                # in order; indexing adds them as its threads come along, and no two runs on a busy machine would be
                # alike.
                states = states.index_select(0, places)
            return head(states, self.model.get_output_embeddings().weight)

    def pieces(self, packed: PackedTrees, head: Head[T]) -> Iterator[Piece[T]]:
        """What `head` makes of a pack's reply tokens, to learn from: in one piece, or in several, depth-first.

        Each piece is taken through loss and backward pass before the next is asked for, and all are taken.
        """
        if self._stretch_tokens is None:
            found = self._of_replies(packed, partial(head, targets=packed.targets))
            return iter([Piece(found, slice(len(packed.targets)), slice(len(packed.reply_lengths)))])
        return depth_first(self, packed, head, self._stretch_tokens)

    def log_probs(self, packed: PackedTrees, *, temperature: float = 1.0) -> Tensor:
        """(N,) of the reply tokens under softmax(logits / temperature)."""
        return self._of_replies(packed, partial(log_probabilities, targets=packed.targets, temperature=temperature))

    def stats(self, packed: PackedTrees, *, temperature: float, definition: SelfCertainty) -> PolicyStats:
        """Log-probabilities, entropy and self-certainty of the reply tokens."""
        return self._of_replies(
            packed, partial(policy_stats, targets=packed.targets, temperature=temperature, definition=definition)
        )

    def logits(
        self, input_ids: Tensor, position_ids: Tensor, attention: Attention, places: Tensor | None = None
    ) -> Tensor:
        """(N, V) in float32: what follows the tokens at `places` (N,) of a packed sequence, None for all."""
        found: Tensor = self(input_ids, position_ids, attention, places, _logits)
        return found

    def whole(self) -> AbstractContextManager["Policy"]:
        """This policy with all of its weights in this process, which it is unless laid over several (sharding.py)."""
        return nullcontext(self)

    def frozen(self) -> "Policy":
        """This policy as it is now, for the KL term: a copy, or the same model under a frozen copy of its adapter."""
        if has_adapter(self.model):
            adapter = copy_adapter(self.model)
            return Policy(self.model, autocast=self._autocast, adapter=adapter, attention=self._attention)
        model = copy.deepcopy(self.model).requires_grad_(False).eval()
        return Policy(model, autocast=self._autocast, attention=self._attention)

    def _of_replies(self, packed: PackedTrees, head: Callable[[Tensor, Tensor], T]) -> T:
        attention = packed.attended_by(self._attention)
        found: T = self(packed.input_ids, packed.position_ids, attention, packed.predicted_from, head)
        return found


def _logits(states: Tensor, output_weight: Tensor) -> Tensor:
    return (states @ output_weight.T).float()


def _hold_frozen(model: Any, dtype: torch.dtype) -> None:
    """Holds in `dtype` the frozen matrices that are used in products alone, and so not those of tokens."""
    embedded = model.get_input_embeddings().weight
    for module in model.modules():
        if isinstance(module, nn.Linear) and module.weight is not embedded and not module.weight.requires_grad:
            for name, parameter in list(module.named_parameters(recurse=False)):
                setattr(module, name, nn.Parameter(parameter.to(dtype), requires_grad=False))
