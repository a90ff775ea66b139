"""Records what produced a result: commit, package versions, machine, store, configuration.

Every run writes this record beside its results (`run.json` of a training run, `results.json` of the leaderboard), so
that a number can be traced to its code and data. No host name, user name or environment variable is recorded.
"""

import datetime
import importlib.metadata
import os
import platform
import re
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol

import msgspec

from replay_sessions.foundation.packages import OUR_PACKAGES

_PACKAGES = """
shop-r1 accelerate gymnasium msgspec numpy openai peft pyarrow rouge_score safetensors selectolax
stable-baselines3 tokenizers torch transformers trl vllm"""
# Paths with code: a result file or run folder written into the checkout does not make the code "dirty".
CODE_PATHS = (*OUR_PACKAGES, "pyproject.toml", ":(exclude)benchmarks/results")


class Describable(Protocol):
    """Something with a short description in JSON values, such as a SessionStore."""

    def describe(self) -> dict[str, Any]: ...


def provenance(config: object, *, store: Describable | None = None, seed: int | None = None) -> dict[str, Any]:
    """Returns the origin of a result as plain JSON values.

    Args:
        config: The resolved configuration of the run.
        store: The session store that the run read, if any.
        seed: The seed of the run, if any.
    """
    return {
        "time": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        **_source(),
        "python": platform.python_version(),
        "packages": _packages(),
        "machine": _machine(),
        "store": None if store is None else store.describe(),
        "seed": seed,
        "config": msgspec.to_builtins(config, enc_hook=str),
    }


def _source() -> dict[str, Any]:
    """Returns the commit of this checkout; None values if the package is installed or git is absent."""
    root = Path(__file__).resolve().parents[2]
    top = _git(root, "rev-parse", "--show-toplevel")
    if top is None or Path(top).resolve() != root:  # the package is installed inside another repository
        return {"commit": None, "dirty": None}
    status = _git(root, "status", "--porcelain", "--", *CODE_PATHS)
    return {"commit": _git(root, "rev-parse", "HEAD"), "dirty": None if status is None else bool(status)}


def _git(root: Path, *arguments: str) -> str | None:
    try:
        process = subprocess.run(
            ["git", "-C", str(root), *arguments], capture_output=True, text=True, check=True, timeout=20
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return process.stdout.strip()


def _packages() -> dict[str, str]:
    versions = {}
    for name in _PACKAGES.split():
        with suppress(importlib.metadata.PackageNotFoundError):
            versions[name] = importlib.metadata.version(name)
    return versions


def _machine() -> dict[str, Any]:
    machine: dict[str, Any] = {
        "system": f"{platform.system()} {platform.machine()}",
        "cpu": _cpu_model(),
        "cores": os.cpu_count(),
        "memory_gib": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
    }
    torch = sys.modules.get("torch")  # only if other code has loaded it, because the foundation does not need torch
    if torch is not None:
        machine["torch_threads"] = torch.get_num_threads()
        if torch.cuda.is_available():
            machine["gpus"] = [torch.cuda.get_device_name(index) for index in range(torch.cuda.device_count())]
    return machine


def _cpu_model() -> str:
    with suppress(OSError):  # not Linux
        cpu_info = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
        if match := re.search(r"^model name\s*:\s*(.*\S)", cpu_info, re.IGNORECASE | re.MULTILINE):
            return match[1]
    return platform.processor() or "unknown"
