"""Makes the processes of a launcher the ranks of one run, and ends them together.

    torchrun --nproc-per-node 8 -m agents.llm_grpo.train …        (accelerate launch sets the same variables)

If a process is killed or out of memory, the launcher names it and ends the others; on other machines the lost
connection ends them. A run that ends by an error or by Ctrl-C is reported once, by the process that met it first.
"""

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from datetime import timedelta
from pathlib import Path

import torch
from torch import distributed as dist
from torch.distributed.rendezvous import rendezvous

from replay_sessions.foundation.errors import BadConfig, ShopR1Error, first_line
from train.machine import get_world_size
from train.ranks import POLL_S, SINGLE_PROCESS, Ranks

# The time limit of a collective, which ends the run if a whole machine is lost. It is long enough for work of a single
# process, such as saving, and for the slowest share of a batch.
TIMEOUT = timedelta(minutes=30)


@contextmanager
def process_group() -> Iterator[Ranks]:
    """Joins the process group of the launcher; yields this process's rank, SINGLE_PROCESS without a launcher.

    Raises:
        BadConfig: The machine has fewer GPUs than processes.
    """
    if get_world_size() == 1:
        yield SINGLE_PROCESS
        return
    ranks = _join()
    try:
        with Path(os.devnull).open("w") as nowhere, redirect_stdout(sys.stdout if ranks.is_main else nowhere):
            yield ranks
    except BaseException as error:
        is_lost = _is_lost_connection(error)
        code = 2 if is_lost else _exit_code(error)
        if code == 0:  # --help
            _leave(ranks)
        elif not _ends_first(ranks):
            raise SystemExit(code) from None
        elif is_lost:
            raise ShopR1Error(
                f"process {ranks.rank}: the connection to another process of the run was lost ({first_line(error)}). "
                "Once all machines are back, the same launch with --resume and the run's folder goes on from the last "
                "state."
            ) from error
        raise
    _leave(ranks)


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


def _leave(ranks: Ranks) -> None:
    """Leaves the process group after a successful run; rank 0, which may host the store, leaves last."""
    assert ranks.store is not None
    ranks.store.set(f"left {ranks.rank}", "")
    while ranks.rank == 0 and not ranks.store.check([f"left {rank}" for rank in range(ranks.world_size)]):
        time.sleep(POLL_S)
    if dist.is_initialized():  # vLLM may have left it
        dist.destroy_process_group()


def _ends_first(ranks: Ranks) -> bool:
    """Returns whether no other process has reported why the run ends."""
    assert ranks.store is not None
    try:
        return ranks.store.compare_set("ending", "", str(ranks.rank)) == str(ranks.rank).encode()
    except dist.DistError:  # the store is lost with rank 0, which hosts it unless the launcher does
        return ranks.rank == 1


def _is_lost_connection(error: BaseException) -> bool:
    """Returns whether another process is gone; gloo raises no type of its own for that."""
    return isinstance(error, dist.DistError) or (type(error) is RuntimeError and "gloo" in str(error))


def _exit_code(error: BaseException) -> int:
    if isinstance(error, SystemExit):
        return int(error.code or 0)
    if isinstance(error, KeyboardInterrupt):
        return 130
    return 2 if isinstance(error, ShopR1Error) else 1
