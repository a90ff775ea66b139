"""What decides an agent's replies: its arguments, the digest of its code, and what it is evaluated on.

The code of an agent is every Python file in the folder of its module, and every file that its arguments or its
checkpoint name. An edited agent is another agent, whose steps are run again; modules elsewhere are not seen (of shop-r1
itself the `scoring` version tells).
"""

import hashlib
import importlib.util
import inspect
import os
from pathlib import Path
from typing import Any

import msgspec

from agents.registry import agent_class, installed_agents, is_own
from replay_sessions.foundation.errors import UnknownAgent
from replay_sessions.foundation.plugins import error_with_line, import_from
from replay_sessions.store import SessionStore
from shop_env.evaluation.generate import AgentSpec
from shop_env.evaluation.steps_file import Identity
from shop_env.observation import ContextConfig
from shop_env.versions import SCORING_VERSION


def reply_identity(spec: AgentSpec, context: ContextConfig, store: SessionStore, seed: int) -> Identity:
    """Returns everything that decides what an agent replies to a step."""
    deciding = deciding_arguments(spec)
    return {
        "target": spec.target,
        "arguments": spec.arguments if deciding is None else {},
        **({} if deciding is None else {"resolved": deciding}),
        "code": code_digest(spec),
        "store": store.fingerprint,
        "context": msgspec.to_builtins(context),
        "seed": seed,
        "scoring": SCORING_VERSION,
    }


def deciding_arguments(spec: AgentSpec) -> dict[str, Any] | None:
    """Returns the arguments that decide replies, if the agent's class names them (evaluation/protocol.py)."""
    select = getattr(agent_class(spec)[0], "deciding_arguments", None) if is_own(spec) else None
    return None if select is None else select(spec.arguments)


def code_digest(spec: AgentSpec) -> str:
    """Returns a digest of an agent's code, and of all files in its arguments: a checkpoint, a model, a file."""
    deciding = deciding_arguments(spec)
    named = [value for value in (spec.arguments if deciding is None else deciding).values() if isinstance(value, str)]
    files = sorted(module_file(spec).parent.glob("*.py"))
    for name in [*(agent_class(spec)[1] if is_own(spec) else ()), *named]:
        # os.path, not Path: an argument may be a text that no path can be.
        files += sorted(Path(name).rglob("*")) if os.path.isdir(name) else [Path(name)] * os.path.isfile(name)
    digest = hashlib.blake2b(digest_size=16)
    for file in filter(Path.is_file, files):
        digest.update(file.name.encode())
        with file.open("rb") as opened:
            digest.update(hashlib.file_digest(opened, "blake2b").digest())
    return digest.hexdigest()


def gives_probabilities(spec: AgentSpec) -> bool:
    """Returns whether the agent may give probabilities; True where that is unknown without loading somebody else's.

    Raises:
        UnknownAgent, MissingExtra: There is no such agent.
    """
    if not is_own(spec):
        return module_file(spec).is_file()
    build, _ = agent_class(spec)
    return not isinstance(build, type) or hasattr(build, "probabilities")


def module_file(spec: AgentSpec) -> Path:
    """Returns the file that an agent's class is in. Somebody else's module is found, not run; its packages are.

    Raises:
        UnknownAgent: There is none.
    """
    if is_own(spec):
        return Path(inspect.getfile(inspect.unwrap(agent_class(spec)[0])))
    module, colon, name = installed_agents().get(spec.target, spec.target).rpartition(":")
    if not colon or (module.endswith(".py") and not os.path.isfile(module)):
        agent_class(spec)  # says what is wrong
        raise UnknownAgent(f"Unknown agent '{spec.target}'")
    if module.endswith(".py"):
        code = Path(module).read_bytes()
        if name.encode() not in code and b"import *" not in code:
            raise UnknownAgent(f"'{module}' has no '{name}'")
        return Path(module).absolute()
    import_from(Path.cwd())  # as for `load_own`
    try:
        found = importlib.util.find_spec(module)
    except Exception as error:  # of a package around it
        raise UnknownAgent(f"No module '{module}' for agent '{spec.target}': {error_with_line(error)}") from error
    if found is None or found.origin is None:
        raise UnknownAgent(
            f"No module '{module}' for agent '{spec.target}': it is neither installed nor in the current folder"
        )
    return Path(found.origin)
