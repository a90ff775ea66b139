"""Smoothed counts of which outcome follows which context (Witten and Bell 1991).

    p(o | c) = (count(c, o) + λ · kinds(c) · p(o | c without its first part)) / (count(c) + λ · kinds(c))

kinds(c) is how many different outcomes followed c. Behind the shortest context stands a uniform distribution.
"""

from collections import Counter, defaultdict
from collections.abc import Sequence

import numpy as np

from agents.adapted import Floats

Context = tuple[str, ...]


class WittenBell:
    """Counts of outcomes by context, shortened from the left."""

    def __init__(self) -> None:
        self._counts: defaultdict[Context, Counter[str]] = defaultdict(Counter)

    def add(self, context: Context, outcome: str) -> None:
        """Counts an outcome."""
        for start in range(len(context) + 1):
            self._counts[context[start:]][outcome] += 1

    def among(self, context: Context, offered: Sequence[str], weight: float = 1.0) -> Floats:
        """Returns the probability of each of the outcomes that are offered, (offered,), summing to 1.

        Args:
            weight: λ, of the shorter context.

        >>> model = WittenBell()
        >>> for outcome in "aab":
        ...     model.add((), outcome)
        >>> model.among((), ["a", "c"]).round(2).tolist()  # (2 + 2/2) and (0 + 2/2), each of 5
        [0.75, 0.25]
        """
        shares = self._smoothed(context, np.full(len(offered), 1 / len(offered)), offered, weight)
        total: float = shares.sum()
        return shares / total

    def outcomes(self, context: Context, most: int) -> list[str]:
        """Returns the outcomes counted after a context and its shortenings, at most so many; the longest context first.

        Of equally many counts the one that was counted first stands first.
        """
        found: dict[str, None] = {}
        for start in range(len(context) + 1):
            counts = self._counts.get(context[start:], Counter())
            found |= dict.fromkeys(outcome for outcome, _ in counts.most_common(most) if outcome not in found)
        return list(found)[:most]

    def share(self, context: Context, outcome: str, weight: float = 1.0) -> float:
        """Returns the probability of an outcome among all that were ever counted, and one that was not."""
        uniform = np.array([1 / (1 + len(self._counts.get((), ())))])
        return float(self._smoothed(context, uniform, [outcome], weight)[0])

    def _smoothed(self, context: Context, shares: Floats, outcomes: Sequence[str], weight: float) -> Floats:
        for start in range(len(context), -1, -1):
            if counts := self._counts.get(context[start:]):
                outcome_counts = np.array([counts[outcome] for outcome in outcomes])
                kinds = weight * len(counts)
                shares = (outcome_counts + kinds * shares) / (counts.total() + kinds)
        return shares
