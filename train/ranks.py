"""The processes that train one policy together: collective operations that one process alone needs no change for.

A batch's sessions are shared out over the processes (train/sampler.py). Losses are divided by totals over all of them,
and gradients are summed, not averaged: so several processes take the step that one would take, to the last digits of a
sum. One process alone is `SINGLE_PROCESS`, where every operation returns its input.

A lost process of the same machine is detected at once, another machine's by the time limit of a collective
(train/process_group.py).

`ShardedPolicy` lays the weights of a model that does not fit one GPU over the processes (FSDP2):

    weights, gradients, moments     1/n of each in every process
    a pass in training              one layer's weights are gathered at a time, and freed after it
    sampling, validating, saving    `summon_full_params()`: all of them in every process, for as long as that lasts

A pass is a collective: all processes make as many, in the same order, or they wait for one another for ever. Those with
fewer micro-batches add dummy passes (`same_passes`). Gradients are summed, not averaged, and weights are gathered in
float32, as they are held, so that every number is the one that one process computes.

Without this each process holds all of the model, and passes are no collectives: less communication, and the only way of
LoRA.
"""

import copy
import itertools
import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar

import torch
from torch import Tensor, nn
from torch import distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.distributed_c10d import Store
from torch.distributed.fsdp import FSDPModule, fully_shard
from torch.distributed.tensor import DTensor, distribute_tensor

from train.policy import Policy
from train.session_tree import SessionTree, pack

T = TypeVar("T")
POLL_S = 0.05


@dataclass(frozen=True)
class Ranks:
    """One of the processes of a run; all of them call every method below in the same order.

    Attributes:
        rank: Its number, from 0.
        world_size: The number of processes.
        store: Shared by all processes; None for a single one.
    """

    rank: int = 0
    world_size: int = 1
    store: Store | None = None
    _calls: Iterator[int] = field(default_factory=itertools.count, repr=False, compare=False)

    @property
    def is_single(self) -> bool:
        return self.world_size == 1

    @property
    def is_main(self) -> bool:
        """True for the process that writes files and prints."""
        return self.rank == 0

    @property
    def share(self) -> tuple[int, int]:
        """Which process this is, of how many that share out a batch (train/sampler.py)."""
        return self.rank, self.world_size

    def sum_metrics(self, metrics: Mapping[str, float]) -> dict[str, float]:
        """Each metric summed over all processes, which pass the same names in the same order."""
        return dict(zip(metrics, self._all_reduce(list(metrics.values()), dist.ReduceOp.SUM), strict=True))

    def all_reduce_sum(self, count: int) -> int:
        """The sum of a count over all processes."""
        return int(self._all_reduce([count], dist.ReduceOp.SUM)[0])

    def all_reduce_max(self, count: int) -> int:
        """The largest of all processes' counts."""
        return int(self._all_reduce([count], dist.ReduceOp.MAX)[0])

    def any(self, *flags: bool) -> tuple[bool, ...]:
        """For each flag, whether it is set in any process."""
        return tuple(map(bool, self._all_reduce(flags, dist.ReduceOp.MAX)))

    def all_gather(self, own: Sequence[T]) -> list[list[T]]:
        """The items of each process, in the order of ranks."""
        if self.is_single:
            return [list(own)]
        gathered: list[list[T]] = [[] for _ in range(self.world_size)]
        dist.all_gather_object(gathered, list(own))
        return gathered

    def barrier(self) -> None:
        """Waits until all processes have come here, however long that takes; unlike NCCL's, Ctrl-C interrupts it."""
        if self.store is not None:
            key = f"barrier {next(self._calls)}"
            self.store.set(f"{key} of {self.rank}", "")
            _wait_for(self.store, [f"{key} of {rank}" for rank in range(self.world_size)])

    def broadcast(self, work: Callable[[], T]) -> T:
        """Rank 0 does the work; the others wait, however long it takes, and receive the result (JSON)."""
        if self.store is None:
            return work()
        key = f"broadcast {next(self._calls)}"
        if self.is_main:
            own = work()
            self.store.set(key, json.dumps(own))
            return own
        _wait_for(self.store, [key])
        result: T = json.loads(self.store.get(key))
        return result

    def shard(self, items: Sequence[T]) -> Sequence[T]:
        """This process's share of the items."""
        return items[self.rank :: self.world_size]

    def all_reduce_gradients(self, parameters: Iterable[Tensor]) -> None:
        """Sums the gradients of parameters that every process holds completely; where no process has one, none is left.

        Those of sharded parameters were summed in the backward pass (train/ranks.py).
        """
        if self.is_single:
            return
        replicated = [parameter for parameter in parameters if not isinstance(parameter, DTensor)]
        # A process without a share of the batch has no gradient, but must take part in the sum of the others'.
        reached = self.any(*(parameter.grad is not None for parameter in replicated))
        summed = [parameter for parameter, is_reached in zip(replicated, reached, strict=True) if is_reached]
        for parameter in summed:
            if parameter.grad is None:
                parameter.grad = torch.zeros_like(parameter)
        pending = [dist.all_reduce(parameter.grad, async_op=True) for parameter in summed]
        for work in pending:
            work.wait()

    def _all_reduce(self, values: Sequence[float], operation: dist.ReduceOp.RedOpType) -> Sequence[float]:
        """In float64, which holds counts up to 2**53 exactly."""
        if self.is_single or not values:
            return values
        tensor = torch.tensor(values, dtype=torch.float64)
        dist.all_reduce(tensor, op=operation)
        reduced: list[float] = tensor.tolist()
        return reduced


SINGLE_PROCESS = Ranks()


def full_tensor(tensor: Tensor) -> Tensor:
    """A tensor that may be sharded, gathered; all processes call this at once."""
    return tensor.full_tensor() if isinstance(tensor, DTensor) else tensor


def distribute_like(tensor: Tensor, other: Tensor) -> Tensor:
    """A copy of an unsharded tensor on the device of another one, sharded as that is."""
    if not isinstance(other, DTensor):
        return tensor.to(other.device, copy=True)
    sharded = distribute_tensor(tensor.to(other.device), other.device_mesh, other.placements, src_data_rank=None)
    return sharded.clone()  # the shard may be a view that keeps all of the tensor alive


def _wait_for(store: Store, keys: list[str]) -> None:
    while not store.check(keys):
        time.sleep(POLL_S)


class ShardedPolicy(Policy):
    """Shards `model`, which every process holds completely; arguments as of Policy."""

    def __init__(self, model: Any, ranks: Ranks, **options: Any) -> None:
        super().__init__(model, **options)
        self._ranks = ranks
        self._gathered = (Policy(_without_weights(model), **self._precision),)  # in a tuple: no submodule
        mesh = init_device_mesh(self.device.type, (ranks.world_size,))
        # By default embeddings and head stay gathered until the backward pass, which a frozen model lacks.
        reshard = None if any(parameter.requires_grad for parameter in model.parameters()) else True
        for module in (*model.get_decoder().layers, self):
            fully_shard(module, mesh=mesh, reshard_after_forward=reshard)
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
        return ShardedPolicy(model, self._ranks, attention=self.attention, **self._precision)


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
