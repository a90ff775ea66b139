"""Smoothed counts of outcomes by context (Witten and Bell 1991).

    p(o | c) = (count(c, o) + λ · kinds(c) · p(o | c without its first part)) / (count(c) + λ · kinds(c))

kinds(c) is the number of different outcomes after c. The empty context backs off to a uniform distribution.
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
        """Counts an outcome after a context and after each of its shortenings."""
        for start in range(len(context) + 1):
            self._counts[context[start:]][outcome] += 1

    def among(self, context: Context, offered: Sequence[str], weight: float = 1.0) -> Floats:
        """Computes the probabilities of the outcomes in `offered`, (offered,), normalized to sum to 1.

        Args:
            weight: λ, the weight of the shorter context.

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
        """Returns at most `most` outcomes counted after a context and its shortenings, the longest context first.

        Within a context outcomes are sorted by their counts; of equal counts, the outcome counted first comes first.
        """
        ordered: dict[str, None] = {}
        for start in range(len(context) + 1):
            counts = self._counts.get(context[start:], Counter())
            ordered |= dict.fromkeys(outcome for outcome, _ in counts.most_common(most) if outcome not in ordered)
        return list(ordered)[:most]

    def share(self, context: Context, outcome: str, weight: float = 1.0) -> float:
        """Computes the probability of an outcome among all counted outcomes and one more for all others."""
        uniform = np.array([1 / (1 + len(self._counts.get((), ())))])
        return float(self._smoothed(context, uniform, [outcome], weight)[0])

    def _smoothed(self, context: Context, shares: Floats, outcomes: Sequence[str], weight: float) -> Floats:
        for start in range(len(context), -1, -1):
            if counts := self._counts.get(context[start:]):
                outcome_counts = np.array([counts[outcome] for outcome in outcomes])
                kinds = weight * len(counts)
                shares = (outcome_counts + kinds * shares) / (counts.total() + kinds)
        return shares
