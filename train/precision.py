"""What this machine computes fast: the precision that `auto` stands for, and what is to be said of another.

Nothing here loads torch, so that a configuration is definite before it is compared with that of a run which is there.
"""

from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from train.config import Precision

__all__ = ["precision_line", "usual_precision"]

_PROCESSOR = Path("/proc/cpuinfo")
_GPUS = (Path("/proc/driver/nvidia/version"), Path("/dev/kfd"))  # NVIDIA's driver, AMD's
_FLAGS = frozenset({"avx512_bf16", "amx_bf16", "bf16"})  # of processors that multiply in bfloat16; the last is Arm's


def usual_precision() -> Precision:
    """bfloat16 on a GPU and on a processor that multiplies in it. Others imitate it, far slower than float32."""
    return "bfloat16_autocast" if _has_gpu() or _multiplies_in_bfloat16() else "float32"


def precision_line(precision: Precision) -> str:
    """What a run computes in, and why not in the other where that is no choice."""
    if usual_precision() == "bfloat16_autocast":
        return f"precision: {precision}"
    if precision == "float32":
        return "precision: float32 (this processor does not multiply in bfloat16)"
    return (
        "precision: bfloat16_autocast, which this processor imitates, many times slower than float32: "
        "--model.precision auto takes what is fast"
    )


def _has_gpu() -> bool:
    """One that torch can use: there are builds of it for processors alone."""
    try:
        return any(path.exists() for path in _GPUS) and not version("torch").endswith("+cpu")
    except PackageNotFoundError:  # nothing is trained without it
        return False


def _multiplies_in_bfloat16() -> bool:
    """Where the system does not tell it as Linux does, it is taken for no."""
    try:
        return not _FLAGS.isdisjoint(_PROCESSOR.read_text().split())
    except OSError:
        return False
