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
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["PEOPLE_DIFFER", "UserVariance", "user_agreement", "user_variance"]

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]

TELLS_USERS_APART = 0.1
PEOPLE_DIFFER = 0.02


class UserVariance(NamedTuple):
    """Variance between users and within a user, summed over columns; estimates, so `between` may lie below 0."""

    between: float
    within: float

    @property
    def correlation(self) -> float:
        """The intra-class correlation: the share of the variance that lies between users."""
        total = self.between + self.within
        return self.between / total if total > 0 else float("nan")


def user_variance(values: Floats, users: Codes) -> UserVariance | None:
    """The parts of the variance of rows, (rows, columns), by user; None with one user, or one row for each.

    >>> user_variance(np.array([[0.0], [2.0], [3.0], [5.0]]), np.array([0, 0, 1, 1]))  # MSB 9, MSW 2
    UserVariance(between=3.5, within=2.0)
    """
    return _parts(values, values, users)


def user_agreement(simulated: Floats, human: Floats, users: Codes) -> float | None:
    """The correlation over users of what they do, simulated and human, on the same rows.

    None where the agent hardly tells users apart, people do not, or it cannot be told.
    """
    together, agent, people = (
        _parts(one, other, users) for one, other in ((simulated, human), (simulated, simulated), (human, human))
    )
    if together is None or agent is None or people is None:
        return None
    if not people.correlation >= PEOPLE_DIFFER or agent.between < TELLS_USERS_APART * people.between:
        return None
    return together.between / float(np.sqrt(agent.between * people.between))


def _parts(one: Floats, other: Floats, users: Codes) -> UserVariance | None:
    _, numbers, sizes = np.unique(users, return_inverse=True, return_counts=True)
    total, groups = len(users), len(sizes)
    if groups < 2 or total == groups:
        return None
    means = [_sums(side, numbers) / sizes[:, None] for side in (one, other)]
    off = [side.mean(axis=0) for side in (one, other)]
    between = float(np.sum(sizes[:, None] * (means[0] - off[0]) * (means[1] - off[1]))) / (groups - 1)
    within = float(np.sum((one - means[0][numbers]) * (other - means[1][numbers]))) / (total - groups)
    size = float(total - np.sum(sizes**2) / total) / (groups - 1)
    return UserVariance((between - within) / size, within)


def _sums(values: Floats, numbers: Codes) -> Floats:
    return np.stack([np.bincount(numbers, weights=column) for column in values.T], axis=1)
