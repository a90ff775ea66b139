"""Chooses how the replies of a policy are sampled, by trials on this machine.

    layers      compiled DecoderLayers (on CUDA only) ─► DecoderLayers ─► the model's own modules
    attention   Triton kernels (on CUDA only) ─► torch's products

The first of each that agrees with plain code is taken. One line of the log names both, with the reasons.
"""

import logging
from collections.abc import Sequence
from functools import cache
from weakref import WeakKeyDictionary

import torch
from torch import Tensor

from train.attention.structured import StructuredAttention
from train.attention.trial import find_difference
from train.policy import Policy
from train.rollouts.branches import Branches, KernelBranches, Visible
from train.rollouts.layers import DecoderLayers, Layers
from train.session_tree import SessionTree, get_head_shape, pack

logger = logging.getLogger(__name__)

TRIAL_TOKENS = 24
# By model, whether its DecoderLayers are compiled; None if it is sampled from by its own modules.
_IS_COMPILED: WeakKeyDictionary[object, bool | None] = WeakKeyDictionary()


def choose_sampler(policy: Policy) -> bool | None:
    """Chooses layers and attention once for a model, and logs them.

    To be called before the policy's `forward_context`, in which the weights that the trial casts would stay.

    Returns:
        Whether the layers are compiled; None for the model's own modules.
    """
    if policy.model not in _IS_COMPILED:
        _IS_COMPILED[policy.model] = _choose(policy)
    return _IS_COMPILED[policy.model]


def _choose(policy: Policy) -> bool | None:
    is_cuda = policy.device.type == "cuda"
    names = {
        True: "compiled layers",
        False: "plain layers",
        None: f"the modules of {type(policy.model).__name__} itself",
    }
    faults: dict[bool, str | None] = {}
    for kind in (True, False) if is_cuda else (False,):
        faults[kind] = _find_layer_fault(policy, is_compiled=kind)
        if faults[kind] is None:
            break
    is_compiled = next((kind for kind, fault in faults.items() if fault is None), None)
    reasons = [f"{names[kind]}: {fault}" for kind, fault in faults.items() if fault]
    attention = "torch"
    if is_cuda:
        fault = find_kernel_fault(*get_head_shape(policy.model.config), policy.compute_dtype)
        attention, reasons = ("torch", [*reasons, f"Triton kernels: {fault}"]) if fault else ("Triton kernels", reasons)
    reason = f" ({'; '.join(reasons)})" if reasons else ""
    level = logging.WARNING if is_cuda and reasons else logging.INFO  # slow
    logger.log(level, "sampling: %s, attention by %s%s", names[is_compiled], attention, reason)
    return is_compiled


def build_layers(policy: Policy) -> Layers:
    """Builds the layers of a policy from its current weights; to be called inside its `forward_context`."""
    is_compiled = choose_sampler(policy)
    return policy if is_compiled is None else DecoderLayers(policy, is_compiled=is_compiled)


def build_branches(cache: Sequence[Tensor], visible: Sequence[Visible], heads: int, max_new_tokens: int) -> Branches:
    """Builds the attention of replies: on CUDA with the Triton kernels if they pass their trial, else with torch's."""
    _, kv_heads, _, width = cache[0].shape
    is_right = cache[0].is_cuda and find_kernel_fault(heads, kv_heads, width, cache[0].dtype) is None
    return (KernelBranches if is_right else Branches)(cache, visible, heads, max_new_tokens)


@torch.no_grad()
def _find_layer_fault(policy: Policy, *, is_compiled: bool) -> str | None:
    """Compares the logits of DecoderLayers with the policy's on random tokens; returns the fault or None."""
    vocabulary = policy.model.config.get_text_config().vocab_size
    tokens = torch.randint(vocabulary, (TRIAL_TOKENS,), generator=torch.Generator().manual_seed(0)).tolist()
    packed = pack([SessionTree(tokens)]).to(policy.device)
    inputs = packed.input_ids, packed.position_ids, StructuredAttention(packed)
    expected = policy.logits(*inputs)

    def compute() -> list[Tensor]:
        with policy.forward_context():
            return [DecoderLayers(policy, is_compiled=is_compiled).logits(*inputs)]

    return find_difference(compute, [expected], ["logits"], policy.compute_dtype)


@cache
def find_kernel_fault(heads: int, kv_heads: int, width: int, dtype: torch.dtype) -> str | None:
    """Compares the Triton kernels with torch's attention; returns the fault or None."""
    rows = [Visible(start, length) for start, length in ((0, 1), (0, 650), (700, 33)) for _ in range(3)]
    generator = torch.Generator().manual_seed(0)

    def draw(*shape: int) -> Tensor:
        return torch.randn(shape, generator=generator).to("cuda", dtype)

    cache = [draw(2, kv_heads, 733, width)]
    steps = [(draw(1, heads, len(rows), width), draw(2, 1, kv_heads, len(rows), width)) for _ in range(3)]

    def attend(kind: type[Branches]) -> list[Tensor]:
        branches, outputs = kind(cache, rows, heads, len(steps)), []
        for query, (key, value) in steps:
            outputs.append(branches.attend(0, query, key, value, 0.3))
            branches.length += 1
            branches.count.add_(1)
        return [torch.cat(outputs)]

    return find_difference(lambda: attend(KernelBranches), attend(Branches), ["results"], dtype)
