"""What the process of somebody else's agent can see: a copy of the train split, and with bubblewrap no other files.

agent_process.py ─► write_train_split, sandbox_options ─► agent_worker.py
"""

import os
import shutil
import sys
from pathlib import Path

import msgspec

from agents.agent_code import find_source, source_files
from agents.registry import is_own
from replay_sessions.foundation.errors import BadConfig
from replay_sessions.foundation.plugins import OUR_PACKAGES
from replay_sessions.store import SessionStore, StoreWriter
from replay_sessions.store.manifest import SplitPlan
from shop_env.evaluation.generate import AgentSpec

# What the child imports of this project; `agents` lies beside the others.
_OUR_FOLDERS = [Path(__file__).parents[1] / name for name in OUR_PACKAGES]
_SYSTEM = ("/usr", "/lib", "/lib64", "/bin", "/etc/ld.so.cache", "/etc/ssl")


def check_sandbox() -> None:
    """Raises BadConfig where bubblewrap is not installed."""
    if shutil.which("bwrap") is None:
        raise BadConfig("--sandbox needs bubblewrap: install it (`apt install bubblewrap`), or leave --sandbox out")


def sandbox_options(spec: AgentSpec, folder: Path, working: Path) -> int:
    """bubblewrap's options for a process without network and with these files alone: a pipe to read them from.

    As words of the command they could be read within the sandbox. Readable are the system's libraries, Python with its
    packages, this project, the agent's own source files (of a package all its files) and what its arguments name;
    writable is the working folder.
    """
    named = [value for value in spec.arguments.values() if isinstance(value, str) and os.path.exists(value)]
    own = [] if is_own(spec) else map(str, _own_files(spec))
    readable = dict.fromkeys([*_SYSTEM, sys.prefix, sys.base_prefix, *map(str, _OUR_FOLDERS), *own, *named])
    binds = [word for path in readable for word in ("--ro-bind-try", path, path)]
    options = [
        "--unshare-all", "--die-with-parent", "--new-session", "--proc", "/proc", "--dev", "/dev",
        "--tmpfs", "/tmp", *binds, "--ro-bind", str(folder), str(folder), "--bind", str(working), str(working),
        "--chdir", str(working),
    ]  # fmt: skip
    reading, writing = os.pipe()
    with os.fdopen(writing, "wb") as pipe:
        pipe.write("\0".join(options).encode())
    return reading


def _own_files(spec: AgentSpec) -> list[Path]:
    source, module = find_source(spec)
    if not module:
        return source_files(source, module)
    folders = module.count(".") + (source.name == "__init__.py")
    return [source.parents[folders - 1] if folders else source]


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
    """Writes a store of the train split alone."""
    with StoreWriter(path, source=store.manifest.source, splits=SplitPlan(by="official")) as writer:
        for session in store.sessions("train"):
            writer.write(msgspec.structs.replace(session, official_split="train"))
