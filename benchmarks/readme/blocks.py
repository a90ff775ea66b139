"""Tables within a page of Markdown: each stands between two comments that name it, and is written anew as a whole.

<!-- table: floors -->
…
<!-- end of table -->
"""

import re
from collections.abc import Callable, Mapping

from replay_sessions.errors import BadConfig, did_you_mean

__all__ = ["END", "START", "with_tables"]

START, END = "<!-- table: {name} -->", "<!-- end of table -->"
_START = re.compile(r"<!-- table: (?P<name>\w+) -->\n")


def with_tables(page: str, tables: Mapping[str, Callable[[], str]]) -> str:
    """The page with every named table made anew; what stands around them stays as it is.

    Raises:
        BadConfig: A name that no table has, a table that does not end, or one of `tables` that stands nowhere.

    >>> page = "Before.\\n<!-- table: sizes -->\\nold\\n<!-- end of table -->\\nAfter.\\n"
    >>> print(with_tables(page, {"sizes": lambda: "| new |\\n"}), end="")
    Before.
    <!-- table: sizes -->
    | new |
    <!-- end of table -->
    After.
    """
    written, place, names = "", 0, set()
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
        names.add(name)
    if missing := tables.keys() - names:
        raise BadConfig(f"the page lacks the tables {', '.join(sorted(missing))}: say where by {START}, {END}")
    return written + page[place:]
