"""What a result was made with: commit, package versions, machine, store, configuration.

Every run leaves this beside its figures (`run.json` of a training run, `results.json` of the leaderboard), so that a
figure can be traced to what produced it. No host name, user name or environment variable is recorded.
"""

import datetime
import importlib.metadata
import os
import platform
import subprocess
import sys
from pathlib import Path
from typing import Any

from replay_sessions.simplify.compiled import IS_COMPILED
from replay_sessions.store import SessionStore

__all__ = ["provenance"]

PACKAGES = (
    "shop-r1",
    "accelerate",
    "gymnasium",
    "msgspec",
    "numpy",
    "openai",
    "peft",
    "pyarrow",
    "rouge_score",
    "safetensors",
    "selectolax",
    "stable-baselines3",
    "tokenizers",
    "torch",
    "transformers",
    "trl",
    "vllm",
)
# Where code lives: a result file or a run folder written into the checkout does not make the code "dirty".
CODE_PATHS = (
    "replay_sessions",
    "shop_env",
    "train",
    "agents",
    "benchmarks",
    "pyproject.toml",
    ":(exclude)benchmarks/results",
)


def provenance(config: dict[str, Any], *, store: SessionStore | None = None, seed: int | None = None) -> dict[str, Any]:
    """Everything that is needed to say where a figure came from, as plain JSON values.

    Args:
        config: The resolved configuration of the run, as JSON values.
        store: The session store that was read, if any.
        seed: The seed the run started from, if any.
    """
    return {
        "time": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        **_source(),
        "python": platform.python_version(),
        "packages": _packages(),
        "simplifier": "compiled" if IS_COMPILED else "interpreted",
        "machine": _machine(),
        "store": None if store is None else _store(store),
        "seed": seed,
        "config": config,
    }


def _store(store: SessionStore) -> dict[str, Any]:
    return {
        "name": store.path.name,
        "fingerprint": store.fingerprint,
        "sessions": len(store),
        "source": store.manifest.source,
    }


def _source() -> dict[str, Any]:
    """The commit this code was checked out at; None where it was installed as a package or git is absent."""
    root = Path(__file__).resolve().parents[1]
    top = _git(root, "rev-parse", "--show-toplevel")
    if top is None or Path(top).resolve() != root:  # an installed package inside somebody else's repository
        return {"commit": None, "dirty": None}
    status = _git(root, "status", "--porcelain", "--", *CODE_PATHS)
    return {"commit": _git(root, "rev-parse", "HEAD"), "dirty": None if status is None else bool(status)}


def _git(root: Path, *arguments: str) -> str | None:
    try:
        done = subprocess.run(
            ["git", "-C", str(root), *arguments], capture_output=True, text=True, check=True, timeout=20
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()


def _packages() -> dict[str, str]:
    versions = {}
    for name in PACKAGES:
        try:
            versions[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return versions


def _machine() -> dict[str, Any]:
    machine: dict[str, Any] = {
        "system": f"{platform.system()} {platform.machine()}",
        "cpu": _cpu_model(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "memory_gib": _memory_gib(),
    }
    torch = sys.modules.get("torch")  # asked only where something else has loaded it: this room needs no torch
    if torch is not None:
        machine["torch_threads"] = torch.get_num_threads()
        if torch.cuda.is_available():
            machine["gpus"] = [torch.cuda.get_device_name(index) for index in range(torch.cuda.device_count())]
    return machine


def _cpu_model() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines():
            if line.lower().startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass  # not Linux
    return platform.processor() or "unknown"


def _memory_gib() -> float | None:
    try:
        return round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1)
    except (AttributeError, OSError, ValueError):
        return None
