"""The processes that train one policy together, and their collective operations.

The sessions of a batch are dealt to the processes (train/sampler.py). Losses are divided by totals over all processes,
and gradients are summed, not averaged. So several processes take the same step as a single one, up to the last digits
of sums. A single process is `SINGLE_PROCESS`, in which every operation returns its input.

A lost process of the same machine is detected at once, a process of another machine by the time limit of a collective
(train/process_group.py).

`ShardedPolicy` shards the weights of a model that does not fit one GPU over the processes (FSDP2):

    weights, gradients, moments     1/n of each in every process
    a pass in training              one layer's weights are gathered at a time, and freed after it
    sampling, validating, saving    `summon_full_params()`: all weights in every process, inside its context

A pass of a sharded policy is a collective. All processes must make the same number of passes in the same order, or they
wait for one another for ever. Processes with fewer micro-batches therefore add dummy passes (`same_passes`). Weights
are gathered in float32, as they are held, so that every number is the same as in a single process.

Without sharding each process holds all of the model, and passes are no collectives. This needs less communication, and
LoRA requires it.
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

from replay_sessions.foundation.errors import DeviceFailed
from train.policy import Policy
from train.session_tree import SessionTree, pack

T = TypeVar("T")
POLL_S = 0.05


class PassOutOfMemory(DeviceFailed):
    """A step that did not fit a GPU's memory; of a pass it is raised in all processes."""

    def __init__(self) -> None:
        super().__init__(
            "training takes more than the GPU's memory. Give a lower max_batch_tokens or model.max_tokens, "
            "model.gradient_checkpointing, model.lora, or model.sharded on several GPUs; `--dry-run` estimates each."
        )


@dataclass(frozen=True)
class Ranks:
    """One of the processes of a run; all of them call every method below in the same order.

    Attributes:
        rank: The number of this process, from 0.
        world_size: The number of processes.
        store: The key-value store that all processes share; None for a single process.
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
        """The rank, and the number of processes that each batch is dealt to (train/sampler.py)."""
        return self.rank, self.world_size

    def sum_metrics(self, metrics: Mapping[str, float]) -> dict[str, float]:
        """Sums each metric over all processes, which must pass the same names in the same order."""
        return dict(zip(metrics, self._all_reduce(list(metrics.values()), dist.ReduceOp.SUM), strict=True))

    def all_reduce_sum(self, count: int) -> int:
        """Returns the sum of a count over all processes."""
        return int(self._all_reduce([count], dist.ReduceOp.SUM)[0])

    def all_reduce_max(self, count: int) -> int:
        """Returns the largest count of all processes."""
        return int(self._all_reduce([count], dist.ReduceOp.MAX)[0])

    def any(self, *flags: bool) -> tuple[bool, ...]:
        """Returns for each flag whether it is set in any process."""
        return tuple(map(bool, self._all_reduce(flags, dist.ReduceOp.MAX)))

    def all_gather(self, own: Sequence[T]) -> list[list[T]]:
        """Returns the items of each process, in the order of ranks."""
        if self.is_single:
            return [list(own)]
        gathered: list[list[T]] = [[] for _ in range(self.world_size)]
        dist.all_gather_object(gathered, list(own))
        return gathered

    def barrier(self) -> None:
        """Waits without a time limit until all processes are here; unlike NCCL's barrier, Ctrl-C interrupts it."""
        if self.store is not None:
            key = f"barrier {next(self._calls)}"
            self.store.set(f"{key} of {self.rank}", "")
            _wait_for(self.store, [f"{key} of {rank}" for rank in range(self.world_size)])

    def broadcast(self, work: Callable[[], T]) -> T:
        """Does the work on rank 0; the other ranks wait without a time limit and receive the result as JSON."""
        if self.store is None:
            return work()
        key = f"broadcast {next(self._calls)}"
        if self.is_main:
            computed = work()
            self.store.set(key, json.dumps(computed))
            return computed
        _wait_for(self.store, [key])
        result: T = json.loads(self.store.get(key))
        return result

    def shard(self, items: Sequence[T]) -> Sequence[T]:
        """Returns this process's share of the items."""
        return items[self.rank :: self.world_size]

    def all_reduce_gradients(self, parameters: Iterable[Tensor]) -> None:
        """Sums the gradients of the parameters that every process holds completely.

        A parameter without a gradient in any process stays without. The gradients of sharded parameters were summed in
        the backward pass (`ShardedPolicy`).
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
        """Reduces values over all processes in float64, which holds counts up to 2**53 exactly."""
        if self.is_single or not values:
            return values
        tensor = torch.tensor(values, dtype=torch.float64)
        dist.all_reduce(tensor, op=operation)
        reduced: list[float] = tensor.tolist()
        return reduced


SINGLE_PROCESS = Ranks()


def full_tensor(tensor: Tensor) -> Tensor:
    """Gathers a tensor if it is sharded, else returns it; all processes call this at the same time."""
    return tensor.full_tensor() if isinstance(tensor, DTensor) else tensor


def distribute_like(tensor: Tensor, other: Tensor) -> Tensor:
    """Copies an unsharded tensor to the device of `other`, and shards it in the same way."""
    if not isinstance(other, DTensor):
        return tensor.to(other.device, copy=True)
    sharded = distribute_tensor(tensor.to(other.device), other.device_mesh, other.placements, src_data_rank=None)
    return sharded.clone()  # the shard may be a view that keeps all of the tensor alive


def _wait_for(store: Store, keys: list[str]) -> None:
    while not store.check(keys):
        time.sleep(POLL_S)


class ShardedPolicy(Policy):
    """A policy with sharded weights (FSDP2).

    Args:
        model: The model, which every process holds completely before.
        ranks: The processes.
        options: Further arguments of Policy.
    """

    def __init__(self, model: Any, ranks: Ranks, **options: Any) -> None:
        super().__init__(model, **options)
        self._ranks = ranks
        self._gathered = (Policy(_without_weights(model), **self._precision),)  # in a tuple: no submodule
        mesh = init_device_mesh(self.device.type, (ranks.world_size,))
        # By default embeddings and head stay gathered until the backward pass, but a frozen model has none.
        reshard = None if any(parameter.requires_grad for parameter in model.parameters()) else True
        for module in (*model.get_decoder().layers, self):
            fully_shard(module, mesh=mesh, reshard_after_forward=reshard)
        for part in self.modules():
            if isinstance(part, FSDPModule):
                part.set_gradient_divide_factor(1.0)
                part.set_force_sum_reduction_for_comms(True)

    @contextmanager
    def summon_full_params(self) -> Iterator[Policy]:
        """Yields an unsharded policy with these weights, inside the `with`; all processes enter it at the same time."""
        (gathered,) = self._gathered
        for parameter, sharded in zip(gathered.model.parameters(), self.model.parameters(), strict=True):
            parameter.data = full_tensor(sharded.detach())
        try:
            yield gathered
        finally:
            for parameter in gathered.model.parameters():
                parameter.data = _empty_like(parameter)

    def frozen(self) -> Policy:
        """Returns a frozen copy of this policy, sharded in the same way."""
        with self.summon_full_params() as policy:
            model = copy.deepcopy(policy.model).requires_grad_(False).eval()
        return ShardedPolicy(model, self._ranks, attention=self.attention, **self._precision)


@contextmanager
def same_passes(ranks: Ranks, passes: int, *policies: Policy) -> Iterator[None]:
    """Adds dummy passes of sharded policies, so that all processes make the same number, and fail together.

    The numbers are exchanged before the first pass, because an exchange between two passes could coincide with a pass
    of another process.

    Args:
        ranks: The processes.
        passes: The number of passes of each policy that this process makes inside the `with`.
        policies: The policies.

    Raises:
        PassOutOfMemory: A pass of any process did not fit; of a sharded policy only in that process, because the others
            wait for it in the pass, until the launcher ends them.
    """
    is_sharded = any(isinstance(policy, ShardedPolicy) for policy in policies)
    missing = ranks.all_reduce_max(passes) - passes if is_sharded else 0
    is_failed = False
    try:
        yield
        for _ in range(missing):
            for policy in policies:
                _dummy_pass(policy)
    except torch.OutOfMemoryError:
        is_failed = True
    if (is_failed and is_sharded) or ranks.any(is_failed)[0]:
        raise PassOutOfMemory


def _dummy_pass(policy: Policy) -> None:
    """Makes a pass that trains nothing; also backward if the passes of this policy are."""
    with torch.set_grad_enabled(torch.is_grad_enabled() and policy.training):
        log_probs = policy.log_probs(pack([SessionTree([0, 0], targets=[(1, 2)])]).to(policy.device))
    if log_probs.requires_grad:
        (0.0 * log_probs.sum()).backward()


def _without_weights(model: Any) -> Any:
    """Copies a model with empty weights in place of its own."""
    empty = {id(p): nn.Parameter(_empty_like(p), requires_grad=p.requires_grad) for p in model.parameters()}
    return copy.deepcopy(model, memo=empty)


def _empty_like(like: Tensor) -> Tensor:
    return torch.empty(0, dtype=like.dtype, device=like.device)
