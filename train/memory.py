"""The memory of training, counted without allocating it.

    a model's configuration ─► the model, fake, at two depths ─► a training step ─► bytes by part, at any depth

The code that is traced is the code that trains: torch's FakeTensorMode runs it on tensors that have shapes and no data,
and each storage counts from its creation until it is freed. Every layer takes the same, so two shallow models give the
bytes of a deep one. What an allocator rounds up, and what kernels take for themselves, is not counted (measured on CPU:
docs/your_gpu.md).
"""

import weakref
from collections.abc import Callable, Sequence
from dataclasses import astuple, dataclass
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
from train.policy import Policy, policy_stats
from train.rollouts.kv_cache import KVCache, prefill
from train.session_tree import PackedTrees, TreeAttention, enable_tree_attention

_DEPTHS = (2, 4)


@dataclass(frozen=True)
class PassOptions:
    """The options of a policy: see train.policy.Policy and ModelConfig."""

    autocast: torch.dtype | None = None
    gradient_checkpointing: bool = False
    chunk_tokens: int | None = None
    lora: LoraConfig | None = None
    attention: TreeAttention = Structured


@dataclass(frozen=True)
class Rollouts:
    """What is sampled at once: trunks of these lengths, and at most so many tokens of replies."""

    trunks: Sequence[int]
    reply_tokens: int


@dataclass(frozen=True)
class MemoryParts:
    """Bytes.

    Attributes:
        weights: Of the model, and of its adapter.
        reference: The frozen policy of the KL term.
        gradients: Of what is trained.
        optimizer: AdamW's two moments.
        passes: The peak of a forward and backward pass beside all these.
        update: The peak of the optimizer's step.
        reading: The peak of prefilling the prompts of rollouts, with the cache.
        sampling: The cache of the prompts and of replies of maximum length.
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
        """The peak: what is permanent, and the largest of what is temporary."""
        permanent = self.weights + self.reference + self.gradients + self.optimizer
        return permanent + max(self.passes, self.update, self.reading, self.sampling)


def memory_parts(
    config: PretrainedConfig, packs: Sequence[PackedTrees], options: PassOptions, rollouts: Rollouts | None = None
) -> MemoryParts:
    """Counts a training step of a model of this configuration.

    Args:
        packs: What is trained on; the largest counts.
        rollouts: Of GRPO, which has a reference too; None: SFT.
    """
    depth = config.num_hidden_layers
    if depth <= max(_DEPTHS):
        return _trace(config, depth, packs, options, rollouts)
    few, more = (astuple(_trace(config, layers, packs, options, rollouts)) for layers in _DEPTHS)
    beyond = (depth - _DEPTHS[0]) / (_DEPTHS[1] - _DEPTHS[0])
    return MemoryParts(*(round(low + (high - low) * beyond) for low, high in zip(few, more, strict=True)))


class _StorageCounter(TorchDispatchMode):
    """Counts the storages that are alive.

    Attributes:
        alive: Bytes now.
        peak: The most bytes since it was set.
    """

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # torch's own has no types
        self.alive = self.peak = 0
        self._seen: weakref.WeakSet[Any] = weakref.WeakSet()

    def __torch_dispatch__(
        self, function: Any, _types: Any, arguments: tuple[Any, ...] = (), options: dict[str, Any] | None = None
    ) -> Any:
        result = function(*arguments, **(options or {}))
        for tensor in tree_leaves(result):
            if isinstance(tensor, Tensor) and (storage := tensor.untyped_storage()) not in self._seen:
                self._seen.add(storage)
                self.alive += storage.nbytes()
                weakref.finalize(storage, self._free, storage.nbytes())
        self.peak = max(self.peak, self.alive)
        return result

    def _free(self, size: int) -> None:
        self.alive -= size

    def added(self, work: Callable[[], object]) -> int:
        """The bytes that `work` still holds at its end."""
        before = self.alive
        work()
        return self.alive - before

    def held(self, work: Callable[[], object]) -> int:
        """The most bytes that `work` holds beside what was alive."""
        before = self.peak = self.alive
        work()
        return self.peak - before


def _trace(
    config: PretrainedConfig,
    layers: int,
    packs: Sequence[PackedTrees],
    options: PassOptions,
    rollouts: Rollouts | None,
) -> MemoryParts:
    counter, fake = _StorageCounter(), FakeTensorMode()
    fake_packs = [packed.map(fake.from_tensor) for packed in packs]
    shallow = _with_depth(config, layers)
    model = _on_meta(shallow, options.lora)
    has_own_reference = rollouts is not None and options.lora is None
    copy = _on_meta(shallow, None).requires_grad_(False).eval() if has_own_reference else None
    with fake, counter:  # peft cannot build on fake tensors, so models are built on meta and get fake weights here
        _allocate_fake_weights(model)
        policy = Policy(
            model,
            autocast=options.autocast,
            gradient_checkpointing=options.gradient_checkpointing,
            chunk_tokens=options.chunk_tokens,
            attention=options.attention,
        )
        weights = counter.alive
        trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
        # Under LoRA the reference is a copy of the adapter, which a fake model cannot be given.
        reference = sum(parameter.nbytes for parameter in trained) if rollouts else 0
        frozen = None
        if copy is not None:
            _allocate_fake_weights(copy)
            frozen = Policy(copy, autocast=options.autocast, attention=options.attention)
            reference = counter.alive - weights
        gradients = counter.added(partial(_allocate_gradients, trained))
        adamw = torch.optim.AdamW(trained)
        optimizer = counter.added(adamw.step)
        passes = max(
            counter.held(partial(work, fake_packs)) for work in (partial(_learn, policy), partial(_refer, frozen))
        )
        update = counter.held(adamw.step)
        cache: KVCache = []
        reading = sampling = 0
        if rollouts is not None:
            reading = counter.held(lambda: cache.extend(_prefill(policy, rollouts.trunks)))
            of_a_token = sum(layer[0].nbytes // layer[0].shape[2] for layer in cache)
            sampling = of_a_token * (sum(rollouts.trunks) + rollouts.reply_tokens)
    return MemoryParts(weights, reference, gradients, optimizer, passes, update, reading, sampling)


def _with_depth(config: PretrainedConfig, layers: int) -> PretrainedConfig:
    changed = config.to_dict() | {"num_hidden_layers": layers}
    if changed.get("layer_types"):
        changed["layer_types"] = changed["layer_types"][:layers]
    return type(config).from_dict(changed)


def _on_meta(config: PretrainedConfig, lora: LoraConfig | None) -> Any:
    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(config, dtype=torch.float32).train()
        enable_tree_attention(model)
        if lora is None:
            return model
        model.name_or_path = "fake"
        return add_adapter(model, lora, seed=0)


def _allocate_fake_weights(model: Any) -> None:
    fakes: dict[Tensor, Tensor] = {}  # tied weights stay one
    for module in model.modules():
        for tensors in (module._parameters, module._buffers):
            for name, tensor in tensors.items():
                if tensor is not None and tensor not in fakes:
                    fake = torch.empty(tensor.shape, dtype=tensor.dtype)
                    is_parameter = isinstance(tensor, nn.Parameter)
                    fakes[tensor] = nn.Parameter(fake, requires_grad=tensor.requires_grad) if is_parameter else fake
                if tensor is not None:
                    tensors[name] = fakes[tensor]


def _allocate_gradients(parameters: Sequence[Tensor]) -> None:
    for parameter in parameters:
        parameter.grad = torch.empty_like(parameter)


def _learn(policy: Policy, packs: Sequence[PackedTrees]) -> None:
    head = partial(policy_stats, temperature=0.6, definition="kl_uniform_policy")
    for packed in packs:
        for output in policy.forward_chunks(packed, head):
            output.value.log_probs.sum().backward()


@torch.no_grad()
def _refer(reference: Policy | None, packs: Sequence[PackedTrees]) -> None:
    if reference is not None:
        for packed in packs:
            reference.log_probs(packed)


@torch.no_grad()
def _prefill(policy: Policy, trunks: Sequence[int]) -> KVCache:
    """What the local engine does before the first token of its replies."""
    with policy.forward_context():
        return prefill(policy, [[0] * length for length in trunks], [[length] for length in trunks])[0]
