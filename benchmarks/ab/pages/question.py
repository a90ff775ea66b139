"""Runs `ab pages`: finds the pages that the change touches, runs the agents there, computes shares and their shifts.

store, change ─► TouchedSteps ─► ask_agent ─► shares on A, B and placebo ─► Difference ─► PagesResults
"""

import msgspec
import numpy as np

from agents.registry import agent_class
from benchmarks.ab.pages.answers import Answers, ask_agent
from benchmarks.ab.pages.config import PagesConfig
from benchmarks.ab.pages.kinds import Kinds, parse_kinds
from benchmarks.ab.pages.shifts import Difference, differences, users_needed
from benchmarks.ab.pages.touched import TouchedSteps, difference_of
from benchmarks.leaderboard.ranking import agent_specs
from replay_sessions.elements import page_names
from replay_sessions.foundation.durable_files import replace_file
from replay_sessions.foundation.errors import BadConfig
from replay_sessions.foundation.records import Record
from replay_sessions.store import SessionStore
from shop_env.evaluation.waves import AgentSpec
from shop_env.metrics.clustered_errors import Codes


class Shift(Record):
    """An agent's shift of one kind of action, as a share of all actions on the touched pages.

    Attributes:
        on_a, on_b: The share on A and on B.
        difference: B minus A.
        placebo: Placebo minus A.
    """

    on_a: float
    on_b: float
    difference: Difference
    placebo: Difference


class PagesRow(Record):
    """The result of one agent.

    Attributes:
        shifts: The shift of each kind of action; empty if the agent gave no answer at all.
        steps: Number of touched steps that the agent answered on every version of the page.
        failed: Number of touched steps that it did not answer on at least one version.
        first_error: The error of the first step without an answer; None if all were answered.
        draws: Number of replies to each page; 0 if the agent gives probabilities.
    """

    label: str
    shifts: dict[str, Shift]
    steps: int
    failed: int
    first_error: str | None
    draws: int


class PagesResults(Record):
    """The results of all agents.

    Attributes:
        change: The change, as the option names it.
        touched: Number of steps with a page that the change touches.
        step_count: Number of all steps.
        prices: Number of prices that B shows at touched steps.
        repriced: Number of these prices that the same page of A does not show.
        users: Number of users with a touched step.
        shoppers: The share of each kind of action among the logged actions of the touched steps.
        rows: The results of each agent; empty in a dry run.
    """

    change: str
    touched: int
    step_count: int
    prices: int
    repriced: int
    users: int
    shoppers: dict[str, float]
    rows: list[PagesRow]


def run_pages(config: PagesConfig) -> PagesResults:
    """Runs the agents at the touched steps that have no saved answer, and computes the shifts.

    Raises:
        BadConfig: The change touches no page, or pages of too few users for any shift to be significant.
    """
    store = SessionStore.open(config.store)
    specs, kinds = agent_specs(config.agents), parse_kinds(config.clicks, scrolls=store.scrolls)
    for spec in specs:
        agent_class(spec)  # reports a misspelt agent before hours of work
    touched = TouchedSteps(config, store)
    replace_file(config.out / "change.diff", difference_of(touched))
    results = PagesResults(
        change=config.change,
        touched=len(touched.keys),
        step_count=touched.step_count,
        prices=touched.prices,
        repriced=touched.repriced,
        users=touched.user_count,
        shoppers=_logged(touched, kinds),
        rows=[],
    )
    if config.dry_run:
        return results
    if touched.user_count < (needed := users_needed(len(kinds.labels))):
        raise BadConfig(
            f"the change touches {len(touched.keys)} pages of {touched.user_count} users, and needs {needed} users: "
            "with fewer no shift could be significant, even if every answer differed. Use more users: more sessions, "
            "or --split all, whose train split agents have learnt from"
        )
    rows = [_row(spec, config, store, touched, kinds) for spec in specs]
    return msgspec.structs.replace(results, rows=rows)


def _logged(touched: TouchedSteps, kinds: Kinds) -> dict[str, float]:
    rows = [kinds.shares({step.logged: 1.0}, page_names(step.observation["page"])) for step in touched.steps("A")]
    return dict(zip(kinds.labels, np.mean(rows, axis=0).tolist(), strict=True))


def _row(spec: AgentSpec, config: PagesConfig, store: SessionStore, touched: TouchedSteps, kinds: Kinds) -> PagesRow:
    answers = ask_agent(spec, config, store, touched, kinds)
    complete = answers.complete
    return PagesRow(
        label=spec.label,
        shifts=_shifts(answers, touched.users[complete], kinds) if complete.any() else {},
        steps=int(complete.sum()),
        failed=int(np.sum(~complete)),
        first_error=answers.first_error,
        draws=answers.draws,
    )


def _shifts(answers: Answers, users: Codes, kinds: Kinds) -> dict[str, Shift]:
    a, b, placebo = (answers.shares[version][answers.complete] for version in ("A", "B", "placebo"))
    columns = zip(
        kinds.labels,
        a.mean(axis=0).tolist(),
        b.mean(axis=0).tolist(),
        differences(a, b, users),
        differences(a, placebo, users),
        strict=True,
    )
    return {kind: Shift(on_a=x, on_b=y, difference=shift, placebo=other) for kind, x, y, shift, other in columns}
