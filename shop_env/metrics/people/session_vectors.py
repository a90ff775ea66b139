"""Sessions as counts: how often each kind of action was done, and how often each after each.

Two sessions are as far apart as these counts differ in all (L1): 1 for another kind at the end of a session, and 1 for
the pair that it makes.

    coverage = share of human sessions whose ball, out to the k-th nearest other human session, holds a simulated one

(Naeem et al. 2020, k = 5; range 0–1). As many sessions of the same people drawn anew reach about 1 - 2^-k = 0.97. Ways
that are never simulated pull it down, however well the others are met; a copy of any people's sessions does not.
"""

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

Codes = NDArray[np.int64]

NEIGHBOURS = 5


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


def coverage(human: NDArray[np.float64], simulated: NDArray[np.float64], neighbours: int = NEIGHBOURS) -> float:
    """The share of human sessions that are covered, from session_vectors; NaN with no more than k of them.

    >>> human = np.array([[0.0], [1.0], [2.0], [9.0]])
    >>> coverage(human, np.array([[0.5]]), neighbours=1)  # 0, 1 and 2 have a neighbour 1 away, 9 one 7 away
    0.5
    """
    if len(human) <= neighbours or not len(simulated):
        return float("nan")
    among = np.sort(cdist(human, human, "cityblock"), axis=1)
    nearest = cdist(human, simulated, "cityblock").min(axis=1)
    return float(np.mean(nearest <= among[:, neighbours]))  # the first of each row is the session itself
