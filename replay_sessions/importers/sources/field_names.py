"""Names of fields and columns as a message tells them: a log may call them anything, line breaks included."""

from collections.abc import Iterable

__all__ = ["listed", "shown"]

_MOST = 12
_LONGEST = 60  # characters


def shown(name: str) -> str:
    r"""
    >>> shown("two\nlines"), shown("")
    ("'two\\nlines'", "''")
    """
    return repr(name if len(name) <= _LONGEST else name[: _LONGEST - 3] + "...")


def listed(names: Iterable[str]) -> str:
    r"""The first names, bare where they are nothing but printable text.

    >>> listed(["id", "two\nlines", "visit number"])
    "id, 'two\\nlines', visit number"
    """
    first = list(names)[: _MOST + 1]
    told = [name if name.strip() and name.isprintable() and len(name) <= _LONGEST else shown(name) for name in first]
    return ", ".join(told[:_MOST]) + (" ..." if len(told) > _MOST else "")
