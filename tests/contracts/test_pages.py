"""The pages that people read: links and commands lead somewhere, every page is on the site, versions agree."""

import ast
import re
import tomllib
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
import yaml

from benchmarks.console import PROGRAMS
from replay_sessions.foundation.packages import OUR_PACKAGES
from tests.processes import ROOT

PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
LINK = re.compile(r"!?\[[^\]]*\]\((?P<target>[^)\s]+)\)")
COMMAND = re.compile(r"python -m (?P<module>[a-z_0-9.]+)")


def headings(page: Path) -> set[str]:
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    words = (re.sub(r"[^\w\s-]", "", line.lower()) for line in re.findall(r"^#+ (.*)", text, re.MULTILINE))
    return {re.sub(r"\s+", "-", line.strip()) for line in words}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_within_the_project_leads_somewhere(page):
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    for found in LINK.finditer(text):
        target, _, heading = unquote(found["target"]).partition("#")
        if "://" in target:
            continue
        linked = (page.parent / target).resolve() if target else page
        assert linked.exists(), f"{page.name}: {found[0]}"
        assert not heading or heading in headings(linked), f"{page.name}: {found[0]}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_command_on_a_page_is_a_module_of_the_project(page):
    for module in {found["module"] for found in COMMAND.finditer(page.read_text(encoding="utf-8"))}:
        path = ROOT.joinpath(*module.split("."))
        if (ROOT / module.split(".")[0]).is_dir():
            assert path.with_suffix(".py").is_file() or (path / "__main__.py").is_file(), f"{page.name}: {module}"


def test_pages_call_programs_by_their_names_in_the_console_command():
    programs = "|".join(re.escape(program) for program, _ in PROGRAMS.values())
    for page in PAGES[2:]:
        lines = page.read_text(encoding="utf-8").splitlines()
        named = [line for line in lines if re.search(rf"python -m ({programs})(?![\w.])", line)]
        assert all("is the same command" in line or "is short for" in line for line in named), page.name


def test_every_page_stands_once_in_the_site_s_navigation():
    site = yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))

    def pages(entry: Any) -> list[str]:
        if isinstance(entry, str):
            return [entry]
        return [page for each in (entry.values() if isinstance(entry, dict) else entry) for page in pages(each)]

    docs = ROOT / "docs"
    assert sorted(pages(site["nav"])) == sorted(page.relative_to(docs).as_posix() for page in docs.rglob("*.md"))


def test_the_citation_names_the_version_that_is_built():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert str(citation["version"]) == project["version"]
    assert {"cff-version", "message", "title", "authors"} <= citation.keys()


def test_the_forge_s_workflow_calls_the_project_s_own_scripts():
    workflow = yaml.safe_load((ROOT / ".github/workflows/ci.yml").read_text(encoding="utf-8"))
    calls = {step["run"] for job in workflow["jobs"].values() for step in job["steps"] if "run" in step}
    assert calls == {"bash .ci/run", "make test-oldest", "make test-floors", "make docs"}


def test_the_reference_has_every_public_name():
    pages = "\n".join(page.read_text(encoding="utf-8") for page in (ROOT / "docs" / "reference").glob("*.md"))
    named = set(re.findall(r"\w+", pages))
    packages = [file for package in OUR_PACKAGES for file in (ROOT / package).rglob("__init__.py")]
    public = {name for file in packages for name in exported(file)}
    assert len(public) > 50
    assert sorted(public - named) == []


@pytest.mark.parametrize("page", PAGES[-6:], ids=lambda page: page.name)
def test_every_name_of_the_reference_is_defined_in_its_module(page):
    for module, members in re.findall(r"::: (\S+)\s+options:\s+\{? ?members: \[([^]]+)\]", page.read_text("utf-8")):
        path = ROOT.joinpath(*module.split("."))
        files = [*path.glob("*.py"), path.with_suffix(".py")]
        source = "".join(file.read_text("utf-8") for file in files if file.exists())
        for name in re.findall(r"\w+", members):
            assert re.search(rf"^(?:class |def )?{name}\b", source, re.MULTILINE), f"{module}.{name}"


def exported(file: Path) -> list[str]:
    """The names in a package's `__all__`."""
    for node in ast.parse(file.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            return list(ast.literal_eval(node.value))
    return []


ELSEWHERE = {
    "results.json",
    "long",
    "slow",
    "set",
    "msgspec.Struct",
    "rouge_score",
    "SHOP_R1_TEST_DATA",
    "utils.py",
    "assert_never",
}


@pytest.mark.parametrize("page", ["docs/architecture.md", "CONTRIBUTING.md"])
def test_files_and_names_cited_on_a_page_exist(page):
    """Paths and names between backticks, and dotted names in blocks of code."""
    fenced = r"^```\n(.*?)^```"
    text = (ROOT / page).read_text(encoding="utf-8")
    cited = set(re.findall(r"`(\w[\w./]*[A-Za-z/])`", re.sub(fenced, "", text, flags=re.MULTILINE | re.DOTALL)))
    for block in re.findall(fenced, text, re.MULTILINE | re.DOTALL):
        cited |= set(re.findall(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+", block))
    assert len(cited) > 20
    files = [path for package in (*OUR_PACKAGES, "tests") for path in [ROOT / package, *(ROOT / package).rglob("*")]]
    paths = [f"/{path.relative_to(ROOT).as_posix()}" for path in [*files, *ROOT.iterdir()]]
    source = "\n".join(path.read_text(encoding="utf-8") for path in files if path.suffix == ".py")
    names = {path.stem for path in files} | set(re.findall(r"(?:class|def) (\w+)", source))
    names |= set(re.findall(r"^ *(\w+)(?:: | = )", source, re.MULTILINE))

    def exists(name: str) -> bool:
        ends = (f"/{name.rstrip('/')}", f"/{name}.py")
        return any(path.endswith(ends) for path in paths) or ("/" not in name and name.rsplit(".")[-1] in names)

    assert [name for name in sorted(cited - ELSEWHERE - PROGRAMS.keys()) if not exists(name)] == []
