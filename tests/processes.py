"""Python in processes of their own."""

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


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
