"""The figures of people and agents as one table with an agent in each column: for terminals and for Markdown."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from benchmarks.people.rows import LogRow, PeopleRow, SkillFigures
from shop_env.metrics.people import ScaledDistance

__all__ = ["THE_LOG", "Line", "lines", "markdown"]

THE_LOG = "the people"
MISSING = "–"


class Line(NamedTuple):
    """A figure of the people, where they have it, and of each agent."""

    figure: str
    good: str
    people: str
    agents: list[str]


def lines(log: LogRow, rows: Sequence[PeopleRow]) -> list[Line]:
    """Every figure that an agent or the people have."""
    return [line for line in _all_lines(log, rows) if {line.people, *line.agents} != {MISSING}]


def _all_lines(log: LogRow, rows: Sequence[PeopleRow]) -> Iterable[Line]:
    people = [row.people for row in rows]
    between = people[0].logged_user_icc
    yield _line("share of variance between users (ICC)", "as people", [one.user_icc for one in people], between)
    yield _line("the same, beside people (ICC ratio)", "1", [one.user_icc_ratio for one in people])
    yield _line("users differ as their people do", "1", [one.user_agreement for one in people])
    yield _line("variety within a user, beside people", "1", [one.entropy_ratio for one in people])
    yield _line("sessions of people covered", "near 1", [one.coverage for one in people])
    yield _line("told from people by a classifier (AUC)", "0.5", [row.two_sample_auc for row in rows])
    for name, words in (("action_mix", "mix of actions"), ("transitions", "what follows what")):
        for base, said in (("uniform", "chance"), ("train", "shares of train")):
            scores = [_score(row.distances[base][name]) for row in rows]
            yield _line(f"{words}: other people 1, {said} 0", "1", scores)
    yield _line("clicked ranks: other people 1, chance 0", "1", [_score(row.clicked_rank) for row in rows])
    for name, words in FACTS.items():
        yield _line(words, "as people", [getattr(row.facts, name) for row in rows], getattr(log.facts, name))
    yield from _skill_lines([row.skill for row in rows])
    picks = [row.persona.picks if row.persona else None for row in rows]
    chances = {f"{one.chance:.2f}" for one in picks if one}
    chance = f" (chance {', '.join(sorted(chances))})" if chances else ""
    yield _line(f"own persona picked by likelihood{chance}", "1", [one.rate if one else None for one in picks])
    for metric in dict.fromkeys(metric for row in rows if row.persona for metric in row.persona.worth):
        tests = [row.persona.worth[metric] if row.persona else None for row in rows]
        told = [
            MISSING if one is None else f"{_shown(one.difference)} (p {one.sign_flip_p_value:.2g})" for one in tests
        ]
        yield Line(f"{metric}, own persona less another's", "more" if metric != "nll" else "less", MISSING, told)


def _skill_lines(skills: Sequence[SkillFigures | None]) -> Iterable[Line]:
    yield _line("bits saved over type and place", "more", [one.bits_saved if one else None for one in skills])
    yield _line("entropy beside surprise (sharpness)", "1", [one.sharpness if one else None for one in skills])
    calibrated = [one.calibration if one else None for one in skills]
    yield _line("calibration error", "0", [one.error if one else None for one in calibrated])
    yield _line("Brier score of the choice", "less", [one.brier if one else None for one in calibrated])
    for name in dict.fromkeys(name for one in skills if one for name in one.hits):
        yield _line(f"clicked product, {name}", "1", [one.hits[name] if one else None for one in skills])
    for steps in (1, 3, 5):
        known = [one.will_buy[steps - 1] if one and len(one.will_buy) >= steps else None for one in skills]
        yield _line(f"who will buy, after {steps} step{'s' if steps > 1 else ''} (AUPRC)", "1", known)


def _line(figure: str, good: str, values: Sequence[float | None], people: float | None = None) -> Line:
    return Line(figure, good, _shown(people), [_shown(value) for value in values])


FACTS = {
    "filter_use": "sessions with a filter",
    "reformulation_rate": "searches that change the last one",
    "back_rate": "clicks that lead back",
    "cart_removals": "sessions with something taken out of the cart",
    "mean_clicked_rank": "mean rank of clicked products",
}


def markdown(log: LogRow, rows: Sequence[PeopleRow]) -> str:
    """The table, one line per figure."""
    headings = ["figure", "good is", THE_LOG, *(row.label.replace("|", "\\|") for row in rows)]
    text = ["| " + " | ".join(headings) + " |", "|---|---" + "|--:" * (len(rows) + 1) + "|"]
    text += ["| " + " | ".join([line.figure, line.good, line.people, *line.agents]) + " |" for line in lines(log, rows)]
    return "\n".join(text) + "\n"


def _score(found: ScaledDistance | None) -> float | None:
    return None if found is None else found.score


def _shown(value: float | None) -> str:
    return MISSING if value is None else f"{value:.2f}".replace("-", "−")
