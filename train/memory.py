"""The memory of training, counted without allocating it.

    a model's configuration ─► the model, fake, at two depths ─► a training step ─► bytes by part, at any depth

The code that is traced is the code that trains: it runs on tensors that have shapes and no data, and each storage
counts from its creation until it is freed (train/fake_accelerator.py). Every layer takes the same, so two shallow
models give the bytes of a deep one. What an allocator rounds up, and what kernels take for themselves, is not counted
(measured on CPU: docs/your_gpu.md).
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import astuple, dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch import distributed as dist
from torch._subclasses.fake_tensor import FakeTensorMode
from transformers import AutoModelForCausalLM, PretrainedConfig

from train.attention.depth_first import Head
from train.attention.structured import Structured
from train.config import LoraConfig
from train.fake_accelerator import FakeAccelerator, StorageCounter
from train.lora import add_adapter
from train.policy import Policy, log_probabilities, policy_stats
from train.ranks import Ranks, ShardedPolicy
from train.rollouts.engine import DISTRIBUTION_BYTES
from train.rollouts.kv_cache import KVCache, prefill
from train.session_tree import PackedTrees, TreeAttention, enable_tree_attention

_DEPTHS = (2, 4)


@dataclass(frozen=True)
class PassOptions:
    """The options of a policy: see train.policy.Policy and ModelConfig.

    Attributes:
        device: `cpu`, or DEVICE for what a GPU takes: other casts, kernels and optimizer.
        shards: Over so many processes weights, gradients and moments are sharded.
    """

    autocast: torch.dtype | None = None
    gradient_checkpointing: bool = False
    chunk_tokens: int | None = None
    lora: LoraConfig | None = None
    attention: TreeAttention = Structured
    float32_head: bool = True
    autocast_residual: bool = False
    device: str = "cpu"
    shards: int = 1


@dataclass(frozen=True)
class Rollouts:
    """What is sampled at once: trunks of these lengths, and so many replies with at most so many tokens in all.

    Attributes:
        trunks: Empty: nothing is sampled, or another engine does it.
        has_reference: Whether the loss is held against a frozen policy.
    """

    trunks: Sequence[int] = ()
    replies: int = 0
    reply_tokens: int = 0
    has_reference: bool = True


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
        reading: The peak of prefilling the prompts of rollouts, with the cache, and with the gathered weights, where
            they are sharded.
        sampling: The cache of the prompts and of replies of maximum length, and the distributions of one token each.
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
    def permanent(self) -> int:
        """What stays."""
        return self.weights + self.reference + self.gradients + self.optimizer

    @property
    def most(self) -> int:
        """The peak: what is permanent, and the largest of what is temporary."""
        return self.permanent + max(self.passes, self.update, self.reading, self.sampling)


def memory_parts(
    config: PretrainedConfig, packs: Sequence[PackedTrees], options: PassOptions, rollouts: Rollouts | None = None
) -> MemoryParts:
    """Counts a training step of a model of this configuration.

    Args:
        packs: What is trained on; the largest counts.
        rollouts: Of an objective on groups of replies; None: SFT.
    """
    depth = config.num_hidden_layers
    if depth <= max(_DEPTHS):
        return _trace(config, depth, packs, options, rollouts)
    few, more = (astuple(_trace(config, layers, packs, options, rollouts)) for layers in _DEPTHS)
    beyond = (depth - _DEPTHS[0]) / (_DEPTHS[1] - _DEPTHS[0])
    return MemoryParts(*(round(low + (high - low) * beyond) for low, high in zip(few, more, strict=True)))


def _trace(
    config: PretrainedConfig,
    layers: int,
    packs: Sequence[PackedTrees],
    options: PassOptions,
    rollouts: Rollouts | None,
) -> MemoryParts:
    shallow = _with_depth(config, layers)
    model = on_meta(shallow, options.lora)
    has_reference = rollouts is not None and rollouts.has_reference
    has_own_reference = has_reference and options.lora is None
    copy = on_meta(shallow, None).requires_grad_(False).eval() if has_own_reference else None
    # peft cannot build on fake tensors, so models are built on meta and get fake weights here
    with _counting(options.device) as (counter, place), _fake_processes(options.shards):
        fake_packs = [place(packed) for packed in packs]
        before = counter.alive
        _allocate_fake_weights(model, options.device)
        policy = _policy(model, options)
        weights = counter.alive - before
        trained = [parameter for parameter in policy.model.parameters() if parameter.requires_grad]
        # Under LoRA the reference is a copy of the adapter, which a fake model cannot be given.
        reference = sum(parameter.nbytes for parameter in trained) if has_reference else 0
        frozen = None
        if copy is not None:
            before = counter.alive
            _allocate_fake_weights(copy, options.device)
            frozen = _policy(copy, options)
            reference = counter.alive - before
        gradients = counter.added(partial(_allocate_gradients, trained))
        adamw = torch.optim.AdamW(trained, fused=options.device != "cpu" or None)
        optimizer = counter.added(adamw.step)
        passes = max(
            counter.held(partial(work, fake_packs))
            for work in (partial(_learn, policy, rollouts is not None), partial(_refer, frozen))
        )
        update = counter.held(adamw.step)
        cache: KVCache = []
        reading = sampling = 0
        if rollouts is not None and rollouts.trunks:
            counter.peak = before = counter.alive
            with policy.summon_full_params() as whole, whole.forward_context():
                _prefill(whole, rollouts.trunks, cache)
                reading, sampling = counter.peak - before, counter.alive - before
            of_a_token = sum(layer[0].nbytes // layer[0].shape[2] for layer in cache)
            distributions = DISTRIBUTION_BYTES * shallow.vocab_size * rollouts.replies
            sampling += of_a_token * rollouts.reply_tokens + distributions
    return MemoryParts(weights, reference, gradients, optimizer, passes, update, reading, sampling)


@contextmanager
def _counting(device: str) -> Iterator[tuple[StorageCounter, Any]]:
    """A counter, and what puts a pack on the device."""
    if device != "cpu":
        with FakeAccelerator() as accelerator:
            yield accelerator, lambda packed: packed.to(device)
    else:
        fake = FakeTensorMode()
        with fake, StorageCounter() as counter:
            yield counter, lambda packed: packed.map(fake.from_tensor)


@contextmanager
def _fake_processes(count: int) -> Iterator[None]:
    """A process group of so many that exchanges nothing; none for one process."""
    if count == 1:
        yield
        return
    from torch.testing._internal.distributed.fake_pg import FakeStore  # noqa: PLC0415 - loads torch's test modules

    dist.init_process_group("fake", rank=0, world_size=count, store=FakeStore())
    try:
        yield
    finally:
        dist.destroy_process_group()


def _policy(model: Any, options: PassOptions) -> Policy:
    passes: dict[str, Any] = {
        "autocast": options.autocast,
        "gradient_checkpointing": options.gradient_checkpointing and model.training,
        "attention": options.attention,
        "float32_head": options.float32_head,
        "autocast_residual": options.autocast_residual,
    }
    if options.shards > 1:
        return ShardedPolicy(model, Ranks(0, options.shards), **passes)
    return Policy(model, chunk_tokens=options.chunk_tokens if model.training else None, **passes)


def _with_depth(config: PretrainedConfig, layers: int) -> PretrainedConfig:
    changed = config.to_dict() | {"num_hidden_layers": layers}
    if changed.get("layer_types"):
        changed["layer_types"] = changed["layer_types"][:layers]
    return type(config).from_dict(changed)


def on_meta(config: PretrainedConfig, lora: LoraConfig | None) -> Any:
    """A model with shapes and no weights, to be trained."""
    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(config, dtype=torch.float32).train()
        enable_tree_attention(model)
        if lora is None:
            return model
        model.name_or_path = "fake"
        return add_adapter(model, lora, seed=0)


def _allocate_fake_weights(model: Any, device: str) -> None:
    fakes: dict[Tensor, Tensor] = {}  # tied weights stay one
    for module in model.modules():
        for tensors in (module._parameters, module._buffers):
            for name, tensor in tensors.items():
                if tensor is not None and tensor not in fakes:
                    fake = torch.empty(tensor.shape, dtype=tensor.dtype, device=device)
                    is_parameter = isinstance(tensor, nn.Parameter)
                    fakes[tensor] = nn.Parameter(fake, requires_grad=tensor.requires_grad) if is_parameter else fake
                if tensor is not None:
                    tensors[name] = fakes[tensor]


def _allocate_gradients(parameters: Sequence[Tensor]) -> None:
    for parameter in parameters:
        parameter.grad = torch.empty_like(parameter)


def _learn(policy: Policy, is_grpo: bool, packs: Sequence[PackedTrees]) -> None:
    stats = partial(policy_stats, temperature=0.6, definition="kl_uniform_policy")
    head: Head[Any] = stats if is_grpo else log_probabilities
    for packed in packs:
        for output in policy.forward_chunks(packed, head):
            (output.value.log_probs if is_grpo else output.value).sum().backward()


@torch.no_grad()
def _refer(reference: Policy | None, packs: Sequence[PackedTrees]) -> None:
    if reference is not None:
        for packed in packs:
            reference.log_probs(packed)


@torch.no_grad()
def _prefill(policy: Policy, trunks: Sequence[int], cache: KVCache) -> None:
    """What the local engine does before the first token of its replies; the cache is the result."""
    cache += prefill(policy, [[0] * length for length in trunks], [[length] for length in trunks])[0]
