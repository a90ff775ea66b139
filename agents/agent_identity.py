"""Identifies an agent by what decides its replies: arguments, a digest of its code, store, context and seed.

An agent's code is every Python file in the folder of its module, and every file that its arguments or its checkpoint
name. An edited agent is a different agent, and its steps are run again. Modules in other folders are not part of the
digest; the `scoring` version stands for shop-r1 itself.
"""

import hashlib
import importlib.util
import inspect
import os
from pathlib import Path
from typing import Any

import msgspec

from agents.catalogue import entry_of, is_own
from agents.registry import agent_class, installed_agents
from replay_sessions.foundation.errors import UnknownAgent
from replay_sessions.foundation.plugins import error_with_line, import_from
from replay_sessions.store import SessionStore
from shop_env.evaluation.entries import TRUSTED
from shop_env.evaluation.steps_file import Identity
from shop_env.evaluation.waves import AgentSpec
from shop_env.observation import ContextConfig
from shop_env.versions import SCORING_VERSION

CODE_FIELDS = ("resolved", "code")


def reply_identity(
    spec: AgentSpec,
    context: ContextConfig,
    store: SessionStore,
    seed: int,
    *,
    trusted: bool = False,
    code: Identity | None = None,
) -> Identity:
    """Returns everything that decides an agent's replies.

    Args:
        trusted: Whether an agent of a user may read whole sessions, where it could copy the answers.
        code: The result of `code_identity`, from a record where the agent's files may be absent; None computes it.
    """
    code = code_identity(spec) if code is None else code
    return {
        "target": spec.target,
        "arguments": {} if "resolved" in code else spec.arguments,
        **code,
        "store": store.fingerprint,
        "context": msgspec.to_builtins(context),
        "seed": seed,
        "scoring": SCORING_VERSION,
    } | ({TRUSTED: True} if trusted else {})


def code_identity(spec: AgentSpec) -> Identity:
    """Returns the part of an agent's identity that depends on files: `code`, and `resolved` arguments if it has any."""
    resolved = deciding_arguments(spec)
    return ({} if resolved is None else {"resolved": resolved}) | {"code": code_digest(spec)}


def recorded_code(identity: Identity) -> Identity:
    """Returns the `code_identity` in a recorded identity."""
    return {name: identity[name] for name in CODE_FIELDS if name in identity}


def deciding_arguments(spec: AgentSpec) -> dict[str, Any] | None:
    """Returns the arguments that decide replies, or None if the agent's class does not name them.

    The method that names them is described in evaluation/protocol.py; only agents of this project can have it.
    """
    select = getattr(agent_class(spec)[0], "deciding_arguments", None) if is_own(spec) else None
    return None if select is None else select(spec.arguments)


def code_digest(spec: AgentSpec) -> str:
    """Computes a digest of an agent's code and of all files that its arguments name, such as a checkpoint."""
    deciding = deciding_arguments(spec)
    texts = [value for value in (spec.arguments if deciding is None else deciding).values() if isinstance(value, str)]
    files = sorted(module_file(spec).parent.glob("*.py"))
    for name in [*(agent_class(spec)[1] if is_own(spec) else ()), *texts]:
        # os.path, because Path raises for texts that cannot be paths.
        files += sorted(Path(name).rglob("*")) if os.path.isdir(name) else [Path(name)] * os.path.isfile(name)
    digest = hashlib.blake2b(digest_size=16)
    for file in filter(Path.is_file, files):
        digest.update(file.name.encode())
        with file.open("rb") as opened:
            digest.update(hashlib.file_digest(opened, "blake2b").digest())
    return digest.hexdigest()


def gives_probabilities(spec: AgentSpec) -> bool:
    """Returns whether the agent may give probabilities; True for agents of users, which are not loaded to find out.

    Raises:
        UnknownAgent, MissingExtra: The agent does not exist, or its extra is not installed.
    """
    if (entry := entry_of(spec)) is None:
        return module_file(spec).is_file()
    agent_class(spec)  # raises
    return entry.probabilities


def gives_remarks(spec: AgentSpec) -> bool:
    """Returns whether the agent may have remarks on its answers; True for agents of users."""
    entry = entry_of(spec)
    return entry is None or entry.remarks


def module_file(spec: AgentSpec) -> Path:
    """Returns the file that defines an agent's class.

    A module that does not belong to this project is located without running it; the packages around it are imported.

    Raises:
        UnknownAgent: The file does not exist.
    """
    if is_own(spec):
        return Path(inspect.getfile(inspect.unwrap(agent_class(spec)[0])))
    module, colon, name = installed_agents().get(spec.target, spec.target).rpartition(":")
    if not colon or (module.endswith(".py") and not os.path.isfile(module)):
        agent_class(spec)  # raises with a precise message
        raise UnknownAgent(f"Unknown agent '{spec.target}'")
    if module.endswith(".py"):
        code = Path(module).read_bytes()
        if name.encode() not in code and b"import *" not in code:
            raise UnknownAgent(f"'{module}' has no '{name}'")
        return Path(module).absolute()
    import_from(Path.cwd())  # as for `load_own`
    try:
        module_spec = importlib.util.find_spec(module)
    except Exception as error:  # raised by a package around the module
        raise UnknownAgent(f"No module '{module}' for agent '{spec.target}': {error_with_line(error)}") from error
    if module_spec is None or module_spec.origin is None:
        raise UnknownAgent(
            f"No module '{module}' for agent '{spec.target}': it is neither installed nor in the current folder"
        )
    return Path(module_spec.origin)
