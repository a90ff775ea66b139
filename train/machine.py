"""Detects properties of the machine: the precision that `auto` stands for, and the number of launched processes.

This module does not load torch, so that a configuration is resolved before it is compared with that of an existing run.
"""

import os
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Literal

Precision = Literal["float32", "bfloat16_autocast"]
_PROCESSOR = Path("/proc/cpuinfo")
_GPUS = (Path("/proc/driver/nvidia/version"), Path("/dev/kfd"))  # NVIDIA's driver, AMD's
_FLAGS = frozenset({"avx512_bf16", "amx_bf16", "bf16"})  # processors that multiply in bfloat16; the last is Arm's


def get_world_size() -> int:
    """Returns the number of processes that torchrun or accelerate has started for this run; 1 without a launcher."""
    return int(os.environ.get("WORLD_SIZE", "1"))


def default_precision() -> Precision:
    """Returns the fast precision: bfloat16 on a GPU and on processors that multiply in it, else float32.

    Other processors emulate bfloat16, which is far slower than float32.
    """
    return "bfloat16_autocast" if _has_gpu() or _multiplies_in_bfloat16() else "float32"


def format_precision(precision: Precision) -> str:
    """Describes the precision of a run in one line, with a note if this machine is slow at bfloat16."""
    if default_precision() == "bfloat16_autocast":
        return f"precision: {precision}"
    if precision == "float32":
        return "precision: float32 (this processor does not multiply in bfloat16)"
    return (
        "precision: bfloat16_autocast, which this processor emulates, many times slower than float32: "
        "--model.precision auto selects the fast one"
    )


def _has_gpu() -> bool:
    """Returns whether the machine has a GPU that torch can use; some builds of torch have no GPU support."""
    try:
        return any(path.exists() for path in _GPUS) and not version("torch").endswith("+cpu")
    except PackageNotFoundError:  # without torch nothing is trained
        return False


def _multiplies_in_bfloat16() -> bool:
    """Returns whether the processor's flags include bfloat16 products; False on systems without /proc/cpuinfo."""
    try:
        return not _FLAGS.isdisjoint(_PROCESSOR.read_text().split())
    except OSError:
        return False
