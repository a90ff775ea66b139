"""What training takes of memory, counted without taking it.

    a model's configuration ─► the model, fake, at two depths ─► a training step ─► bytes by part, at any depth

The code that is traced is the code that trains: torch's FakeTensorMode runs it on tensors that have shapes and nothing
in them, and each storage that would have been made counts until it would have been freed. Every layer takes the same,
so two shallow models tell what a deep one takes. What an allocator rounds up, and what kernels take for themselves,
is not counted (measured on CPU: docs/your_gpu.md).
"""

import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from transformers import AutoModelForCausalLM, PretrainedConfig

from train.attention.structured import Structured
from train.config import LoraConfig
from train.lora import add_adapter
from train.policy import Policy
from train.policy_stats import policy_stats
from train.rollout_engines.kept_trunks import KeysAndValues, read_trunks
from train.session_tree import PackedTrees, TreeAttention, enable_tree_attention

__all__ = ["MemoryParts", "PassOptions", "Rollouts", "memory_parts"]

_DEPTHS = (2, 4)


@dataclass(frozen=True)
class PassOptions:
    """How a policy is passed: see train.policy.Policy and ModelConfig."""

    autocast: torch.dtype | None = None
    gradient_checkpointing: bool = False
    stretch_tokens: int | None = None
    lora: LoraConfig | None = None
    attention: TreeAttention = Structured


@dataclass(frozen=True)
class Rollouts:
    """What is sampled at once: trunks of these lengths, and as many tokens of replies at the most."""

    trunks: Sequence[int]
    reply_tokens: int


@dataclass(frozen=True)
class MemoryParts:
    """Bytes.

    Attributes:
        weights: Of the model, and of its adapter.
        reference: The frozen policy of the KL term.
        gradients: Of what learns.
        optimizer: AdamW's two moments.
        passes: The most that a forward and backward pass holds beside all these.
        update: The most that the optimiser's step holds for itself.
        reading: The most that reading the prompts of rollouts holds, with the keys and values that are kept.
        sampling: Keys and values of the prompts and of replies that are as long as they may be.
    """

    weights: int
    reference: int
    gradients: int
    optimizer: int
    passes: int
    update: int
    reading: int
    sampling: int

    @property
    def most(self) -> int:
        """The most that is held at a time: what stays, and the largest of what comes and goes."""
        stays = self.weights + self.reference + self.gradients + self.optimizer
        return stays + max(self.passes, self.update, self.reading, self.sampling)


def memory_parts(
    config: PretrainedConfig, packs: Sequence[PackedTrees], options: PassOptions, rollouts: Rollouts | None = None
) -> MemoryParts:
    """What a training step of a model of this configuration takes.

    Args:
        packs: What is learnt from; the largest counts.
        rollouts: Of GRPO, which has a reference too; None: SFT.
    """
    depth = config.num_hidden_layers
    if depth <= max(_DEPTHS):
        return _trace(config, depth, packs, options, rollouts)
    few, more = (_trace(config, layers, packs, options, rollouts) for layers in _DEPTHS)
    beyond = (depth - _DEPTHS[0]) / (_DEPTHS[1] - _DEPTHS[0])
    sizes = {part.name: (getattr(few, part.name), getattr(more, part.name)) for part in fields(MemoryParts)}
    return MemoryParts(**{name: round(low + (high - low) * beyond) for name, (low, high) in sizes.items()})


class _Bytes(TorchDispatchMode):
    """Counts the storages that are alive.

    Attributes:
        alive: Bytes now.
        most: Bytes at the most since it was set.
    """

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # torch's own has no types
        self.alive = self.most = 0
        self._known: weakref.WeakSet[Any] = weakref.WeakSet()

    def __torch_dispatch__(
        self, function: Any, _types: Any, arguments: tuple[Any, ...] = (), options: dict[str, Any] | None = None
    ) -> Any:
        made = function(*arguments, **(options or {}))
        for tensor in tree_leaves(made):
            if isinstance(tensor, Tensor):
                self._count(tensor.untyped_storage())
        self.most = max(self.most, self.alive)
        return made

    def _count(self, storage: Any) -> None:
        if storage in self._known:
            return
        self._known.add(storage)
        size = storage.nbytes()
        self.alive += size
        weakref.finalize(storage, self._free, size)

    def _free(self, size: int) -> None:
        self.alive -= size

    def added(self, work: Callable[[], object]) -> int:
        """What `work` leaves alive."""
        before = self.alive
        work()
        return self.alive - before

    def held(self, work: Callable[[], object]) -> int:
        """The most that `work` holds beside what was alive."""
        before = self.most = self.alive
        work()
        return self.most - before


def _trace(
    config: PretrainedConfig,
    layers: int,
    packs: Sequence[PackedTrees],
    options: PassOptions,
    rollouts: Rollouts | None,
) -> MemoryParts:
    counted, fake = _Bytes(), FakeTensorMode()
    given = [packed.map(fake.from_tensor) for packed in packs]
    shallow = _of_depth(config, layers)
    model = _without_storage(shallow, options.lora)
    copy = _without_storage(shallow, None).requires_grad_(False).eval() if rollouts and options.lora is None else None
    with fake, counted:
        _give_fake_weights(model)
        policy = Policy(
            model,
            autocast=options.autocast,
            gradient_checkpointing=options.gradient_checkpointing,
            stretch_tokens=options.stretch_tokens,
            attention=options.attention,
        )
        weights = counted.alive
        learning = [parameter for parameter in model.parameters() if parameter.requires_grad]
        # Under LoRA the reference is a copy of the adapter, which a fake model cannot be given.
        reference = sum(parameter.nbytes for parameter in learning) if rollouts else 0
        frozen = None
        if copy is not None:
            _give_fake_weights(copy)
            frozen = Policy(copy, autocast=options.autocast, attention=options.attention)
            reference = counted.alive - weights
        gradients = counted.added(partial(_give_gradients, learning))
        adamw = torch.optim.AdamW(learning)
        optimizer = counted.added(adamw.step)
        passes = counted.held(partial(_learn, policy, given))
        if frozen is not None:
            passes = max(passes, counted.held(partial(_refer, frozen, given)))
        update = counted.held(adamw.step)
        kept: KeysAndValues = []
        reading = counted.held(lambda: kept.extend(_read(policy, rollouts.trunks))) if rollouts else 0
        replies: list[Tensor] = []
        sampling = counted.added(lambda: replies.extend(_replies(kept, rollouts.reply_tokens))) if rollouts else 0
        sampling += sum(tensor.nbytes for layer in kept for trunk in layer for tensor in trunk)
    return MemoryParts(weights, reference, gradients, optimizer, passes, update, reading, sampling)


def _of_depth(config: PretrainedConfig, layers: int) -> PretrainedConfig:
    changed = config.to_dict() | {"num_hidden_layers": layers}
    if changed.get("layer_types"):
        changed["layer_types"] = changed["layer_types"][:layers]
    return type(config).from_dict(changed)


def _without_storage(config: PretrainedConfig, lora: LoraConfig | None) -> Any:
    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(config, dtype=torch.float32).train()
        enable_tree_attention(model)
        if lora is None:
            return model
        model.name_or_path = "fake"
        return add_adapter(model, lora, seed=0)


def _give_fake_weights(model: Any) -> None:
    made: dict[Tensor, Tensor] = {}  # tied weights stay one
    for module in model.modules():
        for name, tensor in [*module._parameters.items(), *module._buffers.items()]:
            if tensor is None:
                continue
            if tensor not in made:
                fake = torch.empty(tensor.shape, dtype=tensor.dtype)
                is_parameter = isinstance(tensor, nn.Parameter)
                made[tensor] = nn.Parameter(fake, requires_grad=tensor.requires_grad) if is_parameter else fake
            (module._parameters if name in module._parameters else module._buffers)[name] = made[tensor]


def _give_gradients(parameters: Sequence[Tensor]) -> None:
    for parameter in parameters:
        parameter.grad = torch.empty_like(parameter)


def _learn(policy: Policy, given: Sequence[PackedTrees]) -> None:
    head = partial(policy_stats, temperature=0.6, definition="kl_uniform_policy")
    for packed in given:
        for piece in policy.pieces(packed, head):
            piece.found.log_probs.sum().backward()


@torch.no_grad()
def _refer(reference: Policy, given: Sequence[PackedTrees]) -> None:
    for packed in given:
        reference.log_probs(packed)


@torch.no_grad()
def _read(policy: Policy, trunks: Sequence[int]) -> KeysAndValues:
    """What the local engine does before the first token of its replies."""
    with policy.acting():
        return read_trunks(policy, [[0] * length for length in trunks], [[length] for length in trunks])[0]


def _replies(kept: KeysAndValues, tokens: int) -> list[Tensor]:
    """Keys and values of so many tokens of replies."""
    of_layers = [tensor for layer in kept for tensor in layer[0]]
    return [tensor.new_empty(len(tensor), tokens, tensor.shape[-1]) for tensor in of_layers]
