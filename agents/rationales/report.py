"""Statistics of rationales, the log's beside a model's: lengths, names of elements in them, repetitions, and failures.

A rationale with the name of the element that was used holds the answer instead of a reason: a model trained on it
learns to write the name twice.
"""

from collections import Counter
from collections.abc import Iterable, Mapping

import msgspec
import numpy as np

from agents.prompting.answers import NoAnswer
from agents.rationales.request import NoRationale
from replay_sessions.foundation.table import Column, Table
from replay_sessions.schema import Action, Session
from shop_env.evaluation.scored_steps import StepKey
from shop_env.words import words_of

Outcome = str | NoRationale | NoAnswer
_SEVERAL_WORDS = 2  # a name of one word, such as `search`, is an ordinary word of a sentence too


class Statistics(msgspec.Struct, frozen=True, kw_only=True):
    """Of some rationales.

    Attributes:
        words: Shortest, median, 95th percentile and longest, in words; empty where there are none.
        name_verbatim: How many hold the name of the element that was used, as it is written.
        name_words: How many hold all words of its most specific part (the one of most words, if two or more).
        duplicates: How many repeat an earlier one, but for case and spaces.
    """

    count: int
    words: tuple[int, ...] = ()
    name_verbatim: int = 0
    name_words: int = 0
    duplicates: int = 0


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """The outcomes of a synthesis.

    Attributes:
        steps: In the splits that were processed.
        logged: Rationales that were there before.
        synthesised: Those of the model.
        without: At how many steps the model gave none, by what it did instead.
        unanswered: At how many there was no answer, by cause.
        first_refusals: The texts of some of them.
    """

    steps: int
    logged: Statistics
    synthesised: Statistics
    without: dict[str, int] = {}
    unanswered: dict[str, int] = {}
    first_refusals: list[str] = []


def build_report(sessions: Iterable[Session], outcomes: Mapping[StepKey, Outcome]) -> Report:
    """The report on these outcomes.

    Args:
        sessions: As they were before.
    """
    steps = [
        (step, outcomes.get((session.session_id, index)))
        for session in sessions
        for index, step in enumerate(session.steps)
    ]
    without = [outcome for outcome in outcomes.values() if isinstance(outcome, NoRationale)]
    causes = Counter(str(outcome.cause) for outcome in outcomes.values() if isinstance(outcome, NoAnswer))
    return Report(
        steps=len(steps),
        logged=compute_statistics((step.action, step.rationale) for step, _ in steps if step.rationale),
        synthesised=compute_statistics(
            (step.action, outcome) for step, outcome in steps if isinstance(outcome, str) and not step.rationale
        ),
        without=dict(Counter(str(outcome.problem) for outcome in without).most_common()),
        unanswered=dict(causes.most_common()),
        first_refusals=[outcome.text[:200] for outcome in without if outcome.problem == "refused"][:3],
    )


def compute_statistics(rationales: Iterable[tuple[Action, str]]) -> Statistics:
    """The statistics of rationales, each with its action."""
    pairs = [(getattr(action, "name", ""), text) for action, text in rationales]
    lengths = [len(text.split()) for _, text in pairs]
    texts = {" ".join(text.lower().split()) for _, text in pairs}
    return Statistics(
        count=len(pairs),
        words=tuple(round(length) for length in np.percentile(lengths, [0, 50, 95, 100]).tolist()) if pairs else (),
        name_verbatim=sum(name in text for name, text in pairs if len(words_of(name)) >= _SEVERAL_WORDS),
        name_words=sum(_holds_specific_part(name, text) for name, text in pairs),
        duplicates=len(pairs) - len(texts),
    )


def report_table(report: Report) -> Table:
    """The report for a terminal."""
    both = (report.logged, report.synthesised)
    shares = {
        "name of the element, verbatim": [of.name_verbatim / of.count if of.count else None for of in both],
        "all words of the name": [of.name_words / of.count if of.count else None for of in both],
        "repeated": [of.duplicates / of.count if of.count else None for of in both],
    }
    failures = (("no rationale in the answer", report.without), ("no answer", report.unanswered))
    return Table(
        columns=[Column("", name="statistic"), Column("the log", "percent"), Column("the model", "percent")],
        rows=[
            ["rationales", *(f"{of.count:,}" for of in both)],
            ["words (min, median, p95, max)", *(", ".join(map(str, of.words)) or None for of in both)],
            *([f"{name}, %", *values] for name, values in shares.items()),
        ],
        notes=[
            f"{name}: {', '.join(f'{count:,} {cause}' for cause, count in counts.items())}"
            for name, counts in failures
            if counts
        ],
    )


def _holds_specific_part(name: str, text: str) -> bool:
    """Whether a text has all words of the longest part of a name: of `results.red_kettle.view` that is `red_kettle`."""
    words = max((words_of(part) for part in name.split(".")), key=len)
    return len(words) >= _SEVERAL_WORDS and set(words) <= set(words_of(text))
