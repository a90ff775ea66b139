"""The question from end to end: which pages the change touches, what agents do there, and what shoppers did on A.

store, change ─► ChangedSteps ─► ask_agent, each ─► shares on A, B, placebo and on A again ─► Difference ─► PagesResults
"""

from collections.abc import Sequence

import msgspec
import numpy as np

from agents.registry import agent_class, parse_spec
from benchmarks.ab.pages.answers import AGAIN, Answers, ask_agent
from benchmarks.ab.pages.change import load_change
from benchmarks.ab.pages.changed import ChangedSteps, PagesConfig, difference_of
from benchmarks.ab.pages.shifts import Difference, Kinds, differences, kinds_of, pooled, users_needed
from benchmarks.leaderboard.ranking import agent_specs, agent_texts
from replay_sessions.elements import page_names
from replay_sessions.foundation.durable_files import replace_file
from replay_sessions.foundation.errors import BadConfig
from replay_sessions.foundation.records import Record
from replay_sessions.store import SessionStore
from shop_env.evaluation.generate import AgentSpec
from shop_env.metrics.clustered_errors import Codes
from shop_env.metrics.over_seeds import OverSeeds


class Shift(Record):
    """What an agent says of one kind of action, as a share of what is done on the touched pages.

    Attributes:
        on_a, on_b: The share on each.
        difference: B less A.
        placebo: Placebo less A.
        again: A with other seeds less A; None where the agent gives probabilities, in which there is no chance.
    """

    on_a: float
    on_b: float
    difference: Difference
    placebo: Difference
    again: Difference | None


class PagesRow(Record):
    """What one agent answers.

    Attributes:
        shifts: By kind of action; empty where it gave no answer at all.
        steps: Touched steps that it answered on every page.
        failed: Touched steps at which it did not, once or more.
        draws: Replies to each page; None where it gives probabilities.
    """

    label: str
    shifts: dict[str, Shift]
    steps: int
    failed: int
    first_error: str | None
    draws: int | None
    remarks: list[str] = []


class PagesResults(Record):
    """An answer.

    Attributes:
        touched, step_count: Steps whose page the change touches, of how many.
        users, learnt_from: Users with such a step, and how many of them are in the train split.
        shoppers: What they really did on these pages: the share of each kind.
        notes: What of the change, or of the kinds, does nothing here.
        rows: Empty in a dry run.
        pooled: By agents with {seed} and kind of action, the differences of all trainings as one.
    """

    change: str
    touched: int
    step_count: int
    users: int
    learnt_from: int
    shoppers: dict[str, float]
    notes: list[str]
    rows: list[PagesRow]
    pooled: dict[str, dict[str, OverSeeds]] = {}


def run_pages(config: PagesConfig) -> PagesResults:
    """Asks what has not been asked yet, and compares.

    Raises:
        BadConfig: The change touches no page, or pages of too few users for any shift to be significant.
    """
    store = SessionStore.open(config.store)
    trained = _trained(config)
    plain = tuple(text for text in agent_texts(config.agents) if "{seed}" not in text)
    specs = agent_specs((*plain, *(text for texts in trained.values() for text in texts)))
    for spec in specs:
        agent_class(spec)  # a misspelt agent is found before hours of work, not after
    change = load_change(config.change)
    changed = ChangedSteps(config, store, change, load_change(config.placebo) if config.placebo else None)
    replace_file(config.out / "change.diff", difference_of(changed))
    kinds, absent = kinds_of(config.clicks, changed.names)
    notes = [*change.unmatched, *(f"no element of these pages is a {label} (--clicks)" for label in absent)]
    results = PagesResults(
        change=change.source,
        touched=len(changed.keys),
        step_count=changed.step_count,
        users=changed.user_count,
        learnt_from=changed.learnt_from,
        shoppers=_logged(changed, kinds),
        notes=notes,
        rows=[],
    )
    if config.dry_run:
        return results
    _check_users(changed, kinds)
    rows = {spec.label: _row(spec, config, store, changed, kinds) for spec in specs}
    of_trainings = {label: [rows[parse_spec(text).label] for text in texts] for label, texts in trained.items()}
    several = {label: of_one for label, of_one in of_trainings.items() if len(of_one) > 1}
    pooled_shifts = {label: _pooled(of_one) for label, of_one in several.items() if all(row.shifts for row in of_one)}
    return msgspec.structs.replace(results, rows=list(rows.values()), pooled=pooled_shifts)


def _trained(config: PagesConfig) -> dict[str, list[str]]:
    """The label of each agent with {seed} -> the agents that it stands for, each with a label of its own."""
    by_label = {}
    for text in agent_texts(config.agents):
        if "{seed}" in text:
            label = parse_spec(text).label
            if label != text and "{seed}" not in label:
                text = text.replace(label, f"{label} seed {{seed}}", 1)
            by_label[label] = [text.replace("{seed}", str(seed)) for seed in config.trained_seeds]
    return by_label


def _pooled(rows: Sequence[PagesRow]) -> dict[str, OverSeeds]:
    return {kind: pooled([row.shifts[kind].difference for row in rows]) for kind in rows[0].shifts}


def _check_users(changed: ChangedSteps, kinds: Kinds) -> None:
    needed = users_needed(len(kinds.labels))
    if changed.user_count < needed:
        raise BadConfig(
            f"the change touches {len(changed.keys)} pages of {changed.user_count} users, and needs {needed} users: "
            "with fewer no shift could be significant, even if every answer differed, by 100 points (p is "
            f"{2.0 ** (1 - changed.user_count):.2g} at best, for {len(kinds.labels)} kinds of action). Use more users: "
            "more sessions, or --split all, whose train split agents have learnt from"
        )


def _logged(changed: ChangedSteps, kinds: Kinds) -> dict[str, float]:
    rows = [kinds.shares({step.logged: 1.0}, page_names(step.observation["page"])) for step in changed.steps("A")]
    return dict(zip(kinds.labels, np.mean(rows, axis=0).tolist(), strict=True))


def _row(spec: AgentSpec, config: PagesConfig, store: SessionStore, changed: ChangedSteps, kinds: Kinds) -> PagesRow:
    answers = ask_agent(spec, config, store, changed, kinds)
    shifts: dict[str, Shift] = {}
    if answers.complete.any():
        shifts = dict(zip(kinds.labels, _shifts(answers, changed.users[answers.complete]), strict=True))
    return PagesRow(
        label=spec.label,
        shifts=shifts,
        steps=int(answers.complete.sum()),
        failed=int(np.sum(~answers.complete)),
        first_error=answers.first_error,
        draws=None if answers.by_probabilities else config.draws,
        remarks=answers.remarks,
    )


def _shifts(answers: Answers, users: Codes) -> list[Shift]:
    on_a, on_b = answers.shares("A"), answers.shares("B")
    of_b, of_placebo = differences(on_a, on_b, users), differences(on_a, answers.shares("placebo"), users)
    again: Sequence[Difference | None] = [None] * len(of_b)
    if not answers.by_probabilities:
        again = differences(on_a, answers.shares(AGAIN), users)
    means = (on_a.mean(axis=0).tolist(), on_b.mean(axis=0).tolist())
    return [
        Shift(on_a=a, on_b=b, difference=difference, placebo=placebo, again=other)
        for a, b, difference, placebo, other in zip(*means, of_b, of_placebo, again, strict=True)
    ]
