"""Predicts where shoppers leave from the number of a step alone: a sign of visits that were picked by length.

The steps are those of each session after the first, without the inferred ones. What a step's number tells of actions,
the agent `step_number` shows.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

from replay_sessions.store.audit.scan import SessionFacts


def compute_stop_auc(facts: Sequence[SessionFacts]) -> float | None:
    """Computes how well the share of stops among the train steps of the same number ranks held-out stops.

    Returns:
        The AUC: over pairs of a held-out step where the shopper leaves and one where not, the probability that more
        shoppers of train leave at the first step's number; 0.5 is chance. None if no such pair exists.
    """
    stops, reached = _counts(fact for fact in facts if fact.split == "train")
    share = stops.total() / max(1, reached.total())
    # The share is smoothed, so that a number that train hardly reaches has the share of all steps.
    hazards: defaultdict[float, list[int]] = defaultdict(lambda: [0, 0])
    held_out_stops, held_out_reached = _counts(fact for fact in facts if fact.split != "train")
    for number, count in held_out_reached.items():
        at = hazards[(stops[number] + share) / (reached[number] + 1)]
        at[0] += held_out_stops[number]
        at[1] += count - held_out_stops[number]
    below, won = 0, 0.0
    for _, (ended, went_on) in sorted(hazards.items()):
        won += ended * (below + went_on / 2)
        below += went_on
    pairs = held_out_stops.total() * below
    return won / pairs if pairs else None


def _counts(facts: Iterable[SessionFacts]) -> tuple[Counter[int], Counter[int]]:
    """Returns, by step number, the count of steps at which shoppers leave, and of all steps."""
    stops: Counter[int] = Counter()
    reached: Counter[int] = Counter()
    for fact in facts:
        stops.update(fact.stops)
        reached.update(fact.logged)
    return stops, reached
