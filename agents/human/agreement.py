"""How far several people agree on the same questions: what people can predict, and what nobody can.

    Recording ─► each person's actions ─► pairs: share of equal actions, of equal types, Cohen's kappa over types
                                        └► all:  Fleiss' kappa over types, at the steps that everybody answered

Both kappas relate the observed agreement to that of chance (Cohen 1960: from each person's own shares of types; Fleiss
1971: from the shares of all together): (observed - chance) / (1 - chance). Where all answers are of one type, chance
agreement is 1 and kappa is undefined.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import combinations

from agents.human.recording import Recording
from replay_sessions.foundation.errors import BadConfig
from replay_sessions.foundation.table import Cell, Column, Table
from replay_sessions.schema import reply_action
from shop_env.evaluation.scored_steps import StepKey
from shop_env.replies import Reply, parse_reply

Answers = Mapping[StepKey, dict[str, str]]


def people_agreement(recording: Recording) -> Table:
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
    table = agreement_table(answers, f"{recording.folder}: how far people agree")
    if not table.rows:
        raise BadConfig(f"No two people of '{recording.folder}' have answered the same step yet")
    return table


def agreement_table(answers: Mapping[str, Answers], title: str) -> Table:
    """The same from each person's actions by step: a row for each pair with a step in common, a note on all people."""
    rows: list[list[Cell]] = []
    for people in combinations(answers, 2):
        first, second = (answers[person] for person in people)
        if common := [(first[key], second[key]) for key in first if key in second]:
            types = [(mine["type"], theirs["type"]) for mine, theirs in common]
            shares = _share_equal(common), _share_equal(types)
            rows.append([", ".join(people), len(common), *shares, _format(cohens_kappa(types))])
    by_all = set.intersection(*map(set, answers.values()))
    kappa = fleiss_kappa([Counter(own[key]["type"] for own in answers.values()) for key in by_all])
    return Table(
        title=title,
        columns=[
            Column("pair"),
            Column("steps", "count"),
            Column("same action, %", "percent"),
            Column("same type, %", "percent"),
            Column("Cohen's kappa of types", "ratio"),
        ],
        rows=rows,
        notes=[
            f"Fleiss' kappa of types over all {len(answers)} people, at the {len(by_all)} steps that all "
            f"answered: {_format(kappa)}"
        ],
    )


def _format(kappa: float | None) -> str:
    return "–" if kappa is None else f"{kappa:.3f}"


def cohens_kappa(pairs: Sequence[tuple[str, str]]) -> float | None:
    """Cohen's kappa of two people's answers to the same questions.

    >>> cohens_kappa([("a", "a"), ("a", "a"), ("a", "b"), ("b", "b")])  # observed 3/4, chance (3*2 + 1*2)/16
    0.5
    """
    if not pairs:
        return None
    firsts, seconds = (Counter(answers) for answers in zip(*pairs, strict=True))
    chance = sum(count * seconds[kind] for kind, count in firsts.items()) / len(pairs) ** 2
    return _beyond_chance(_share_equal(pairs), chance)


def fleiss_kappa(ratings: Sequence[Mapping[str, int]]) -> float | None:
    """Fleiss' kappa.

    Args:
        ratings: For each question how many people gave each answer; the same number of people, two at least.
    """
    if not ratings:
        return None
    people = sum(ratings[0].values())
    agreeing = sum(count * (count - 1) for question in ratings for count in question.values())
    observed = agreeing / (people * (people - 1)) / len(ratings)
    totals = sum(map(Counter, ratings), Counter[str]())
    return _beyond_chance(observed, sum((count / totals.total()) ** 2 for count in totals.values()))


def _beyond_chance(observed: float, chance: float) -> float | None:
    return None if chance >= 1 else (observed - chance) / (1 - chance)


def _share_equal(pairs: Sequence[tuple[object, object]]) -> float:
    return sum(first == second for first, second in pairs) / len(pairs)


def _answers(recording: Recording, person: str) -> dict[StepKey, dict[str, str]]:
    cache = recording.replies_of(person)
    parsed = {step.key: parse_reply(cache.reply(step.key) or "") for step in recording.steps}
    return {key: reply_action(reply.action) for key, reply in parsed.items() if isinstance(reply, Reply)}
