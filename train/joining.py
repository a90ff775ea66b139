"""How the processes that a launcher starts become the ranks of one run, and how they end together.

    torchrun --nproc-per-node 8 -m agents.llm_grpo.train …        (accelerate launch sets the same variables)

Each process watches the others of its machine. One that is gone without a word, killed or out of memory, ends the run
within a moment, wherever the others are: they would wait for it for ever. One line says which it was. A run that ends
by an error or by Ctrl-C is told once too, by the process that met it first.
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
from threading import Thread

import torch
from torch import distributed as dist
from torch.distributed.rendezvous import rendezvous

from replay_sessions.errors import BadConfig, ShopR1Error
from train.launch import launched_processes
from train.ranks import ALONE, POLL_S, Ranks

__all__ = ["joined"]

NO_LIMIT = timedelta(days=365)  # for what takes long; who is gone is seen by `_Watch`
TELLING_S = 5.0  # so long after a failed exchange with the others it may take until it is known who is gone
SHOW_CURSOR = "\033[?25h"


@contextmanager
def joined() -> Iterator[tuple[Ranks, Callable[[str], None]]]:
    """This process's rank among those that were launched with it; ALONE without a launcher.

    Gives too a function that takes what a person is to be told to do when a process is lost.

    Raises:
        BadConfig: A GPU for each process is not there.
    """
    if launched_processes() == 1:
        yield ALONE, lambda _advice: None
        return
    ranks = _join()
    watch = _Watch(ranks)
    watch.start()
    try:
        with Path(os.devnull).open("w") as nowhere, redirect_stdout(sys.stdout if ranks.writes else nowhere):
            yield ranks, watch.advise
    except BaseException as error:
        code = _exit_code(error)
        if code == 0:  # --help
            _leave(ranks, watch)
            raise
        if code == 1:  # perhaps because another one is gone, and then the watch ends this one
            time.sleep(TELLING_S)
        if watch.is_mine_to_tell(code):
            raise
        raise SystemExit(code) from None
    _leave(ranks, watch)


def _join() -> Ranks:
    cuda = torch.cuda.is_available()
    if cuda:
        local, devices = int(os.environ.get("LOCAL_RANK", "0")), torch.cuda.device_count()
        if local >= devices:
            raise BadConfig(f"process {local + 1} of this machine has no GPU: there are {devices}; launch no more.")
        torch.cuda.set_device(local)
    store, rank, count = next(iter(rendezvous("env://")))
    backends = "cpu:gloo,cuda:nccl" if cuda else "gloo"
    dist.init_process_group(backends, store=store, rank=rank, world_size=count, timeout=NO_LIMIT)
    return Ranks(rank, count, dist.PrefixStore("shop_r1", store))  # type: ignore[attr-defined]


def _leave(ranks: Ranks, watch: "_Watch") -> None:
    """The end of a run that went well; number 0, which may keep the notes, goes last."""
    assert ranks.notes is not None
    ranks.notes.set(f"left {ranks.rank}", "")
    while ranks.rank == 0 and not ranks.notes.check([f"left {rank}" for rank in range(ranks.count)]):
        time.sleep(POLL_S)
    watch.stop()
    dist.destroy_process_group()


def _exit_code(error: BaseException) -> int:
    if isinstance(error, SystemExit):
        return int(error.code or 0)
    if isinstance(error, KeyboardInterrupt):
        return 130
    return 2 if isinstance(error, ShopR1Error) else 1


class _Watch(Thread):
    """Ends this process as soon as another one of the same machine has ended before the run has."""

    def __init__(self, ranks: Ranks) -> None:
        super().__init__(daemon=True)
        assert ranks.notes is not None
        self._ranks, self._notes = ranks, ranks.notes
        self._advice = ""
        self._poll = select.poll()
        self._watched: dict[int, int] = {}  # file descriptor: rank
        self._wake, waking = os.pipe()
        self._poll.register(self._wake, select.POLLIN | select.POLLHUP)
        self._waking = os.fdopen(waking, "wb")
        self._notes.set(f"process {ranks.rank}", f"{os.getpid()} {socket.gethostname()}")
        for rank in range(ranks.count):
            pid, host = self._notes.get(f"process {rank}").decode().split(" ", 1)
            if rank != ranks.rank and host == socket.gethostname() and hasattr(os, "pidfd_open"):
                opened = os.pidfd_open(int(pid))  # readable once the process has ended, whoever its parent is
                self._watched[opened] = rank
                self._poll.register(opened, select.POLLIN)

    def advise(self, text: str) -> None:
        """What a person is to do when a process is lost."""
        self._advice = text

    def stop(self) -> None:
        self._waking.close()
        self.join()

    def run(self) -> None:
        while True:
            for opened, _ in self._poll.poll():
                if opened == self._wake:
                    return
                self._poll.unregister(opened)
                rank = self._watched[opened]
                if not self._has_left(rank):
                    self._end(rank)

    def is_mine_to_tell(self, code: int) -> bool:
        """Whether this process is the first that ends the run, and is to say why; the others end with its `code`."""
        return self._ending(code)[0] == self._ranks.rank

    def _ending(self, code: int) -> tuple[int, int]:
        """Which process ends the run, with what code: this one with `code`, unless another was first."""
        try:
            rank, code = map(int, self._notes.compare_set("ending", "", f"{self._ranks.rank} {code}").split())
        except dist.DistError:  # number 0 kept the notes, where no launcher did, and is gone
            return 1, code
        return rank, code

    def _has_left(self, rank: int) -> bool:
        try:
            return self._notes.check([f"left {rank}"])
        except dist.DistError:
            return False

    def _end(self, lost: int) -> None:
        """Ends this process as one that was killed would end: nothing is written any more."""
        if self._ranks.writes and sys.stderr.isatty():
            sys.stderr.write(SHOW_CURSOR + "\n")  # a progress bar hides it
        teller, code = self._ending(2)
        if teller == self._ranks.rank:
            sys.stderr.write(
                f"error: process {lost} of {self._ranks.count} (numbered from 0) was killed or has crashed, and so "
                f"all end. {self._advice}\n"
            )
        sys.stderr.flush()
        os._exit(code)
