"""Sessions as counts: how often each kind of action was done, and how often each after each.

Two sessions are as far apart as these counts differ in all (L1): 1 for another kind at the end of a session, and 1 for
the pair that it makes.
"""

import numpy as np
from numpy.typing import NDArray

__all__ = ["session_vectors"]

Codes = NDArray[np.int64]


def session_vectors(kinds: Codes, sessions: Codes, count: int) -> NDArray[np.float64]:
    """One row of counts for each session, in the order of first appearance; columns are kinds, then pairs.

    Args:
        kinds: Of each step, from 0 to `count` - 1.
        sessions: Whose each step is; its steps in their order.

    >>> session_vectors(np.array([0, 1, 1]), np.array([7, 7, 7]), 2).tolist()
    [[1.0, 2.0, 0.0, 1.0, 0.0, 1.0]]
    """
    numbers = {session: number for number, session in enumerate(dict.fromkeys(sessions.tolist()))}
    rows = np.zeros((len(numbers), count + count**2))
    last: dict[int, int] = {}
    for kind, session in zip(kinds.tolist(), sessions.tolist(), strict=True):
        own = rows[numbers[session]]
        own[kind] += 1
        if session in last:
            own[count + last[session] * count + kind] += 1
        last[session] = kind
    return rows
