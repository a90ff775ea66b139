"""A hook of mkdocs (`hooks` in mkdocs.yml) that fills the tables of a page from the current code."""

from typing import Any

from benchmarks.docs_site.blocks import fill_tables
from benchmarks.docs_site.commands import commands
from benchmarks.docs_site.keys import step_metrics, training_keys

TABLES = {part.__name__: part for part in (commands, training_keys, step_metrics)}


def on_page_markdown(markdown: str, **_page: Any) -> str:
    """Returns the page with its TABLES filled, for mkdocs to render; tables of recorded results are unchanged."""
    return fill_tables(markdown, lambda name, *_: TABLES[name]() if name in TABLES else None)
