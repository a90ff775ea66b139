"""What an agent is made of, as a digest: who edits it asks anew (benchmarks/leaderboard/config.py).

    class ─► its module ─► the modules of its own package that it imports ─► those that these import ─► digest
    checkpoint, or a file or folder among the arguments ─► all its files ─────────────────────────────────┘

An agent's own package is the top-level one that its module is in; for a module in none (FILE.py), the folder it is in.
Imports are read from the source and not from what happens to be loaded, so that a digest is the same in every run,
whatever else is ranked, and an import inside a function counts. Not seen are modules of other packages (shop-r1 itself
is told by `scoring`, in asked_with), modules that no import statement names, such as one whose name is computed or the
`__init__` of a package of which a module is imported, and files that the agent reads and that are no argument.
"""

import ast
import hashlib
import inspect
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from agents.registry import AgentSpec, agent_class
from replay_sessions.plugins import OUR_PACKAGES

__all__ = ["code_digest", "deciding_arguments"]

_INSTALLED = ("site-packages", "dist-packages")


def deciding_arguments(spec: AgentSpec) -> dict[str, Any] | None:
    """What of an agent's arguments decides its replies, if its class tells (agents/protocol.py, ServedAgent)."""
    tell = getattr(agent_class(spec)[0], "deciding_arguments", None)
    return None if tell is None else tell(spec.arguments)


def code_digest(spec: AgentSpec) -> str:
    """A digest of an agent's modules, and of all files of what it is given: a checkpoint, a model, a file."""
    digest = hashlib.blake2b(digest_size=16)
    build = inspect.unwrap(agent_class(spec)[0])
    deciding = deciding_arguments(spec)
    given = spec.arguments if deciding is None else deciding
    arguments = [value for value in given.values() if isinstance(value, str)]
    try:
        source = inspect.getsourcefile(build)
    except TypeError:  # built in
        source = None
    files = _source_files(Path(source).absolute(), build.__module__) if source else []
    folders = [spec.target] if spec.is_checkpoint else []
    folders += [value for value in arguments if os.path.isdir(value)]
    files += [Path(value) for value in arguments if os.path.isfile(value)]
    for folder in folders:
        files += sorted(path for path in Path(folder).rglob("*") if path.is_file())
    for file in filter(Path.is_file, files):
        digest.update(file.name.encode())
        with file.open("rb") as opened:
            digest.update(hashlib.file_digest(opened, "blake2b").digest())
    return digest.hexdigest()


def _source_files(own: Path, module: str) -> list[Path]:
    """The file of a module, then those of its package that it imports, and so on."""
    place = own.parent if own.name == "__init__.py" else own.with_suffix("")
    names = tuple(module.split("."))
    if place.parts[-len(names) :] != names:  # a file that was loaded by its path
        names = (place.name,)
    start = place.parents[len(names) - 1]  # where absolute imports begin
    package = start if own.parent == start else start / names[0]
    found, unread = [own], [own]
    while unread and package.name not in _INSTALLED:
        for file in _imports(unread.pop(), start):
            ours = package == start and file.relative_to(start).parts[0] in OUR_PACKAGES
            if file.is_relative_to(package) and not ours and file not in found:
                found.append(file)
                unread.append(file)
    return [own, *sorted(found[1:])]


def _imports(file: Path, start: Path) -> Iterator[Path]:
    """The files beneath `start` that a file's import statements name."""
    try:
        tree = ast.parse(file.read_bytes())
    except (OSError, SyntaxError, ValueError):
        return
    for statement in ast.walk(tree):
        if isinstance(statement, ast.Import):
            modules = [start.joinpath(*name.name.split(".")) for name in statement.names]
        elif isinstance(statement, ast.ImportFrom):
            above = file.parents[statement.level - 1] if statement.level else start
            module = above.joinpath(*filter(None, (statement.module or "").split(".")))
            modules = [module, *(module / name.name for name in statement.names)]  # a name in it, or a module
        else:
            continue
        for module in modules:
            candidates = (module.with_name(f"{module.name}.py"), module / "__init__.py")
            yield from (path for path in candidates if path.is_file() and path.is_relative_to(start))
