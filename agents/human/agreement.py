"""How far several people agree who were asked the same: what people can tell, and what nobody can.

    Recording ─► each person's actions ─► pairs: share of equal actions, of equal types, Cohen's kappa over types
                                        └► all:  Fleiss' kappa over types, at the steps that everybody answered

Both kappas set the agreement that is seen against what chance would give (Cohen 1960: from each person's own shares of
types; Fleiss 1971: from the shares of all together): (seen - chance) / (1 - chance). Where all answers are of one type
there is nothing to tell from chance, and no kappa.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import combinations

import msgspec

from agents.human.recording import Recording
from agents.scored_steps import StepKey
from replay_sessions.errors import BadConfig
from replay_sessions.schema import reply_action
from shop_env.replies import Reply, parse_reply

__all__ = ["Agreement", "PairAgreement", "agreement_of", "cohens_kappa", "fleiss_kappa", "people_agreement"]

Answers = Mapping[StepKey, dict[str, str]]


class PairAgreement(msgspec.Struct, frozen=True, kw_only=True):
    """Two people.

    Attributes:
        steps: How many both answered.
        exact: The share at which both predicted the same action, every field of it.
        types: The share at which both predicted the same type.
        kappa: Cohen's, over types; None where there is none.
    """

    first: str
    second: str
    steps: int
    exact: float
    types: float
    kappa: float | None


class Agreement(msgspec.Struct, frozen=True, kw_only=True):
    """Everyone in a recording.

    Attributes:
        pairs: All pairs with a step in common.
        people: How many people there are.
        steps: How many steps everybody answered.
        kappa: Fleiss', over types at those steps; None where there is none.
    """

    pairs: list[PairAgreement]
    people: int
    steps: int
    kappa: float | None


def people_agreement(recording: Recording) -> Agreement:
    """How far the people of a recording agree.

    Raises:
        BadConfig: Fewer than two answered, or no two of them the same step.
    """
    answers = {person: own for person in recording.people if (own := _answers(recording, person))}
    if len(answers) < 2:
        raise BadConfig(
            f"'{recording.folder}' holds the answers of {len(answers)} of at least 2 people: let others answer with "
            "`python -m agents.human --person NAME` and the same options"
        )
    found = agreement_of(answers)
    if not found.pairs:
        raise BadConfig(f"No two people of '{recording.folder}' have answered the same step yet")
    return found


def agreement_of(answers: Mapping[str, Answers]) -> Agreement:
    """The same from each person's actions by step."""
    pairs = []
    for (first, ones), (second, others) in combinations(answers.items(), 2):
        both = [(ones[key], others[key]) for key in ones if key in others]
        if both:
            types = [(one["type"], other["type"]) for one, other in both]
            pairs.append(
                PairAgreement(
                    first=first,
                    second=second,
                    steps=len(both),
                    exact=sum(one == other for one, other in both) / len(both),
                    types=sum(one == other for one, other in types) / len(both),
                    kappa=cohens_kappa(types),
                )
            )
    by_all = [key for key in next(iter(answers.values()), {}) if all(key in own for own in answers.values())]
    rated = [Counter(own[key]["type"] for own in answers.values()) for key in by_all]
    return Agreement(pairs=pairs, people=len(answers), steps=len(by_all), kappa=fleiss_kappa(rated))


def cohens_kappa(pairs: Sequence[tuple[str, str]]) -> float | None:
    """Cohen's kappa of two people's answers to the same questions.

    >>> cohens_kappa([("a", "a"), ("a", "a"), ("a", "b"), ("b", "b")])  # seen 3/4, chance (3*2 + 1*2)/16
    0.5
    """
    if not pairs:
        return None
    firsts, seconds = (Counter(answers) for answers in zip(*pairs, strict=True))
    seen = sum(one == other for one, other in pairs) / len(pairs)
    chance = sum(count * seconds[kind] for kind, count in firsts.items()) / len(pairs) ** 2
    return _beyond_chance(seen, chance)


def fleiss_kappa(rated: Sequence[Mapping[str, int]]) -> float | None:
    """Fleiss' kappa.

    Args:
        rated: For each question how many people gave each answer; the same number of people, two at least.
    """
    if not rated:
        return None
    people = sum(rated[0].values())
    agreeing = people * (people - 1)
    seen = sum(count * (count - 1) for question in rated for count in question.values()) / agreeing / len(rated)
    totals: Counter[str] = Counter()
    for question in rated:
        totals.update(question)
    chance = sum((count / (people * len(rated))) ** 2 for count in totals.values())
    return _beyond_chance(seen, chance)


def _beyond_chance(seen: float, chance: float) -> float | None:
    return None if chance >= 1 else (seen - chance) / (1 - chance)


def _answers(recording: Recording, person: str) -> dict[StepKey, dict[str, str]]:
    kept = recording.replies_of(person)
    found = {}
    for step in recording.steps:
        reply = kept.reply(step.key)
        parsed = None if reply is None else parse_reply(reply)
        if isinstance(parsed, Reply):
            found[step.key] = reply_action(parsed.action)
    return found
