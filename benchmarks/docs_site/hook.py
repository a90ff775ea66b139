"""For mkdocs (`hooks` in mkdocs.yml): fills the tables that a page names with what the code says today."""

from typing import Any

from benchmarks.docs_site.blocks import fill_tables
from benchmarks.docs_site.commands import commands
from benchmarks.docs_site.keys import step_metrics, training_keys

TABLES = {part.__name__: part for part in (commands, training_keys, step_metrics)}


def on_page_markdown(markdown: str, **_page: Any) -> str:
    """Returns the page as mkdocs is to read it; the tables of recorded results, which are none of these, stay."""
    return fill_tables(markdown, lambda name, *_: TABLES[name]() if name in TABLES else None)
