"""Compares the log's rationales with the model's: lengths, names of elements in them, repetitions, failures.

A rationale that names its action's element holds the answer instead of a reason: a model that is trained on it learns
to write the name twice.
"""

from collections import Counter
from collections.abc import Iterable, Mapping

import numpy as np

from agents.prompting.chat import NoAnswer
from agents.rationales.request import NoRationale
from replay_sessions.foundation.records import Record
from replay_sessions.foundation.table import Column, Table
from replay_sessions.schema import Action, Session
from shop_env.evaluation.scored_steps import StepKey
from shop_env.shopper_words import words_of

Outcome = str | NoRationale | NoAnswer


class Statistics(Record):
    """Statistics of some rationales.

    Attributes:
        words: The shortest, median, 95th percentile and longest length in words; empty if count is 0.
        name_verbatim: The number of rationales with the verbatim name of their action's element. Names of one word,
            such as `search`, do not count, because sentences use these words anyway.
        duplicates: The number of rationales that repeat an earlier one, except for case and spaces.
    """

    count: int
    words: tuple[int, ...] = ()
    name_verbatim: int = 0
    duplicates: int = 0


def compute_statistics(rationales: Iterable[tuple[Action, str]]) -> Statistics:
    """Computes the statistics of rationales, each with its action."""
    pairs = [(getattr(action, "name", ""), text) for action, text in rationales]
    lengths = [len(text.split()) for _, text in pairs]
    return Statistics(
        count=len(pairs),
        words=tuple(round(length) for length in np.percentile(lengths, [0, 50, 95, 100]).tolist()) if pairs else (),
        name_verbatim=sum(len(words_of(name)) > 1 and name in text for name, text in pairs),
        duplicates=len(pairs) - len({" ".join(text.lower().split()) for _, text in pairs}),
    )


def report_table(sessions: Iterable[Session], outcomes: Mapping[StepKey, Outcome]) -> Table:
    """Builds the table of the log's and the model's rationales, with counts of steps without a rationale.

    Args:
        sessions: The sessions without the model's rationales.
        outcomes: The outcome of each step that lacked a rationale.
    """
    logged, synthesised = [], []
    for session in sessions:
        for index, step in enumerate(session.steps):
            outcome = outcomes.get((session.session_id, index))
            if step.rationale:
                logged.append((step.action, step.rationale))
            elif isinstance(outcome, str):
                synthesised.append((step.action, outcome))
    both = compute_statistics(logged), compute_statistics(synthesised)
    shares = {"name of the element, verbatim": "name_verbatim", "repeated": "duplicates"}
    failures = Counter(
        f"no rationale in the reply, {outcome.problem}" if isinstance(outcome, NoRationale) else "no reply"
        for outcome in outcomes.values()
        if not isinstance(outcome, str)
    )
    return Table(
        columns=[Column("", name="statistic"), Column("the log", "percent"), Column("the model", "percent")],
        rows=[
            ["rationales", *(f"{stats.count:,}" for stats in both)],
            ["words (min, median, p95, max)", *(", ".join(map(str, stats.words)) or None for stats in both)],
            *(
                [f"{name}, %", *(getattr(stats, field) / stats.count if stats.count else None for stats in both)]
                for name, field in shares.items()
            ),
        ],
        notes=[f"{failure}: {count:,} steps" for failure, count in failures.most_common()],
    )
