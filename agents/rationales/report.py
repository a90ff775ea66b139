"""What rationales are like, the log's beside a model's: lengths, names given away, repetitions, and what failed.

A rationale that holds the name of the element that was used tells the answer instead of a reason: a model trained on it
learns to write the name twice.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from statistics import quantiles

import msgspec

from agents.prompting.failures import NoAnswer
from agents.rationales.request import NoRationale
from agents.rationales.synthesis import Outcome
from agents.scored_steps import StepKey
from replay_sessions.schema import Action, Session, Terminate
from shop_env.given_words import words_of

__all__ = ["Figures", "Report", "figures_of", "report_lines", "report_on"]

_SEVERAL_WORDS = 2  # a name of one word, such as `search`, is an ordinary word of a sentence too


class Figures(msgspec.Struct, frozen=True, kw_only=True):
    """What some rationales are like.

    Attributes:
        words: Shortest, median, 95th percentile and longest, in words; empty where there are none.
        name_verbatim: How many hold the name of the element that was used, as it is written.
        name_words: How many hold all words of its most telling part (the one of most words, if two or more).
        duplicates: How many repeat an earlier one, but for case and spaces.
    """

    count: int
    words: tuple[int, ...] = ()
    name_verbatim: int = 0
    name_words: int = 0
    duplicates: int = 0


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """What was asked for, and what came of it.

    Attributes:
        steps: In the splits that were looked at.
        logged: Rationales that were there before.
        synthesised: Those of the model.
        without: At how many steps the model gave none, by what it did instead.
        unanswered: At how many there was no answer, by cause.
        first_refusals: What some of them said.
    """

    steps: int
    logged: Figures
    synthesised: Figures
    without: dict[str, int] = {}
    unanswered: dict[str, int] = {}
    first_refusals: list[str] = []


def report_on(sessions: Iterable[Session], outcomes: Mapping[StepKey, Outcome]) -> Report:
    """The report on what was asked about these sessions.

    Args:
        sessions: As they were before.
    """
    logged: list[tuple[Action, str]] = []
    synthesised: list[tuple[Action, str]] = []
    steps = 0
    for session in sessions:
        for index, step in enumerate(session.steps):
            steps += 1
            outcome = outcomes.get((session.session_id, index))
            if step.rationale:
                logged.append((step.action, step.rationale))
            elif isinstance(outcome, str):
                synthesised.append((step.action, outcome))
    failed = [one for one in outcomes.values() if isinstance(one, NoRationale)]
    return Report(
        steps=steps,
        logged=figures_of(logged),
        synthesised=figures_of(synthesised),
        without=dict(Counter(str(one.problem) for one in failed).most_common()),
        unanswered=dict(
            Counter(str(one.cause) for one in outcomes.values() if isinstance(one, NoAnswer)).most_common()
        ),
        first_refusals=[one.text[:200] for one in failed if one.problem == "refused"][:3],
    )


def figures_of(rationales: Iterable[tuple[Action, str]]) -> Figures:
    """The figures of rationales, each with the action that it is about."""
    given = list(rationales)
    lengths = sorted(len(text.split()) for _, text in given)
    seen = Counter(" ".join(text.lower().split()) for _, text in given)
    return Figures(
        count=len(given),
        words=(lengths[0], *_middle_and_high(lengths), lengths[-1]) if lengths else (),
        name_verbatim=sum(_name(action) in text for action, text in given if len(words_of(_name(action))) > 1),
        name_words=sum(_holds_telling_part(action, text) for action, text in given),
        duplicates=sum(count - 1 for count in seen.values()),
    )


def report_lines(report: Report) -> list[str]:
    """The report for a terminal."""
    heads = ("words (min, median, p95, max)", "name given away", "  or all its words", "repeated")
    lines = [
        f"{'':32}{'the log':>16}{'the model':>16}",
        _row("rationales", report, lambda figures: f"{figures.count:,}"),
    ]
    values = (
        lambda figures: ", ".join(map(str, figures.words)) or "-",
        lambda figures: _share(figures.name_verbatim, figures.count),
        lambda figures: _share(figures.name_words, figures.count),
        lambda figures: _share(figures.duplicates, figures.count),
    )
    lines += [_row(head, report, value) for head, value in zip(heads, values, strict=True)]
    for name, counts in (("no rationale in the answer", report.without), ("no answer", report.unanswered)):
        if counts:
            lines.append(f"{name}: {', '.join(f'{count:,} {cause}' for cause, count in counts.items())}")
    return lines


def _row(head: str, report: Report, value: Callable[[Figures], str]) -> str:
    return f"{head:32}{value(report.logged):>16}{value(report.synthesised):>16}"


def _share(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f}%" if whole else "-"


def _middle_and_high(lengths: list[int]) -> tuple[int, int]:
    """Median and 95th percentile."""
    if len(lengths) == 1:
        return lengths[0], lengths[0]
    cuts = quantiles(lengths, n=20, method="inclusive")
    return round(cuts[9]), round(cuts[18])


def _name(action: Action) -> str:
    return "" if isinstance(action, Terminate) else action.name


def _holds_telling_part(action: Action, text: str) -> bool:
    """Of `search_results.red_kettle.view_product` the part that tells most: the longest in words."""
    parts = [words_of(part) for part in _name(action).split(".")]
    telling = max(parts, key=len, default=[])
    return len(telling) >= _SEVERAL_WORDS and set(telling) <= set(words_of(text))
