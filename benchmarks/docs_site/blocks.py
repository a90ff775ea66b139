"""Fills the tables of a page of Markdown. Each table stands between two comments; the first names its content.

<!-- table: baselines/demo | agent, exact, NLL | boosting; ngram -->       columns, then rows by their first cells
…
<!-- end of table -->
"""

import re
from collections.abc import Callable

from replay_sessions.foundation.errors import BadConfig

END = "<!-- end of table -->"
_START = re.compile(r"<!-- table: (?P<name>[\w/]+)(?: \| (?P<columns>[^|>]+?))?(?: \| (?P<rows>[^|>]+?))? -->\n")


def fill_tables(page: str, fill: Callable[[str, list[str], list[str]], str | None]) -> str:
    """Returns the page with its tables rewritten; the text around them is unchanged.

    Args:
        page: The text of the page.
        fill: Returns the table's lines for the name, columns and rows in a comment, or None to leave the table as it
            is.

    Raises:
        BadConfig: A table has no end comment.

    >>> page = "Before.\\n<!-- table: sizes -->\\nold\\n<!-- end of table -->\\nAfter.\\n"
    >>> print(fill_tables(page, lambda name, columns, rows: "| new |\\n"), end="")
    Before.
    <!-- table: sizes -->
    | new |
    <!-- end of table -->
    After.
    """
    result, position = "", 0
    for start in _START.finditer(page):
        end, following = page.find(END, start.end()), _START.search(page, start.end())
        if end < 0 or (following is not None and following.start() < end):
            raise BadConfig(f"the table '{start['name']}' of the page does not end: '{END}' is missing after it")
        columns = start["columns"].split(", ") if start["columns"] else []
        table = fill(start["name"], columns, start["rows"].split("; ") if start["rows"] else [])
        result += page[position : start.end()] + (page[start.end() : end] if table is None else table)
        position = end
    return result + page[position:]
