"""What an agent is made of, as a digest, and what decides its replies: an edited agent is another agent.

    class ─► its module ─► the modules of its own package that it imports ─► those that these import ─► digest
    checkpoint, or a file or folder among the arguments ─► all its files ─────────────────────────────────┘

An agent's own package is the top-level one that its module is in; for a module in none (FILE.py), the folder it is in.
Imports are read from the source and not from what happens to be loaded, so that a digest is the same in every run,
whatever else is ranked, and an import inside a function counts. Not seen are modules of other packages (the identity
has shop-r1's own `scoring` version), modules that no import statement names, such as one whose name is computed, and
files that the agent reads and that are no argument. In the sandbox (sandbox.py) an agent sees none of these.
"""

import ast
import hashlib
import importlib.machinery
import inspect
import os
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from agents.registry import agent_class, installed_agents, is_own
from replay_sessions.foundation.errors import UnknownAgent, did_you_mean
from replay_sessions.foundation.packages import OUR_PACKAGES
from replay_sessions.store import SessionStore
from shop_env.evaluation.generate import AgentSpec
from shop_env.evaluation.reply_cache import Identity
from shop_env.observation import ContextConfig
from shop_env.versions import SCORING_VERSION

_UNREADABLE = (SyntaxError, ValueError, RecursionError, MemoryError)  # a stranger's source may be of any depth
_INSTALLED = ("site-packages", "dist-packages")


def reply_identity(spec: AgentSpec, context: ContextConfig, store: SessionStore, seed: int) -> Identity:
    """Everything that decides what an agent replies to a step: the key of its cached replies."""
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
    """The arguments that decide an agent's replies, if its class names them (evaluation/protocol.py, ServedAgent)."""
    select = getattr(agent_class(spec)[0], "deciding_arguments", None) if is_own(spec) else None
    return None if select is None else select(spec.arguments)


def code_digest(spec: AgentSpec) -> str:
    """A digest of an agent's modules, and of all files in its arguments: a checkpoint, a model, a file."""
    digest, deciding, files = hashlib.blake2b(digest_size=16), deciding_arguments(spec), source_files(spec)
    arguments = (spec.arguments if deciding is None else deciding).values()
    for name in [
        *([spec.target] if spec.is_checkpoint else []),
        *(value for value in arguments if isinstance(value, str)),
    ]:
        # os.path, not Path: an argument may be a text that no path can be.
        files += sorted(Path(name).rglob("*")) if os.path.isdir(name) else [Path(name)] * os.path.isfile(name)
    for file in filter(Path.is_file, files):
        digest.update(file.name.encode())
        with file.open("rb") as opened:
            digest.update(hashlib.file_digest(opened, "blake2b").digest())
    return digest.hexdigest()


def source_files(spec: AgentSpec) -> list[Path]:
    """The file of an agent's module, then those of its package that it imports, and so on."""
    if ours := is_own(spec):
        build = inspect.unwrap(agent_class(spec)[0])
        own, module = Path(inspect.getfile(build)).absolute(), build.__module__
    else:
        own, module = find_source(spec)
    path = own.parent if own.name == "__init__.py" else own.with_suffix("")
    names = tuple(module.split("."))
    if path.parts[-len(names) :] != names:  # a file that was loaded by its path
        names = (path.name,)
    root = path.parents[len(names) - 1]  # where absolute imports begin
    package = root if own.parent == root else root / names[0]
    files, unread = {own}, [own]
    while unread and package.name not in _INSTALLED:
        importing = unread.pop()
        inits = [above / "__init__.py" for above in importing.parents if package != root and not ours]
        for file in {*_imports(importing, root), *filter(Path.is_file, inits)} - files:
            is_of_project = package == root and file.relative_to(root).parts[0] in OUR_PACKAGES
            if file.is_relative_to(package) and not is_of_project:
                files.add(file)
                unread.append(file)
    return [own, *sorted(files - {own})]


def _imports(file: Path, root: Path) -> Iterator[Path]:
    """The files beneath `root` that a file's import statements name."""
    try:
        tree = ast.parse(file.read_bytes())
    except (OSError, *_UNREADABLE):
        return
    for statement in ast.walk(tree):
        modules: list[Path] = []
        if isinstance(statement, ast.Import):
            modules = [root.joinpath(*name.name.split(".")) for name in statement.names]
        elif isinstance(statement, ast.ImportFrom):
            above = file.parents[statement.level - 1] if statement.level else root
            module = above.joinpath(*filter(None, (statement.module or "").split(".")))
            modules = [module, *(module / name.name for name in statement.names)]  # a name in it, or a module
        for module in modules:
            candidates = (module.with_name(f"{module.name}.py"), module / "__init__.py")
            yield from (path for path in candidates if path.is_file() and path.is_relative_to(root))


def gives_probabilities(spec: AgentSpec) -> bool:
    """Whether the agent may: a factory function does not say what it makes, and somebody else's code is not run here.

    Raises:
        UnknownAgent, MissingExtra: There is no such agent.
    """
    if not is_own(spec):
        find_source(spec)
        return True
    build, _ = agent_class(spec)
    return not isinstance(build, type) or hasattr(build, "probabilities")


def find_source(spec: AgentSpec) -> tuple[Path, str]:
    """The file of somebody else's agent and the name of its module, found without running any of its code.

    Raises:
        UnknownAgent: There is no such file or module, or nothing of that name in it.
    """
    target = installed_agents().get(spec.target, spec.target)
    module, _, name = target.rpartition(":")
    if module.endswith(".py"):
        file, module = Path(module).absolute(), ""
        if not os.path.isfile(file):  # False too for what no path can be
            raise UnknownAgent(f"No file '{file}'")
    elif re.fullmatch(r"\w+(\.\w+)*", module):
        file = _find_module(module, spec.target)
    else:
        agent_class(spec)  # says what is wrong
        raise UnknownAgent(f"Unknown agent '{spec.target}'")
    names = _names_in(file)
    if name not in names and "*" not in names:
        raise UnknownAgent(f"No class '{name}' for agent '{spec.target}'. {did_you_mean(name, names)}")
    return file, module


def _find_module(module: str, target: str) -> Path:
    paths: Sequence[str] | None = [*sys.path, str(Path.cwd())]
    found = None
    for end in [*(match.start() for match in re.finditer(r"\.", module)), len(module)]:
        found = paths and importlib.machinery.PathFinder.find_spec(module[:end], paths)
        paths = found.submodule_search_locations if found else None
    if not found or not found.origin:
        raise UnknownAgent(
            f"No module '{module}' for agent '{target}': it is neither installed nor in the current folder"
        )
    return Path(found.origin).absolute()


def _names_in(file: Path) -> set[str]:
    """What a module defines or imports at its top level; `*` where that is not known."""
    try:
        tree = ast.parse(file.read_bytes())
    except _UNREADABLE:
        return {"*"}
    names = set[str]()
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            names.add("*" if node.name == "__getattr__" else node.name)
        elif isinstance(node, ast.ImportFrom | ast.Import):
            names |= {name.asname or name.name for name in node.names}
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
    return names
