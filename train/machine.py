"""Detects properties of the machine: the precision that `auto` stands for, and the number of launched processes.

This module does not load torch, so that a configuration is resolved before it is compared with that of an existing run.
"""

import os
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Literal, NamedTuple

Precision = Literal["float32", "bfloat16_autocast"]
GpuName = Literal["a100", "h100", "h200", "l40s", "rtx4090"]


class Gpu(NamedTuple):
    """A GPU by its data sheet.

    Attributes:
        gib: Usable memory in GiB.
        peak_tflops: Peak of dense bfloat16 products, in TFLOP/s.
        terabytes_per_s: Bandwidth of its memory.
    """

    gib: float
    peak_tflops: float
    terabytes_per_s: float


GPUS: dict[GpuName, Gpu] = {
    "a100": Gpu(80, 312, 2.04),
    "h100": Gpu(80, 989, 3.35),
    "h200": Gpu(139, 989, 4.8),
    "l40s": Gpu(45, 362, 0.864),
    "rtx4090": Gpu(24, 165, 1.01),
}
_PROCESSOR = Path("/proc/cpuinfo")
_GPUS = (Path("/proc/driver/nvidia/version"), Path("/dev/kfd"))  # NVIDIA's driver, AMD's
_FLAGS = frozenset({"avx512_bf16", "amx_bf16", "bf16"})  # processors that multiply in bfloat16; the last is Arm's


def get_world_size() -> int:
    """Returns the number of processes that torchrun or accelerate has started for this run; 1 without a launcher."""
    return int(os.environ.get("WORLD_SIZE", "1"))


def let_segments_expand() -> None:
    """Lets torch's allocator extend its blocks of GPU memory, which passes of many sizes otherwise fragment.

    It has to be called before torch is loaded. The user's own settings stay; vLLM's memory pool does not work with it.
    """
    names = "PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF"  # the second before torch 2.9
    if not any(name in os.environ for name in names) and find_spec("vllm") is None:
        os.environ.update(dict.fromkeys(names, "expandable_segments:True"))


def default_precision() -> Precision:
    """Returns the fast precision: bfloat16 on a GPU and on processors that multiply in it, else float32.

    Other processors emulate bfloat16, which is far slower than float32.
    """
    return "bfloat16_autocast" if _has_gpu() or _multiplies_in_bfloat16() else "float32"


def gpu_precision() -> Precision:
    """Returns bfloat16 on a GPU, else float32, so that results do not depend on the kind of processor."""
    return "bfloat16_autocast" if _has_gpu() else "float32"


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
