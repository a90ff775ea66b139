"""Splits a visit where the shopper pauses; `idle_minutes` of a mapping, a recipe or an option is the longest pause."""

from collections.abc import Iterator
from itertools import pairwise

from replay_sessions.foundation.times import seconds
from replay_sessions.importers.sources.row_tables import Row


def split_at_pauses(rows: list[Row], minutes: float | None) -> Iterator[list[Row]]:
    """Splits rows in time order at pauses of more than `minutes`; None means no splits."""
    start = 0
    times = [seconds(row.get("timestamp")) for row in rows]
    for index, (before, after) in enumerate(pairwise(times), start=1):
        is_pause = minutes is not None and before is not None and after is not None and after - before > 60 * minutes
        if is_pause and rows[index - 1].get("type") != "terminate":
            yield rows[start:index]
            start = index
    yield rows[start:]
