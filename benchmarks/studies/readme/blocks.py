"""Tables within a page of Markdown: each stands between two comments that name it, and is rewritten as a whole.

<!-- table: baselines -->
…
<!-- end of table -->
"""

import re
from collections.abc import Callable, Mapping

from replay_sessions.foundation.errors import BadConfig, did_you_mean

END = "<!-- end of table -->"
_START = re.compile(r"<!-- table: (?P<name>\w+) -->\n")


def with_tables(page: str, tables: Mapping[str, Callable[[], str]]) -> str:
    """The page with every table that it names rewritten; the text around them is unchanged.

    Raises:
        BadConfig: A name that no table has, or a table that does not end.

    >>> page = "Before.\\n<!-- table: sizes -->\\nold\\n<!-- end of table -->\\nAfter.\\n"
    >>> print(with_tables(page, {"sizes": lambda: "| new |\\n"}), end="")
    Before.
    <!-- table: sizes -->
    | new |
    <!-- end of table -->
    After.
    """
    result, position = "", 0
    for start in _START.finditer(page):
        name = start["name"]
        if name not in tables:
            raise BadConfig(f"the page asks for a table '{name}'. {did_you_mean(name, tables)}")
        end = page.find(END, start.end())
        following = _START.search(page, start.end())
        if end < 0 or (following is not None and following.start() < end):
            raise BadConfig(f"the table '{name}' of the page does not end: '{END}' is missing after it")
        result += page[position : start.end()] + tables[name]()
        position = end
    return result + page[position:]


def names_of_tables(page: str) -> set[str]:
    """The tables that a page asks for."""
    return {start["name"] for start in _START.finditer(page)}
