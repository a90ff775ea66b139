"""Predicts actions from the number of a step alone: a lower bound for agents, and a sign of visits picked by length.

The steps are those of each session after the first, without the inferred ones.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

from replay_sessions.store.audit.findings import StepNumbers
from replay_sessions.store.audit.scan import SessionFacts

_LEAST = 5  # numbers with fewer train steps predict the most frequent action of all steps


def predict_by_number(facts: Sequence[SessionFacts]) -> StepNumbers:
    """Computes how well step numbers predict held-out actions."""
    train = [fact for fact in facts if fact.split == "train"]
    others = [fact for fact in facts if fact.split != "train"]
    by_number: defaultdict[int, Counter[bytes]] = defaultdict(Counter)
    for number, action in (step for fact in train for step in fact.logged):
        by_number[number][action] += 1
    overall = sum(by_number.values(), Counter[bytes]())
    held_out = [step for fact in others for step in fact.logged]
    exact = majority = None
    if held_out and overall:
        most = {number: _most_frequent(counts) for number, counts in by_number.items() if counts.total() >= _LEAST}
        fallback = _most_frequent(overall)
        exact = sum(most.get(number, fallback) == action for number, action in held_out) / len(held_out)
        majority = sum(fallback == action for _, action in held_out) / len(held_out)
    return StepNumbers(stop_auc=_stop_auc(train, others), exact_match=exact, majority=majority)


def _most_frequent(counts: Counter[bytes]) -> bytes:
    return min(counts, key=lambda action: (-counts[action], action))


def _stop_auc(train: Sequence[SessionFacts], held_out: Sequence[SessionFacts]) -> float | None:
    """Computes how well the share of stops among the train steps of the same number ranks held-out stops."""
    stops, reached = _counts(train)
    share = stops.total() / max(1, reached.total())
    # The share is smoothed, so that a number that train hardly reaches has the share of all steps.
    hazards: defaultdict[float, list[int]] = defaultdict(lambda: [0, 0])
    held_out_stops, held_out_reached = _counts(held_out)
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
        reached.update(number for number, _ in fact.logged)
    return stops, reached
