"""How varied what one person does is: the entropy of kinds of action within a user, in bits.

    H(kind | user) = Σ_u (n_u / N) · (Σ_k -p_uk log2 p_uk + (K_u - 1) / (2 n_u ln 2))

p_uk user u's shares of the K_u kinds that it shows; the last term makes up for most of what few steps hide (Miller
1955). Range 0 to log2 of the number of kinds, a little more where the correction overshoots. An over-sharp agent, which
always does what its person does most often, has less than people; one average shopper for all has more.
"""

import numpy as np
from numpy.typing import NDArray

__all__ = ["entropy_within"]

Codes = NDArray[np.int64]


def entropy_within(kinds: Codes, users: Codes) -> float:
    """The entropy of kinds within a user, in bits; NaN without a step.

    >>> round(entropy_within(np.array([0, 1, 0, 1]), np.array([0, 0, 1, 1])), 3)  # 1 bit, and 1 / (4 ln 2)
    1.361
    """
    if not len(kinds):
        return float("nan")
    bits = 0.0
    for user in np.unique(users):
        counts = np.unique(kinds[users == user], return_counts=True)[1]
        shares = counts / counts.sum()
        bits += counts.sum() * float(-np.sum(shares * np.log2(shares))) + (len(counts) - 1) / (2 * np.log(2))
    return float(bits / len(kinds))
