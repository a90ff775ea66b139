"""The rows of one session, gathered until it is whole; of one that grows too long nothing but its length is kept."""

from typing import Generic, TypeVar

__all__ = ["SessionRows", "too_long"]

Row = TypeVar("Row")


class SessionRows(Generic[Row]):
    """Rows of a session, in the order in which they came.

    Args:
        longest_bytes: A session of more is not held in memory.
    """

    def __init__(self, longest_bytes: int) -> None:
        self.rows: list[Row] = []
        self.size_bytes = 0
        self._longest_bytes = longest_bytes

    @property
    def is_too_long(self) -> bool:
        return self.size_bytes > self._longest_bytes

    def add(self, row: Row, size_bytes: int) -> None:
        self.size_bytes += size_bytes
        if self.is_too_long:
            self.rows.clear()
        else:
            self.rows.append(row)


def too_long(longest_bytes: int) -> str:
    """Why a session was set aside.

    >>> too_long(256 << 20)
    'the session is longer than 256 MiB (--max-session-mib)'
    """
    return f"the session is longer than {longest_bytes / (1 << 20):g} MiB (--max-session-mib)"
