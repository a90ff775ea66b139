"""Makes the processes of a launcher the ranks of one run, and ends them together.

    torchrun --nproc-per-node 8 -m agents.llm_grpo.train …        (accelerate launch sets the same variables)

Each process watches the others of its machine. If a process is killed or out of memory, the run ends within a moment
and names it in one line; otherwise the others would wait for it for ever. A run that ends by an error or by Ctrl-C is
reported once too, by the process that met it first.
"""

import os
import select
import socket
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout
from datetime import timedelta
from pathlib import Path
from threading import Event, Thread

import torch
from torch import distributed as dist
from torch.distributed.rendezvous import rendezvous

from replay_sessions.foundation.errors import BadConfig, ShopR1Error
from train.machine import get_world_size
from train.ranks import POLL_S, SINGLE_PROCESS, Ranks

# The time limit of a collective, which ends the run if a whole machine is lost, because `_Watch` does not see that. It
# is long enough for work of a single process, such as saving, and for the slowest share of a batch.
TIMEOUT = timedelta(minutes=30)
DETECTION_S = 5.0  # the time after a failed collective in which the watch detects a lost process
SHOW_CURSOR = "\033[?25h"


@contextmanager
def process_group() -> Iterator[tuple[Ranks, Callable[[str], None]]]:
    """Joins the process group of the launcher; yields SINGLE_PROCESS without a launcher.

    Yields:
        This process's rank, and a function that sets the advice printed when a process is lost.

    Raises:
        BadConfig: The machine has fewer GPUs than processes.
    """
    if get_world_size() == 1:
        yield SINGLE_PROCESS, lambda _advice: None
        return
    ranks = _join()
    watch = _Watch(ranks)
    watch.start()
    try:
        with Path(os.devnull).open("w") as nowhere, redirect_stdout(sys.stdout if ranks.is_main else nowhere):
            yield ranks, watch.advise
    except BaseException as error:
        code = _exit_code(error)
        if code == 0:  # --help
            _leave(ranks, watch)
            raise
        if code == 1:  # perhaps because another process is lost; the watch then ends this one
            time.sleep(DETECTION_S)
        if watch.claim_end(code)[0] == ranks.rank:
            raise
        raise SystemExit(code) from None
    _leave(ranks, watch)


def _join() -> Ranks:
    cuda = torch.cuda.is_available()
    if cuda:
        local, devices = int(os.environ.get("LOCAL_RANK", "0")), torch.cuda.device_count()
        if local >= devices:
            raise BadConfig(f"process {local + 1} of this machine has no GPU: there are {devices}; launch fewer.")
        torch.cuda.set_device(local)
    store, rank, count = next(iter(rendezvous("env://")))
    backends = "cpu:gloo,cuda:nccl" if cuda else "gloo"
    dist.init_process_group(backends, store=store, rank=rank, world_size=count, timeout=TIMEOUT)
    return Ranks(rank, count, dist.PrefixStore("shop_r1", store))  # type: ignore[attr-defined]


def _leave(ranks: Ranks, watch: "_Watch") -> None:
    """Leaves the process group after a successful run; rank 0, which may host the store, leaves last."""
    assert ranks.store is not None
    ranks.store.set(f"left {ranks.rank}", "")
    while ranks.rank == 0 and not ranks.store.check([f"left {rank}" for rank in range(ranks.world_size)]):
        time.sleep(POLL_S)
    watch.stop()
    if dist.is_initialized():  # vLLM may have left it
        dist.destroy_process_group()


def _exit_code(error: BaseException) -> int:
    if isinstance(error, SystemExit):
        return int(error.code or 0)
    if isinstance(error, KeyboardInterrupt):
        return 130
    return 2 if isinstance(error, ShopR1Error) else 1


class _Watch(Thread):
    """A thread that ends this process if another process of the same machine ends before the run has."""

    def __init__(self, ranks: Ranks) -> None:
        super().__init__(daemon=True)
        assert ranks.store is not None
        self._ranks, self._store = ranks, ranks.store
        self._advice = ""
        self._poll = select.poll()
        self._watched: dict[int, int] = {}  # rank by file descriptor
        self._stopped = Event()
        self._store.set(f"process {ranks.rank}", f"{os.getpid()} {socket.gethostname()}")
        for rank in range(ranks.world_size):
            pid, host = self._store.get(f"process {rank}").decode().split(" ", 1)
            if rank != ranks.rank and host == socket.gethostname() and hasattr(os, "pidfd_open"):
                opened = os.pidfd_open(int(pid))  # readable once the process has ended, whatever its parent
                self._watched[opened] = rank
                self._poll.register(opened, select.POLLIN)

    def advise(self, text: str) -> None:
        """Sets the advice printed when a process is lost."""
        self._advice = text

    def stop(self) -> None:
        self._stopped.set()
        self.join()

    def run(self) -> None:
        while not self._stopped.is_set():
            for opened, _ in self._poll.poll(1000 * POLL_S):
                self._poll.unregister(opened)
                rank = self._watched[opened]
                if not self._has_left(rank):
                    self._end(rank)

    def claim_end(self, code: int) -> tuple[int, int]:
        """Claims to be the process that ends the run and reports why, unless another process was first.

        Returns:
            The rank of the process that ends the run, and the exit code of all processes.
        """
        try:
            rank, code = map(int, self._store.compare_set("ending", "", f"{self._ranks.rank} {code}").split())
        except dist.DistError:  # the store is lost with rank 0, which hosts it unless the launcher does
            return 1, code
        return rank, code

    def _has_left(self, rank: int) -> bool:
        try:
            return self._store.check([f"left {rank}"])
        except dist.DistError:
            return False

    def _end(self, lost: int) -> None:
        """Ends this process immediately, as if killed, so that it writes no further file."""
        if self._ranks.is_main and sys.stderr.isatty():
            sys.stderr.write(SHOW_CURSOR + "\n")  # a progress bar hides it
        first, code = self.claim_end(2)
        if first == self._ranks.rank:
            sys.stderr.write(
                f"error: process {lost} of {self._ranks.world_size} (numbered from 0) was killed or has crashed, and "
                f"so all end. {self._advice}\n"
            )
        sys.stderr.flush()
        os._exit(code)
