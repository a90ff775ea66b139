"""Policy, through which all code runs a language model: packed sequences in, the output of a head on the states out.

    PackedTrees ─► decoder (tree attention) ─► the states that predict reply tokens ─► head, in chunks ─► PolicyStats
    prompts     ─► decoder (rollouts)       ─► the last states                      ─► logits

Decoder and head run inside one `forward`, so that hooks on a module's forward cover both: mixed precision, adapters and
gradient checkpointing here, sharding or compilation elsewhere. Trainers, sampling and evaluation do not change.

The logits (N, V) of a 32k-token session with a 152k vocabulary would need 20 GB. At most LOGITS_BYTES of them exist at
a time, in the backward pass too. Matrix products may be in bfloat16 (autocast). The head's product, its logits and all
that follows from them are float32; `head_precision` may round the factors of the head's product.

Self-certainty (Shop-R1, section 3) is computed here for each token, and averaged over the rationale's tokens later. The
paper's text, figure and equation allow three definitions. The first is the default (V is the vocabulary size, U = 1/V):

    kl_uniform_policy   KL(U ‖ p) = −log V − (1/V) Σ log p      about 10–30; that of the works the paper cites
    kl_policy_uniform   KL(p ‖ U) = log V − H(p)                0 to log V
    eq3                 (1/V) Σ p log(p / U)                    as printed: kl_policy_uniform / V
"""

import copy
import math
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from typing import Any, NamedTuple, TypeVar

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import CheckpointPolicy, checkpoint, create_selective_checkpoint_contexts

from shop_env.reward.score import SelfCertainty
from train.attention.structured import KeptResults, StructuredAttention
from train.config import HeadPrecision
from train.lora import copy_adapter, has_adapter, using_adapter
from train.machine import Precision
from train.memory import LOGITS_BYTES
from train.session_tree import Attention, PackedTrees, TreeAttention, hidden_states


class PolicyStats(NamedTuple):
    """Statistics of the policy at each reply token; each is a tensor (N,).

    Attributes:
        log_probs: Log-probability of the token under softmax(logits / temperature); carries the gradient.
        entropy: Entropy of that distribution, in nats; no gradient.
        self_certainty: Self-certainty of softmax(logits), the distribution at temperature 1; no gradient.
        own_log_probs: Log-probability of the token at temperature 1; no gradient.
    """

    log_probs: Tensor
    entropy: Tensor
    self_certainty: Tensor
    own_log_probs: Tensor

    def detach(self) -> "PolicyStats":
        """Returns a copy without gradient."""
        return self._replace(log_probs=self.log_probs.detach())

    def of(self, tokens: slice | Tensor) -> "PolicyStats":
        """Returns the statistics of some of the tokens."""
        return PolicyStats(*(column[tokens] for column in self))


def log_probabilities(
    hidden: Tensor,
    output_weight: Tensor,
    *,
    targets: Tensor,
    temperature: float,
) -> Tensor:
    """Computes the log-probabilities (N,) of the tokens `targets`, without the other statistics.

    Args:
        hidden: The states that predict the targets, (N, H).
        output_weight: (V, H).
        targets: (N,).
        temperature: Divides the logits.
    """
    return _in_chunks(hidden, output_weight, targets, temperature, None)[0]


def policy_stats(
    hidden: Tensor,
    output_weight: Tensor,
    *,
    targets: Tensor,
    temperature: float,
    definition: SelfCertainty = "kl_uniform_policy",
) -> PolicyStats:
    """Computes the statistics of the tokens `targets`.

    Args:
        hidden: The states that predict the targets, (N, H).
        output_weight: (V, H).
        targets: (N,).
        temperature: Divides the logits of `log_probs` and `entropy`.
        definition: The definition of self-certainty.
    """
    return PolicyStats(*_in_chunks(hidden, output_weight, targets, temperature, definition))


def _in_chunks(
    hidden: Tensor, output_weight: Tensor, targets: Tensor, temperature: float, definition: SelfCertainty | None
) -> list[Tensor]:
    """Computes `_chunk_stats` of a limited number of rows at a time; the backward pass computes their logits again."""
    function = partial(_chunk_stats, temperature=temperature, definition=definition)
    rows = max(1, LOGITS_BYTES // (4 * output_weight.shape[0]))
    if torch.is_grad_enabled() and len(hidden) > rows:
        function = partial(checkpoint, function, use_reentrant=False)
    chunks = zip(torch.split(hidden, rows), torch.split(targets, rows), strict=True)
    columns = zip(*(function(states, output_weight, own_targets) for states, own_targets in chunks), strict=True)
    return [torch.cat(column) for column in columns]


def _chunk_stats(
    hidden: Tensor, output_weight: Tensor, targets: Tensor, *, temperature: float, definition: SelfCertainty | None
) -> tuple[Tensor, ...]:
    """Computes the log-probabilities of the targets; with a definition also the other statistics, without gradient."""
    logits = hidden @ output_weight.T
    logits = logits.to(at_least_float32(logits.dtype))
    scaled = torch.log_softmax(logits if temperature == 1 else logits / temperature, dim=-1)
    log_probs = scaled.gather(1, targets[:, None]).squeeze(1)
    if definition is None:
        return (log_probs,)
    with torch.no_grad():
        entropy = -(scaled.exp() * scaled).sum(dim=-1)
        unscaled = scaled if temperature == 1.0 else torch.log_softmax(logits, dim=-1)
        certainty = self_certainty(unscaled, definition)
        own_log_probs = unscaled.gather(1, targets[:, None]).squeeze(1)
    return log_probs, entropy, certainty, own_log_probs


def at_least_float32(dtype: torch.dtype) -> torch.dtype:
    """Returns float32 for shorter dtypes, and the others unchanged."""
    return torch.promote_types(dtype, torch.float32)


def self_certainty(log_probs: Tensor, definition: SelfCertainty) -> Tensor:
    """Computes the self-certainty (N,) of distributions given as log-probabilities (N, V)."""
    log_v = math.log(log_probs.shape[-1])
    if definition == "kl_uniform_policy":
        return -log_v - log_probs.mean(dim=-1)
    kl = log_v + (log_probs.exp() * log_probs).sum(dim=-1)
    return kl if definition == "kl_policy_uniform" else kl / log_probs.shape[-1]


# MKL detects the processor at the first vector function in a process. If two threads make that call at the same time,
# they may run different code: in about one of a hundred processes the cosines of the first positions had different last
# bits, and so had all later weights. Here a single thread makes the call.
torch.cos(torch.zeros(1))

T = TypeVar("T")


def autocast_dtype(precision: Precision) -> torch.dtype | None:
    """Returns the dtype of matrix products for `Policy(autocast=…)`; None stands for the dtype of the weights."""
    return torch.bfloat16 if precision == "bfloat16_autocast" else None


class Policy(nn.Module):
    """A causal language model with session-tree attention (train.session_tree.enable_tree_attention).

    Args:
        model: The Hugging Face model.
        autocast: The dtype of matrix products; weights, gradients and the softmax stay float32. If None, the dtype of
            the weights. bfloat16 needs no loss scaling. Frozen matrices are held in this dtype, which halves their
            memory and changes no result, because products would round them anyway.
        head_precision: The precision of the head's product under autocast. In float32 sampling and training differ
            less; `tf32` rounds the factors to 10 bits on a GPU.
        adapter: The name of the frozen LoRA adapter of this policy. If None, the model is used as it is.
        gradient_checkpointing: Whether the backward pass computes layers again instead of keeping their activations.
            It acts in training mode only.
        product_layers: The number of layers in which gradient checkpointing keeps matrix products all the same.
        keeps_attention: Whether gradient checkpointing keeps the results of attention.
        attention: Builds the attention of passes over a whole pack (train/attention/selection.py).
    """

    def __init__(
        self,
        model: Any,
        *,
        autocast: torch.dtype | None = None,
        head_precision: HeadPrecision = "float32",
        adapter: str | None = None,
        gradient_checkpointing: bool = False,
        product_layers: int = 0,
        keeps_attention: bool = True,
        attention: TreeAttention = StructuredAttention,
    ) -> None:
        super().__init__()
        self.model = model
        self.training = model.training and adapter is None
        self._autocast, self._adapter = autocast, adapter
        self._head_precision = head_precision
        self.attention = attention
        self._keeps_attention = gradient_checkpointing and keeps_attention
        if autocast is not None:
            _hold_frozen(model, autocast, with_head=head_precision == "bfloat16")
        if gradient_checkpointing:
            options: dict[str, Any] = {"use_reentrant": False}
            if product_layers:
                options["context_fn"] = _KeptProducts(product_layers, model.config.get_text_config().num_hidden_layers)
            model.gradient_checkpointing_enable(gradient_checkpointing_kwargs=options)

    @property
    def device(self) -> torch.device:
        device: torch.device = self.model.device
        return device

    @property
    def compute_dtype(self) -> torch.dtype:
        """The dtype of matrix products and of the kv_cache."""
        return self._autocast or self.model.dtype

    @contextmanager
    def forward_context(self) -> Iterator[None]:
        """Sets this policy's precision, mode and adapter; passes inside one context cast the weights only once."""
        _use_float32()  # the angles of positions are a float32 product
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
            # A backward pass of the same model with its trained adapter may compute layers again, in the former mode.
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
            attention: The attention of this sequence.
            positions: The positions (N,) of the states. If None, all.
            head: Receives the states (N, H) and the output weight (V, H).
        """
        with self.forward_context():
            states = hidden_states(self.model, input_ids, position_ids, attention)
            if positions is not None:
                # Positions repeat, because all replies to a prompt begin at the same one. The backward pass of
                # `index_select` sums their gradients in order. Indexing would sum them in the order in which threads
                # finish, so that runs on a busy machine would differ.
                states = states.index_select(0, positions)
            return self.apply_head(states, head)

    def apply_head(self, states: Tensor, head: Callable[[Tensor, Tensor], T]) -> T:
        """Applies `head` to states (N, H) and output weight (V, H) in the head's precision; in `forward_context`."""
        weight = self.model.get_output_embeddings().weight
        if self._autocast is None or self._head_precision == "bfloat16":
            return head(states, weight)
        with torch.autocast(self.device.type, enabled=False):
            states = states.float()
            if self._head_precision == "float32":
                return head(states, weight.float())
            # Until the head's backward pass has ended. Compiled parts of layers must not meet another setting than in
            # their forward pass: torch would compile them anew for it.
            torch.set_float32_matmul_precision("high")
            if states.requires_grad and torch.is_grad_enabled():
                states.register_hook(_use_float32)
                return head(states, weight.float())
            output = head(states, weight.float())
            _use_float32()
            return output

    def forward_packed(self, packed: PackedTrees, head: Callable[..., T]) -> T:
        """Passes over a pack, and applies `head` to states (N, H), the output weight (V, H) and `targets` (N,)."""
        attention = packed.attended_by(self.attention)
        keeps = self._keeps_attention and self.training and torch.is_grad_enabled()
        if keeps and isinstance(attention, StructuredAttention):
            attention = KeptResults(attention)
        head = partial(head, targets=packed.targets)
        output: T = self(packed.input_ids, packed.position_ids, attention, packed.predicted_from, head)
        return output

    def log_probs(self, packed: PackedTrees, *, temperature: float = 1.0) -> Tensor:
        """Computes the log-probabilities (N,) of the reply tokens under softmax(logits / temperature)."""
        return self.forward_packed(packed, partial(log_probabilities, temperature=temperature))

    def stats(self, packed: PackedTrees, *, temperature: float, definition: SelfCertainty) -> PolicyStats:
        """Computes the statistics of the reply tokens."""
        return self.forward_packed(packed, partial(policy_stats, temperature=temperature, definition=definition))

    def logits(
        self, input_ids: Tensor, position_ids: Tensor, attention: Attention, positions: Tensor | None = None
    ) -> Tensor:
        """Computes the logits (N, V), in float32, of the tokens that follow those at `positions` of a packed sequence.

        Args:
            input_ids, position_ids: (1, L).
            attention: The attention of this sequence.
            positions: (N,). If None, all positions.
        """
        logits: Tensor = self(
            input_ids, position_ids, attention, positions, lambda states, weight: (states @ weight.T).float()
        )
        return logits

    def summon_full_params(self) -> AbstractContextManager["Policy"]:
        """Returns a context with a policy that has all weights in this process.

        It is this policy itself, unless it is sharded (ranks.py).
        """
        return nullcontext(self)

    def frozen(self) -> "Policy":
        """Returns a frozen copy for the KL term; with LoRA, the same model with a frozen copy of its adapter."""
        model, adapter = self.model, None
        if has_adapter(model):
            adapter = copy_adapter(model)
        else:
            model = copy.deepcopy(model).requires_grad_(False).eval()
        return Policy(model, **self._precision, adapter=adapter, attention=self.attention)

    @property
    def _precision(self) -> dict[str, Any]:
        return {"autocast": self._autocast, "head_precision": self._head_precision}


def _use_float32(_gradient: Tensor | None = None) -> None:
    """Ends the use of TF32 in float32 products."""
    torch.set_float32_matmul_precision("highest")


class _KeptProducts:
    """The context function of checkpointing that keeps the matrix products of the first `layers` layers.

    Checkpointing calls it once for each of the `of_layers` layers of a pass, in order.
    """

    def __init__(self, layers: int, of_layers: int) -> None:
        self._layers, self._of_layers, self._calls = layers, of_layers, 0

    def __call__(self) -> tuple[AbstractContextManager[Any], AbstractContextManager[Any]]:
        layer = self._calls % self._of_layers
        self._calls += 1
        if layer >= self._layers:
            return nullcontext(), nullcontext()
        contexts: tuple[Any, Any] = create_selective_checkpoint_contexts(self._policy)
        return contexts

    @staticmethod
    def _policy(_context: Any, operator: Any, *_arguments: Any, **_options: Any) -> CheckpointPolicy:
        is_product = operator in (torch.ops.aten.mm.default, torch.ops.aten.addmm.default)
        return CheckpointPolicy.MUST_SAVE if is_product else CheckpointPolicy.PREFER_RECOMPUTE


def _hold_frozen(model: Any, dtype: torch.dtype, *, with_head: bool) -> None:
    """Casts the frozen matrices that are used only in products of this dtype, so not the token embedding."""
    uncast = [model.get_input_embeddings().weight, *([] if with_head else [model.get_output_embeddings().weight])]
    for module in model.modules():
        if not isinstance(module, nn.Linear) or module.weight.requires_grad or any(module.weight is w for w in uncast):
            continue
        for name, parameter in list(module.named_parameters(recurse=False)):
            setattr(module, name, nn.Parameter(parameter.to(dtype), requires_grad=False))
