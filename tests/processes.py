"""Python in processes of their own."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def run_python(*words: str | Path, folder: Path = ROOT) -> subprocess.CompletedProcess[str]:
    """Runs Python with these words in a folder, whatever its exit code; this checkout can be imported."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(
        [sys.executable, *words], cwd=folder, env=environment, capture_output=True, text=True, timeout=600, check=False
    )
