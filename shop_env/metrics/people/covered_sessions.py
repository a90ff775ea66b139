"""How many of the ways in which people shop the simulated sessions come near to.

    coverage = share of human sessions whose ball, out to the k-th nearest other human session, holds a simulated one

(Naeem et al. 2020, k = 5; range 0–1). As many sessions of the same people drawn anew reach about 1 - 2^-k = 0.97. Ways
that are never simulated pull it down, however well the others are met; a copy of any people's sessions does not.
"""

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

__all__ = ["coverage"]

NEIGHBOURS = 5


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
