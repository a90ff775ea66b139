"""The site's generated pages: complete, and what the code says."""

from pathlib import Path

import pytest

from benchmarks.studies.docs_site.commands import command_names, help_text
from benchmarks.studies.docs_site.hook import on_page_markdown
from replay_sessions.console import PROGRAMS
from replay_sessions.exporters import EXPORTERS
from replay_sessions.importers import IMPORTERS

DOCS = Path(__file__).parents[3] / "docs"


def built(page: str) -> str:
    """A page as the site has it."""
    return on_page_markdown((DOCS / page).read_text(encoding="utf-8"))


@pytest.mark.long
def test_the_page_has_the_help_of_every_command() -> None:
    page, names = built("command_line.md"), list(command_names())
    lists = {"import": IMPORTERS, "export": EXPORTERS, "agents": ("list", "check"), "serve": ("openenv", "tasks")}
    assert names.count("") == 1
    assert set(names) >= {*PROGRAMS, *(f"{name} {further}" for name, all_ in lists.items() for further in all_)}
    for name in names:
        help_ = help_text(name)
        assert f"{f'shop-r1 {name}'.strip()}\n\n```text\n{help_}```\n" in page
        assert f"usage: {f'shop-r1 {name}'.strip()} " in help_
        assert len(help_.splitlines()) <= 40
