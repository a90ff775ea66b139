"""Finds names and addresses in texts by a function of the user's: `shop-r1 import … --ner my_ner.py:find`.

The function takes a line of a page and returns the spans of private values in it. Spans are triples
`(start, end, kind)`, with the kinds `name`, `address`, `email`, `phone`.
"""

import functools
from collections.abc import Callable, Iterable

from replay_sessions.foundation.errors import BadConfig
from replay_sessions.foundation.plugins import error_with_line, load_own

Entity = tuple[int, int, str]
FindEntities = Callable[[str], Iterable[Entity]]
_CACHED_LINES = 50_000


def load_ner(target: str) -> FindEntities:
    """Loads the function of the name "module:function" and caches its results by line.

    Raises:
        BadConfig: The function cannot be loaded.
    """
    try:
        function: FindEntities = load_own(target)
    except Exception as error:
        raise BadConfig(f"--ner {target!r} cannot be loaded: {error_with_line(error)}") from error
    return functools.lru_cache(_CACHED_LINES)(lambda line: list(function(line)))
