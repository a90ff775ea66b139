"""The names that docs/architecture.md and CONTRIBUTING.md cite are those of files, folders, modules and definitions."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from benchmarks.console import PROGRAMS
from replay_sessions.foundation.packages import OUR_PACKAGES
from tests.processes import ROOT

PAGES = ("docs/architecture.md", "CONTRIBUTING.md")
WRITTEN = {"results.json"}  # files that a run leaves
# Names of Python, of other packages, and what the rules forbid.
ELSEWHERE = {"long", "slow", "set", "msgspec.Struct", "rouge_score", "SHOP_R1_TEST_DATA", "utils.py"}
NAME = r"[A-Za-z_]\w*"


@cache
def paths() -> tuple[str, ...]:
    """Lists files and folders, each with a slash before it, folders with one behind."""
    found = [path for package in (*OUR_PACKAGES, "tests") for path in (ROOT / package, *(ROOT / package).rglob("*"))]
    found += [path for path in ROOT.iterdir() if path.is_file()]
    return tuple(f"/{path.relative_to(ROOT).as_posix()}{'/' * path.is_dir()}" for path in found)


@cache
def dotted() -> tuple[str, ...]:
    """Lists modules and their definitions, each with a dot before it."""
    return tuple(
        f".{name}" for package in OUR_PACKAGES for file in (ROOT / package).rglob("*.py") for name in names(file)
    )


def names(file: Path) -> Iterator[str]:
    module = ".".join(file.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
    yield module
    for node in ast.parse(file.read_text(encoding="utf-8")).body:
        match node:
            case ast.ClassDef() | ast.FunctionDef() | ast.AsyncFunctionDef():
                yield f"{module}.{node.name}"
                fields = [each.target for each in node.body if isinstance(each, ast.AnnAssign)]
                yield from (f"{module}.{node.name}.{field.id}" for field in fields if isinstance(field, ast.Name))
            case ast.ImportFrom():
                yield from (f"{module}.{alias.asname or alias.name}" for alias in node.names)
            case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
                yield f"{module}.{name}"


def exists(cited: str) -> bool:
    """Says whether a path or a dotted name is that of something in the packages, or its end."""
    if cited in PROGRAMS or cited in WRITTEN:
        return True
    if "/" in cited or re.fullmatch(rf"{NAME}\.(py|toml|txt|md)", cited):
        return any(path.endswith((f"/{cited}", f"/{cited}/", f"/{cited}.py")) for path in paths())
    return any(name.endswith(f".{cited}") for name in dotted())


def cited_in(text: str) -> list[str]:
    """Lists paths and names between backticks, and dotted names in blocks of code."""
    blocks = re.findall(r"^```\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    spans = re.findall(r"`([^`\n]+)`", re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL))
    cited = [name for name in spans if re.fullmatch(r"[\w./]*[A-Za-z/]", name) and not name.startswith((".", "/"))]
    cited += [word for block in blocks for word in re.findall(rf"{NAME}(?:\.{NAME})+", block)]
    return [name for name in cited if name not in ELSEWHERE]


@pytest.mark.parametrize("page", PAGES)
def test_what_a_page_cites_exists(page: str) -> None:
    cited = cited_in((ROOT / page).read_text(encoding="utf-8"))
    assert len(cited) > 20
    assert [name for name in cited if not exists(name)] == []


@pytest.mark.parametrize("name", ["grpo/trainers.py", "store.StoreWriters", "shop_env/rewards/", "trainer", "score"])
def test_a_name_that_nothing_has_is_noticed(name: str) -> None:
    assert exists(name) == (name in ("trainer", "score"))
