"""How much users differ in what they do, and whether a simulated user differs in the way of the one it stands for.

Rows are steps (or sessions), columns what they are described by (1 for the kind of action, 0 for all others). A one-way
analysis of variance by user, summed over the columns:

    between = (MSB - MSW) / n₀        within = MSW        ICC = between / (between + within)

(Donner 1986; n₀ as in shop_env/metrics/statistics/effective_size.py). With products of two sides' deviations in place
of squares, `between` is the covariance of simulated and human users, free of what the steps of one user have in common
otherwise, and

    user_agreement = between(simulated, human) / √(between(simulated) · between(human))

is the correlation of the two over users. An agent that is one average shopper for all has an ICC of 0. One that plays
each user as another has the ICC of people and an agreement of 0. Where an agent hardly tells users apart (its between
is less than a tenth of people's) nothing could agree, and where people hardly differ (an ICC below 0.02) there is
nothing to compare with: no figure.

How varied what one person does is: the entropy of kinds of action within a user, in bits,

    H(kind | user) = Σ_u (n_u / N) · (Σ_k -p_uk log2 p_uk + (K_u - 1) / (2 n_u ln 2))

p_uk user u's shares of the K_u kinds that it shows; the last term makes up for most of what few steps hide (Miller
1955). Range 0 to log2 of the number of kinds, a little more where the correction overshoots. An over-sharp agent, which
always does what its person does most often, has less than people; one average shopper for all has more.
"""

import numpy as np
from numpy.typing import NDArray

from shop_env.metrics.statistics.effective_size import variance_components

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]

TELLS_USERS_APART = 0.1
PEOPLE_DIFFER = 0.02


def user_agreement(simulated: Floats, human: Floats, users: Codes) -> float | None:
    """The correlation over users of what they do, simulated and human, on the same rows.

    None where the agent hardly tells users apart, people do not, or it cannot be told.
    """
    together, agent, people = (
        variance_components(left, right, users)
        for left, right in ((simulated, human), (simulated, simulated), (human, human))
    )
    if together is None or agent is None or people is None:
        return None
    if not people.correlation >= PEOPLE_DIFFER or agent.between < TELLS_USERS_APART * people.between:
        return None
    return together.between / float(np.sqrt(agent.between * people.between))


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
