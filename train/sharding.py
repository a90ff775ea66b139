"""A policy whose weights are sharded over the processes of a run (FSDP2), for what does not fit one GPU.

    weights, gradients, moments     1/n of each in every process
    a pass in training              one layer's weights are gathered at a time, and freed after it
    sampling, validating, saving    `summon_full_params()`: all of them in every process, for as long as that lasts

A pass is a collective: all processes make as many, in the same order, or they wait for one another for ever. Those with
fewer micro-batches add dummy passes (`same_passes`). Gradients are summed, not averaged, and weights are gathered in
float32, as they are held, so that every number is the one that one process computes.

Without this each process holds all of the model, and passes are no collectives: less communication, and the only way of
LoRA and of depth-first passes (train/attention/depth_first.py).
"""

import copy
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FSDPModule, fully_shard

from train.policy import Policy
from train.ranks import Ranks, full_tensor
from train.session_tree import SessionTree, pack


class ShardedPolicy(Policy):
    """Shards `model`, which every process holds completely; arguments as of Policy."""

    def __init__(
        self,
        model: Any,
        ranks: Ranks,
        *,
        autocast: torch.dtype | None = None,
        **options: Any,
    ) -> None:
        super().__init__(model, autocast=autocast, **options)
        self._ranks = ranks
        self._gathered = (Policy(_without_weights(model), autocast=autocast),)  # in a tuple: no submodule
        mesh = init_device_mesh(self.device.type, (ranks.world_size,))
        for module in (*model.get_decoder().layers, self):
            fully_shard(module, mesh=mesh)
        for part in self.modules():
            if isinstance(part, FSDPModule):
                part.set_gradient_divide_factor(1.0)
                part.set_force_sum_reduction_for_comms(True)

    @contextmanager
    def summon_full_params(self) -> Iterator[Policy]:
        """An unsharded policy with these weights, inside the `with`; all processes enter it at once."""
        (gathered,) = self._gathered
        for parameter, sharded in zip(gathered.model.parameters(), self.model.parameters(), strict=True):
            parameter.data = full_tensor(sharded.detach())
        try:
            yield gathered
        finally:
            for parameter in gathered.model.parameters():
                parameter.data = _empty_like(parameter)

    def frozen(self) -> Policy:
        """A frozen copy of this policy, sharded as this one."""
        with self.summon_full_params() as policy:
            model = copy.deepcopy(policy.model).requires_grad_(False).eval()
        return ShardedPolicy(model, self._ranks, autocast=self._autocast, attention=self._attention)


@contextmanager
def same_passes(ranks: Ranks, passes: int, *policies: Policy) -> Iterator[None]:
    """Around `passes` passes of each policy: makes dummy ones after them, up to the largest number of any process.

    The number is exchanged before the first pass: between two of them the exchange would meet another process's pass.
    """
    is_sharded = any(isinstance(policy, ShardedPolicy) for policy in policies)
    missing = ranks.all_reduce_max(passes) - passes if is_sharded else 0
    yield
    for _ in range(missing):
        for policy in policies:
            _dummy_pass(policy)


def _dummy_pass(policy: Policy) -> None:
    """A pass that trains nothing; backward too where the policy's own passes have one."""
    with torch.set_grad_enabled(torch.is_grad_enabled() and policy.training):
        log_probs = policy.log_probs(pack([SessionTree([0, 0], targets=[(1, 2)])]).to(policy.device))
    if log_probs.requires_grad:
        (0.0 * log_probs.sum()).backward()


def _without_weights(model: Any) -> Any:
    """A copy of the model with empty weights."""
    empty = {id(p): nn.Parameter(_empty_like(p), requires_grad=p.requires_grad) for p in model.parameters()}
    return copy.deepcopy(model, memo=empty)


def _empty_like(like: Tensor) -> Tensor:
    return torch.empty(0, dtype=like.dtype, device=like.device)
