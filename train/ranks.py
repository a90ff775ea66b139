"""The processes that train one policy together: collective operations that one process alone needs no change for.

A batch's sessions are shared out over the processes (train/sampler.py). Losses are divided by totals over all of them,
and gradients are summed, not averaged: so several processes take the step that one would take, to the last digits of a
sum. One process alone is `SINGLE_PROCESS`, where every operation returns its input.

No operation has a time limit: a lost process is detected otherwise (train/process_group.py).
"""

import itertools
import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import torch
from torch import Tensor
from torch import distributed as dist
from torch.distributed.distributed_c10d import Store
from torch.distributed.tensor import DTensor, distribute_tensor

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
        """Whether this is the process that writes files and prints."""
        return self.rank == 0

    @property
    def share(self) -> slice:
        """Which of the items that all processes share out are this one's."""
        return slice(self.rank, None, self.world_size)

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
        return items[self.share]

    def all_reduce_gradients(self, parameters: Iterable[Tensor]) -> None:
        """Sums the gradients of parameters that every process holds completely; where no process has one, none is left.

        Those of sharded parameters were summed in the backward pass (train/sharding.py).
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
