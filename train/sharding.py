"""A policy whose weights are laid over the processes of a run (FSDP2): what does not fit one GPU.

    weights, gradients, moments     1/n of each in every process
    a pass in training              one layer's weights are gathered at a time, and let go behind it
    sampling, validating, saving    `whole()`: all of them in every process, for as long as that lasts

A pass is an exchange: all processes have to make as many, in the same order. Who has less to do makes idle ones
(`passes_behind`, `idle_pass`). Gradients are summed, not averaged, and weights are gathered as they are held, in
float32, so that every number is the one that one process computes.

Without this each process holds all of the model, and passes need no company: less talk, and the way of LoRA and of
depth-first passes (train/attention/depth_first.py).
"""

import copy
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FSDPModule, fully_shard

from train.attention.structured import Structured
from train.policy import Policy
from train.ranks import Ranks, whole_tensor
from train.session_tree import TreeAttention, pack_trunks

__all__ = ["ShardedPolicy", "idle_pass", "passes_behind"]


class ShardedPolicy(Policy):
    """`model`, whole in every process, laid over them; arguments as of Policy."""

    def __init__(
        self,
        model: Any,
        ranks: Ranks,
        *,
        autocast: torch.dtype | None = None,
        gradient_checkpointing: bool = False,
        attention: TreeAttention = Structured,
    ) -> None:
        super().__init__(model, autocast=autocast, gradient_checkpointing=gradient_checkpointing, attention=attention)
        self._ranks = ranks
        self._gathered = (Policy(_without_weights(model), autocast=autocast),)  # in a tuple: no part of this module
        mesh = init_device_mesh(self.device.type, (ranks.count,))
        for module in (*model.get_decoder().layers, self):
            fully_shard(module, mesh=mesh)
        for part in self.modules():
            if isinstance(part, FSDPModule):
                part.set_gradient_divide_factor(1.0)
                part.set_force_sum_reduction_for_comms(True)

    @contextmanager
    def whole(self) -> Iterator[Policy]:
        """An ordinary policy with these weights, for as long as this lasts; all processes ask for it at once."""
        (gathered,) = self._gathered
        pairs = list(zip(gathered.model.parameters(), self.model.parameters(), strict=True))
        for parameter, laid_out in pairs:
            parameter.data = whole_tensor(laid_out.detach())
        try:
            yield gathered
        finally:
            for parameter, _ in pairs:
                parameter.data = _nothing(parameter)

    def frozen(self) -> Policy:
        """This policy as it is now, laid over the processes like this one."""
        with self.whole() as policy:
            model = copy.deepcopy(policy.model).requires_grad_(False).eval()
        return ShardedPolicy(model, self._ranks, autocast=self._autocast, attention=self._attention)


def passes_behind(policy: Policy, ranks: Ranks, passes: int) -> int:
    """How many idle passes a process has to make behind so many of its own, to have made as many as any other.

    Asked before the first of them: what is asked between them would meet another process's pass.
    """
    return ranks.most(passes) - passes if isinstance(policy, ShardedPolicy) else 0


def idle_pass(policy: Policy) -> None:
    """A pass from which nothing is learnt, forward, and backward where gradients are asked for."""
    log_probs = policy.log_probs(pack_trunks([([0, 0], [(1, 2)])]).to(policy.device))
    if log_probs.requires_grad:
        (0.0 * log_probs.sum()).backward()


def _without_weights(model: Any) -> Any:
    """A copy of the model with nothing in the places of its weights."""
    empty = {id(p): nn.Parameter(_nothing(p), requires_grad=p.requires_grad) for p in model.parameters()}
    return copy.deepcopy(model, memo=empty)


def _nothing(like: Tensor) -> Tensor:
    return torch.empty(0, dtype=like.dtype, device=like.device)
