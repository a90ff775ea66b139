"""Tables within a page of Markdown: each stands between two comments that name it, and is written anew as a whole.

<!-- table: floors -->
…
<!-- end of table -->
"""

import re
from collections.abc import Callable, Mapping

from replay_sessions.errors import BadConfig, did_you_mean

__all__ = ["names_of_tables", "with_tables"]

END = "<!-- end of table -->"
_START = re.compile(r"<!-- table: (?P<name>\w+) -->\n")


def with_tables(page: str, tables: Mapping[str, Callable[[], str]]) -> str:
    """The page with every table that it names made anew; what stands around them stays as it is.

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
    written, place = "", 0
    for start in _START.finditer(page):
        name = start["name"]
        if name not in tables:
            raise BadConfig(f"the page asks for a table '{name}'. {did_you_mean(name, tables)}")
        end = page.find(END, start.end())
        following = _START.search(page, start.end())
        if end < 0 or (following is not None and following.start() < end):
            raise BadConfig(f"the table '{name}' of the page does not end: '{END}' is missing after it")
        written += page[place : start.end()] + tables[name]()
        place = end
    return written + page[place:]


def names_of_tables(page: str) -> set[str]:
    """The tables that a page asks for."""
    return {start["name"] for start in _START.finditer(page)}
