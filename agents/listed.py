"""What `python -m agents list` tells of each registered agent: what it does, and what it lacks to run here.

Both are read from the source, so that nothing is loaded: libraries of models take seconds to import.
"""

import ast
from collections.abc import Iterator
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import msgspec

from agents.registry import AGENTS, extra_of, known_agents
from replay_sessions.plugins import OUR_PACKAGES

__all__ = ["ListedAgent", "listed_agents"]


class ListedAgent(msgspec.Struct, frozen=True):
    """A registered agent.

    Attributes:
        summary: The first line of its docstring.
        needs: What would make it ready; "" where it is.
    """

    name: str
    summary: str
    needs: str = ""


def listed_agents() -> list[ListedAgent]:
    """Every registered agent: ours as they are registered, then those of other packages by name."""
    names = known_agents()
    return [_listed(name, names[name]) for name in [*AGENTS, *sorted(names.keys() - AGENTS.keys())]]


def _listed(name: str, address: str) -> ListedAgent:
    module, _, class_name = address.partition(":")
    tree = _source(module)
    if tree is None:
        return ListedAgent(name, "", f"cannot be loaded: there is no module '{module}'")
    missing = sorted(package for package in _packages(module) if not _is_installed(package))
    extra = extra_of(module) if missing else None
    install = f"; pip install 'shop-r1[{extra}]'" if extra else ""
    return ListedAgent(name, _summary(tree, class_name), f"needs {', '.join(missing)}{install}" if missing else "")


@cache
def _source(module: str) -> ast.Module | None:
    try:
        found = find_spec(module)
    except Exception:  # looking for a module runs its package, and another's that fails must not hide the rest
        return None
    return ast.parse(Path(found.origin).read_bytes()) if found is not None and found.origin else None


def _is_installed(package: str) -> bool:
    try:
        return find_spec(package) is not None
    except ImportError:
        return False


def _summary(tree: ast.Module, name: str) -> str:
    for statement in tree.body:
        if isinstance(statement, (ast.ClassDef, ast.FunctionDef)) and statement.name == name:
            return (ast.get_docstring(statement) or "").partition("\n")[0]
    return ""


def _packages(module: str) -> set[str]:
    """The packages of others that are imported with a module, by itself or by modules of ours that it imports."""
    found: set[str] = set()
    unread, read = [module], {module}
    while unread:
        for imported in _imports(unread.pop()):
            package = imported.partition(".")[0]
            if package not in OUR_PACKAGES:
                found.add(package)
            elif imported not in read:
                read.add(imported)
                unread.append(imported)
    return found


def _imports(module: str) -> Iterator[str]:
    """What a module imports at its top."""
    tree = _source(module)
    for statement in tree.body if tree else ():
        if isinstance(statement, ast.Import):
            yield from (name.name for name in statement.names)
        elif isinstance(statement, ast.ImportFrom) and statement.module and not statement.level:
            yield statement.module
