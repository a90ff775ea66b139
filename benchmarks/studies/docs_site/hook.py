"""For mkdocs (`hooks` in mkdocs.yml): fills the tables that a page names with what the code says today."""

from typing import Any

from benchmarks.studies.docs_site.commands import commands
from benchmarks.studies.docs_site.keys import result_fields, result_metrics, step_metrics, training_keys
from benchmarks.studies.readme.blocks import names_of_tables, with_tables

_PARTS = (commands, training_keys, step_metrics, result_fields, result_metrics)
TABLES = {part.__name__: part for part in _PARTS}


def on_page_markdown(markdown: str, **_page: Any) -> str:
    """The page as mkdocs is to read it; the tables of recorded results, which are none of these, stay."""
    return with_tables(markdown, TABLES) if names_of_tables(markdown) & TABLES.keys() else markdown
