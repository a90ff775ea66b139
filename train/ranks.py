"""The processes that train one policy together, as whoever trains sees them: who am I, what do all of us have.

A batch's sessions are dealt out over the processes (train/sampler.py). Losses are divided by what all of them have
together, and gradients are added up: so many processes take the step that one would, to the last digits of a sum. One
process alone is `ALONE`, for which everything here is as good as not there.

Nothing waits for a limited time only: whoever is gone is noticed otherwise (train/joining.py).
"""

import itertools
import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

import torch
from torch import Tensor
from torch import distributed as dist
from torch.distributed.tensor import DTensor, distribute_tensor

__all__ = ["ALONE", "Notes", "Ranks", "held_like", "whole_tensor"]

T = TypeVar("T")
POLL_S = 0.05


class Notes(Protocol):
    """Where processes leave each other notes: a store of torch.distributed."""

    def set(self, key: str, value: str, /) -> None: ...
    def get(self, key: str, /) -> bytes: ...
    def check(self, keys: list[str], /) -> bool: ...
    def compare_set(self, key: str, expected: str, desired: str, /) -> bytes: ...


@dataclass(frozen=True)
class Ranks:
    """One of the processes of a run.

    Attributes:
        rank: Its number, from 0. Number 0 is the one that writes and prints.
        count: How many there are.
        notes: What they leave each other word by; None where one is alone.
    """

    rank: int = 0
    count: int = 1
    notes: Notes | None = None
    _meetings: Iterator[int] = field(default_factory=itertools.count, repr=False, compare=False)

    @property
    def alone(self) -> bool:
        return self.count == 1

    @property
    def writes(self) -> bool:
        """Whether this is the process that writes files and prints."""
        return self.rank == 0

    def sums(self, figures: Mapping[str, float]) -> dict[str, float]:
        """Each figure summed over all processes, which give the same names in the same order."""
        if self.alone or not figures:
            return dict(figures)
        values = self._reduced(list(figures.values()), torch.float64, dist.ReduceOp.SUM)
        return dict(zip(figures, values, strict=True))

    def total(self, count: int) -> int:
        """A count of this process and all others."""
        return count if self.alone else int(self._reduced([count], torch.int64, dist.ReduceOp.SUM)[0])

    def most(self, count: int) -> int:
        """The largest of all processes' counts."""
        return count if self.alone else int(self._reduced([count], torch.int64, dist.ReduceOp.MAX)[0])

    def any(self, *flags: bool) -> tuple[bool, ...]:
        """Flag by flag, whether it is set in any process."""
        if self.alone:
            return flags
        return tuple(map(bool, self._reduced(flags, torch.int64, dist.ReduceOp.MAX)))

    def gather(self, own: Sequence[T]) -> list[list[T]]:
        """What each process has, in the order of their numbers."""
        if self.alone:
            return [list(own)]
        found: list[list[T]] = [[] for _ in range(self.count)]
        dist.all_gather_object(found, list(own))
        return found

    def meet(self) -> None:
        """Waits until all processes have come here, however long that takes; Ctrl-C is heard meanwhile."""
        if self.notes is None or self.alone:
            return
        meeting = f"meeting {next(self._meetings)}"
        self.notes.set(f"{meeting} of {self.rank}", "")
        _wait_for(self.notes, [f"{meeting} of {rank}" for rank in range(self.count)])

    def first(self, work: Callable[[], T]) -> T:
        """Number 0 does the work, which takes what it takes; the others wait, and are given the result (JSON)."""
        if self.notes is None or self.alone:
            return work()
        meeting = f"meeting {next(self._meetings)}"
        if self.rank == 0:
            done = work()
            self.notes.set(meeting, json.dumps(done))
            return done
        _wait_for(self.notes, [meeting])
        result: T = json.loads(self.notes.get(meeting))
        return result

    def share(self, items: Sequence[T]) -> Sequence[T]:
        """Those of the items that are this process's."""
        return items if self.alone else items[self.rank :: self.count]

    def add_gradients(self, parameters: Iterable[Tensor]) -> None:
        """Sums the gradients of parameters that every process holds whole; where nobody has one there is none.

        Those of parameters that are laid over the processes were summed in the backward pass (train/sharding.py).
        """
        if self.alone:
            return
        held = [parameter for parameter in parameters if not isinstance(parameter, DTensor)]
        if not held:
            return
        reached = self._reduced([p.grad is not None for p in held], torch.int64, dist.ReduceOp.MAX)
        summed = [parameter for parameter, any_has in zip(held, reached, strict=True) if any_has]
        for parameter in summed:
            if parameter.grad is None:
                parameter.grad = torch.zeros_like(parameter)
        pending = [dist.all_reduce(parameter.grad, async_op=True) for parameter in summed]
        for work in pending:
            work.wait()

    def _reduced(self, values: Sequence[float], dtype: torch.dtype, operation: dist.ReduceOp.RedOpType) -> list[float]:
        tensor = torch.tensor(values, dtype=dtype)
        dist.all_reduce(tensor, op=operation)
        found: list[float] = tensor.tolist()
        return found


ALONE = Ranks()


def whole_tensor(tensor: Tensor) -> Tensor:
    """A tensor that may be laid over the processes, whole; all of them ask for it at once."""
    return tensor.full_tensor() if isinstance(tensor, DTensor) else tensor


def held_like(whole: Tensor, other: Tensor) -> Tensor:
    """A copy of a whole tensor on the device of another one, and laid over the processes as that is."""
    if not isinstance(other, DTensor):
        return whole.to(other.device, copy=True)
    laid_out = distribute_tensor(whole.to(other.device), other.device_mesh, other.placements, src_data_rank=None)
    return laid_out.clone()  # its part may be a view that keeps the whole


def _wait_for(notes: Notes, keys: list[str]) -> None:
    while not notes.check(keys):
        time.sleep(POLL_S)
