"""The only way to a language model: sequences in, the output of a head on some of the states out.

    PackedTrees ─► decoder (tree attention) ─► the states that predict reply tokens ─► head, in chunks ─► PolicyStats
    prompts     ─► decoder (rollouts)       ─► the last states                      ─► logits

Decoder and head run inside one `forward`, so whatever wraps a module's forward applies to all of it: mixed precision,
adapters and gradient checkpointing here, and hooks of sharding or compilation, without a change to the trainers, to
sampling or to evaluation.
"""

import copy
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from typing import Any, TypeVar

import torch
from torch import Tensor, nn

from replay_sessions.foundation.errors import BadConfig
from shop_env.reward.score import SelfCertainty
from train.attention.depth_first import ChunkOutput, Head, depth_first
from train.attention.structured import Structured
from train.config import Precision
from train.lora import copy_adapter, has_adapter, using_adapter
from train.policy_stats import PolicyStats, log_probabilities, policy_stats
from train.session_tree import Attention, PackedTrees, TreeAttention, hidden_states

# MKL detects the processor at the first vector function in a process. Where two threads make that call at once, one of
# them may run other code: in one of some hundred processes the cosines of the first positions had other last bits, and
# so had all weights from there on. Here one thread makes the call.
torch.cos(torch.zeros(1))

T = TypeVar("T")


def autocast_dtype(precision: Precision) -> torch.dtype | None:
    """The dtype of matrix products for `Policy(autocast=…)`; None: that of the weights."""
    return torch.bfloat16 if precision == "bfloat16_autocast" else None


class Policy(nn.Module):
    """A causal language model with session-tree attention (train.session_tree.enable_tree_attention).

    Args:
        autocast: The dtype of matrix products, while weights, gradients and the softmax stay float32; None: that of the
            weights. bfloat16 needs no loss scaling. Frozen matrices are then held in it, which halves their
            memory and changes no result: a product would round them to it anyway.
        adapter: The frozen LoRA adapter of this policy; None: the model as it is.
        gradient_checkpointing: Layers are computed again in the backward pass instead of being kept, in training mode.
        chunk_tokens: `forward_chunks` passes trees depth-first, at most so many tokens of a trunk at a time
            (train/attention/depth_first.py); None: all of a pack at once.
        attention: Of passes over a whole pack (train/attention/choice.py).

    Raises:
        BadConfig: Depth-first passes of a model with dropout: the second pass of a chunk would drop other activations.
    """

    def __init__(
        self,
        model: Any,
        *,
        autocast: torch.dtype | None = None,
        adapter: str | None = None,
        gradient_checkpointing: bool = False,
        chunk_tokens: int | None = None,
        attention: TreeAttention = Structured,
    ) -> None:
        super().__init__()
        self.model = model
        self.training = model.training and adapter is None
        self._autocast, self._adapter, self._chunk_tokens = autocast, adapter, chunk_tokens
        self._attention = attention
        dropout = max((module.p for module in model.modules() if isinstance(module, nn.Dropout)), default=0.0)
        if chunk_tokens is not None and dropout:
            raise BadConfig(
                f"model.chunk_tokens passes a session twice, and the dropout of {dropout} in this model or its "
                "LoRA would drop other activations each time; set it to 0, or leave out model.chunk_tokens."
            )
        if autocast is not None:
            _hold_frozen(model, autocast)
        if gradient_checkpointing:
            model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})

    @property
    def device(self) -> torch.device:
        device: torch.device = self.model.device
        return device

    @property
    def compute_dtype(self) -> torch.dtype:
        """The dtype of products, and of cached keys and values."""
        return self._autocast or self.model.dtype

    @contextmanager
    def forward_context(self) -> Iterator[None]:
        """The model in this policy's precision, mode and adapter; passes inside one context cast the weights once."""
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
            # A backward pass of the same model under its own adapter may compute layers again, in the mode it left.
            if self._adapter is not None and before != self.training:
                self.model.train(before)

    def forward(
        self,
        input_ids: Tensor,
        position_ids: Tensor,
        attention: Attention,
        positions: Tensor | None,
        head: Callable[[Tensor, Tensor], T],
    ) -> T:
        """Applies `head` to states (N, H) of a packed sequence and the output weight (V, H).

        Args:
            input_ids, position_ids: (1, L).
            positions: (N,) of the states; None: all.
        """
        with self.forward_context():
            states = hidden_states(self.model, input_ids, position_ids, attention)
            if positions is not None:
                # All replies to a prompt begin at one position, so positions repeat. The backward pass of
                # `index_select` sums their gradients in order; that of indexing sums them as its threads finish, and no
                # two runs on a busy machine would be alike.
                states = states.index_select(0, positions)
            return head(states, self.model.get_output_embeddings().weight)

    def forward_chunks(self, packed: PackedTrees, head: Head[T]) -> Iterator[ChunkOutput[T]]:
        """Yields the head's output of a pack's reply tokens, for training: all at once, or chunk by chunk, depth-first.

        The caller runs the backward pass of each chunk before it takes the next one, and takes all of them.
        """
        if self._chunk_tokens is not None:
            return depth_first(self, packed, head, self._chunk_tokens)
        output = self._forward_packed(packed, head)
        return iter([ChunkOutput(output, slice(len(packed.targets)), slice(len(packed.reply_lengths)))])

    def log_probs(self, packed: PackedTrees, *, temperature: float = 1.0) -> Tensor:
        """(N,) of the reply tokens under softmax(logits / temperature)."""
        return self._forward_packed(packed, partial(log_probabilities, temperature=temperature))

    def stats(self, packed: PackedTrees, *, temperature: float, definition: SelfCertainty) -> PolicyStats:
        """Log-probabilities, entropy and self-certainty of the reply tokens."""
        return self._forward_packed(packed, partial(policy_stats, temperature=temperature, definition=definition))

    def logits(
        self, input_ids: Tensor, position_ids: Tensor, attention: Attention, positions: Tensor | None = None
    ) -> Tensor:
        """(N, V) in float32: of what follows the tokens at `positions` (N,) of a packed sequence, None for all."""
        logits: Tensor = self(
            input_ids, position_ids, attention, positions, lambda states, weight: (states @ weight.T).float()
        )
        return logits

    def summon_full_params(self) -> AbstractContextManager["Policy"]:
        """A policy with all weights in this process: this one, unless it is sharded (sharding.py)."""
        return nullcontext(self)

    def frozen(self) -> "Policy":
        """A frozen copy for the KL term, or the same model under a frozen copy of its adapter."""
        model, adapter = self.model, None
        if has_adapter(model):
            adapter = copy_adapter(model)
        else:
            model = copy.deepcopy(model).requires_grad_(False).eval()
        return Policy(model, autocast=self._autocast, adapter=adapter, attention=self._attention)

    def _forward_packed(self, packed: PackedTrees, head: Head[T]) -> T:
        attention = packed.attended_by(self._attention)
        head = partial(head, targets=packed.targets)
        output: T = self(packed.input_ids, packed.position_ids, attention, packed.predicted_from, head)
        return output


def _hold_frozen(model: Any, dtype: torch.dtype) -> None:
    """Casts the frozen matrices that are used in products only, and so not the token embedding."""
    embedded = model.get_input_embeddings().weight
    for module in model.modules():
        if isinstance(module, nn.Linear) and module.weight is not embedded and not module.weight.requires_grad:
            for name, parameter in list(module.named_parameters(recurse=False)):
                setattr(module, name, nn.Parameter(parameter.to(dtype), requires_grad=False))
