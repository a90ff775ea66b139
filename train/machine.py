"""The machine of this process: the precision that `auto` stands for, and how many processes a launcher has started.

Nothing here loads torch, so that a configuration is resolved before it is compared with that of an existing run.
"""

import os
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Literal

Precision = Literal["float32", "bfloat16_autocast"]
_PROCESSOR = Path("/proc/cpuinfo")
_GPUS = (Path("/proc/driver/nvidia/version"), Path("/dev/kfd"))  # NVIDIA's driver, AMD's
_FLAGS = frozenset({"avx512_bf16", "amx_bf16", "bf16"})  # of processors that multiply in bfloat16; the last is Arm's


def get_world_size() -> int:
    """The number of processes that torchrun or accelerate has started for this run; 1 without a launcher."""
    return int(os.environ.get("WORLD_SIZE", "1"))


def default_precision() -> Precision:
    """bfloat16 on a GPU and on a processor that multiplies in it. Others emulate it, far slower than float32."""
    return "bfloat16_autocast" if _has_gpu() or _multiplies_in_bfloat16() else "float32"


def format_precision(precision: Precision) -> str:
    """One line about the precision of a run, with the reason where this machine allows no other."""
    if default_precision() == "bfloat16_autocast":
        return f"precision: {precision}"
    if precision == "float32":
        return "precision: float32 (this processor does not multiply in bfloat16)"
    return (
        "precision: bfloat16_autocast, which this processor emulates, many times slower than float32: "
        "--model.precision auto selects the fast one"
    )


def _has_gpu() -> bool:
    """Returns whether there is a GPU that torch can use: some builds of torch have no GPU support."""
    try:
        return any(path.exists() for path in _GPUS) and not version("torch").endswith("+cpu")
    except PackageNotFoundError:  # nothing is trained without it
        return False


def _multiplies_in_bfloat16() -> bool:
    """Returns whether the processor states so; False on systems without /proc/cpuinfo."""
    try:
        return not _FLAGS.isdisjoint(_PROCESSOR.read_text().split())
    except OSError:
        return False
