"""What the process of somebody else's agent can see: a copy of the train split, and with bubblewrap hardly any files.

agent_process.py ─► write_train_split, sandbox_options ─► agent_worker.py
"""

import os
import subprocess
import sys
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path

import msgspec

from agents.agent_code import find_source, source_files
from agents.registry import is_own
from replay_sessions.foundation.packages import OUR_PACKAGES
from replay_sessions.store import SessionStore, StoreWriter
from replay_sessions.store.manifest import SplitPlan
from shop_env.evaluation.generate import AgentSpec

# What the child imports of this project; `agents` lies beside the others. Results lie in `benchmarks`.
_OUR_FOLDERS = [Path(__file__).parents[1] / name for name in OUR_PACKAGES if name != "benchmarks"]
_SYSTEM = ("/usr", "/lib", "/lib64", "/bin", "/etc/ld.so.cache", "/etc/ssl")
# Of the variables of this process, which may hold keys, the child gets these.
_HARMLESS = (
    "PATH",
    "LANG",
    "LC_",
    "TZ",
    "LD_LIBRARY_PATH",
    "OMP_",
    "MKL_",
    "OPENBLAS_",
    "CUDA_",
    "PYTHONHASHSEED",
)


@cache
def sandbox_works() -> bool:
    """Whether bubblewrap is installed and this system lets it make a sandbox."""
    try:
        return (
            subprocess.run(["bwrap", "--unshare-all", "--ro-bind", "/", "/", "true"], capture_output=True).returncode
            == 0
        )
    except OSError:
        return False


def child_environment(home: Path, further: Iterable[str]) -> dict[str, str]:
    """The variables of the child: harmless ones, and `further` by their names."""
    passed = {name: value for name, value in os.environ.items() if name.startswith(_HARMLESS) or name in further}
    return {"HOME": str(home)} | passed


def sandbox_options(spec: AgentSpec, folder: Path, working: Path, hidden: Sequence[Path]) -> int:
    """bubblewrap's options for a process without network and with these files alone, in an open file.

    As words of the command they could be read within the sandbox.

    Readable are the system's libraries, Python with its packages, this project, the files and folders among the agent's
    arguments, the package that it is in, and the source files that its digest is of; writable is the working folder.

    Args:
        hidden: Folders that are empty inside, wherever they lie, but for the agent's source: the store, the evaluation.
    """
    named = [value for value in spec.arguments.values() if isinstance(value, str) and os.path.exists(value)]
    packages = [path for path in sys.path if path.endswith("-packages")]
    readable = [*_SYSTEM, sys.prefix, sys.base_prefix, *packages, *map(str, _OUR_FOLDERS), *_package(spec), *named]
    shown = [Path(path).resolve() for path in readable]
    empty = [path.resolve() for path in hidden if any(path.resolve().is_relative_to(parent) for parent in shown)]
    options = [
        "--unshare-all", "--die-with-parent", "--new-session", "--proc", "/proc", "--dev", "/dev",
        "--tmpfs", "/tmp", *_bind(readable), *(word for path in empty for word in ("--tmpfs", str(path))),
        *_bind(map(str, source_files(spec))), "--ro-bind", str(folder), str(folder),
        "--bind", str(working), str(working), "--chdir", str(working),
    ]  # fmt: skip
    descriptor = os.memfd_create("options")  # a pipe would be full at 64 KiB
    os.write(descriptor, "\0".join(options).encode())
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor


def _package(spec: AgentSpec) -> list[str]:
    if is_own(spec):
        return []
    source, module = find_source(spec)
    depth = module.count(".") + (bool(module) and source.name == "__init__.py")
    return [str(source.parents[depth - 1])] if depth else []


def _bind(paths: Iterable[str]) -> list[str]:
    return [word for path in dict.fromkeys(paths) for word in ("--ro-bind-try", path, path)]


def with_absolute_paths(spec: AgentSpec) -> AgentSpec:
    """The spec for a process that starts in another folder."""
    file, colon, name = spec.target.rpartition(":")
    target = f"{Path(file).absolute()}:{name}" if colon and file.endswith(".py") else spec.target
    arguments = {
        key: os.path.abspath(value) if isinstance(value, str) and os.path.exists(value) else value
        for key, value in spec.arguments.items()
    }
    return msgspec.structs.replace(spec, target=target, arguments=arguments)


def write_train_split(store: SessionStore, path: Path) -> None:
    """Writes a store of the train split alone.

    Ids are numbers: those of the demo shop hold its seed, by which the other splits can be generated.
    """
    users: dict[str, str] = {}
    with StoreWriter(path, source=store.manifest.source, splits=SplitPlan(by="official")) as writer:
        for number, session in enumerate(store.sessions("train")):
            user = users.setdefault(session.user_id, f"user-{len(users)}")
            ids = {"session_id": f"session-{number}", "user_id": user}
            writer.write(msgspec.structs.replace(session, **ids, official_split="train"))
