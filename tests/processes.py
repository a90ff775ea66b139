"""Python in processes of their own."""

import os
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SHOP_R1 = [sys.executable, "-c", "import sys; from benchmarks.console import main; sys.exit(main())"]


def with_checkout(**more: str) -> dict[str, str]:
    """The environment, and that this checkout can be imported."""
    return {**os.environ, "PYTHONPATH": str(ROOT), **more}


def run_python(
    *words: str | Path, folder: Path = ROOT, launcher: Sequence[str] = (), **variables: str
) -> subprocess.CompletedProcess[str]:
    """Runs Python with these words in a folder, whatever its exit code; this checkout can be imported."""
    return subprocess.run(
        [*launcher, sys.executable, *words],
        cwd=folder,
        env=with_checkout(**variables),
        capture_output=True,
        text=True,
        timeout=600,
    )


def get_peak_memory() -> int:
    """Returns the most bytes of memory that this process has held (Linux); `ru_maxrss` starts at the parent's."""
    return 1024 * int(re.findall(r"VmHWM:\s+(\d+)", Path("/proc/self/status").read_text())[0])
