"""Asks one agent about the steps that a change touches, on A, on B and on the placebo, and keeps what it answers.

    ProbabilityAgent    its probabilities, once for each page: no chance is in them
    all others          replies to each page, drawn with the same seeds on A, B and placebo; and again on A with others

Each version and draw has a file of steps (shop_env/evaluation/steps_file.py): nothing is run twice, and steps at which
an agent failed are run again by the next call.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from agents.agent_code import gives_probabilities, reply_identity
from agents.registry import make_agent
from benchmarks.ab.pages.changed import ChangedSteps, PagesConfig, PageVersion
from benchmarks.ab.pages.shifts import Distribution, Kinds
from replay_sessions.elements import page_names
from replay_sessions.foundation.errors import AgentFailed
from replay_sessions.foundation.progress import track
from replay_sessions.schema import Action
from replay_sessions.store import SessionStore
from shop_env.evaluation.evaluate import NO_PROBABILITIES, NOT_RUN, LazyAgent, run_missing
from shop_env.evaluation.generate import AgentSpec
from shop_env.evaluation.log import AgentFiles
from shop_env.evaluation.scored_steps import StepKey
from shop_env.evaluation.steps_file import StepLine, StepsFile, prepare, read_lines
from shop_env.metrics.clustered_errors import Floats
from shop_env.replies import Reply, parse_reply

Lines = Mapping[StepKey, StepLine]
Side = PageVersion | Literal["A again"]
VERSIONS: tuple[PageVersion, ...] = ("A", "B", "placebo")
AGAIN: Side = "A again"


class Answers(msgspec.Struct, kw_only=True):
    """What an agent answers at each touched step, as shares of kinds of action.

    Attributes:
        by_probabilities: Else by replies.
        all_shares: Of each step, (steps, kinds); not a number where there was no answer.
        first_error: What the first step without an answer said.
        remarks: What the agent says of what it was asked now.
    """

    by_probabilities: bool
    all_shares: dict[Side, Floats] = {}
    first_error: str | None = None
    remarks: list[str] = []

    @property
    def complete(self) -> NDArray[np.bool_]:
        """Which steps were answered on every side, (steps,); the others are in no figure."""
        complete: NDArray[np.bool_] = np.all(~np.isnan(list(self.all_shares.values())), axis=(0, 2))
        return complete

    def shares(self, side: Side) -> Floats:
        """Of the steps that were answered on every side, (known steps, kinds)."""
        return self.all_shares[side][self.complete]


def ask_agent(
    spec: AgentSpec, config: PagesConfig, store: SessionStore, changed: ChangedSteps, kinds: Kinds
) -> Answers:
    """Generates what is not cached yet."""
    identity = reply_identity(spec, config.context, store, config.seed)  # once, since it reads the agent's code
    agent = _Agent(spec, config, changed, kinds, identity, LazyAgent(lambda: make_agent(spec, store=store)))
    answers = agent.answers(by_probabilities=not config.by_replies and gives_probabilities(spec))
    answers.remarks = agent.lazy.close()
    return answers


@dataclass
class _Agent:
    """One agent with its caches; it is built when there is something that they lack."""

    spec: AgentSpec
    config: PagesConfig
    changed: ChangedSteps
    kinds: Kinds
    identity: dict[str, Any]
    lazy: LazyAgent

    def answers(self, *, by_probabilities: bool) -> Answers:
        """Its probabilities, or replies of several draws and on A of as many more; these too where it gives none."""
        answers = Answers(by_probabilities=by_probabilities)
        first, draws = self.config.seed, 1 if by_probabilities else self.config.draws
        sides: list[tuple[Side, PageVersion, int]] = [(version, version, first) for version in VERSIONS]
        if not by_probabilities:
            sides.append((AGAIN, "A", first + draws))
        for side, version, seed in sides:
            files = [self._file(version, seed + draw, by_probabilities) for draw in range(draws)]
            for draw, file in enumerate(files):
                with StepsFile(file) as steps:
                    run_missing(
                        steps,
                        self.lazy,
                        self.changed.keys,
                        partial(self.changed.steps, version),
                        seed=seed + draw,
                        batch_size=self.config.batch_size,
                        likelihood=by_probabilities,
                        progress=f"{self.spec.label}, {side}",
                    )
            lines = [read_lines(file) for file in files]
            answered = [line for line in lines[0].values() if line.error is None]
            if by_probabilities and answered and all(line.probabilities is None for line in answered):
                break
            self._count(answers, side, version, lines)
        else:
            return answers
        return self.answers(by_probabilities=False)

    def _file(self, version: PageVersion, seed: int, by_probabilities: bool) -> Path:
        """The file of steps of a version and a draw, ready to be continued."""
        file = AgentFiles.of(self.config.out, self.spec.label).folder / f"{version}-{seed}.jsonl"
        pages = {} if version == "A" else {"pages": self.changed.digests[version]}
        identity = {**self.identity, "seed": seed, "likelihood": by_probabilities, **pages}
        prepare(file, identity, {}, fresh=False, retry_errors=True)
        return file

    def _drawn(self, draws: Sequence[Lines], key: StepKey) -> Distribution:
        """The share of each action among the replies to a step."""
        actions: Counter[Action | None] = Counter()
        for lines in draws:
            line = lines.get(key)
            if line is None or line.reply is None:
                raise AgentFailed(NOT_RUN if line is None else line.error or NOT_RUN)
            read = parse_reply(line.reply, self.config.extraction)
            actions[read.action if isinstance(read, Reply) else None] += 1
        return {action: count / len(draws) for action, count in actions.items()}

    def _count(self, answers: Answers, side: Side, version: PageVersion, draws: Sequence[Lines]) -> None:
        answer = _weighed if answers.by_probabilities else self._drawn
        rows = dict.fromkeys(self.changed.keys, np.full(len(self.kinds.labels), np.nan))
        steps = track(self.changed.steps(version), f"{self.spec.label}, {version}: counting", len(rows))
        for step in steps:
            try:
                rows[step.key] = self.kinds.shares(answer(draws, step.key), page_names(step.observation["page"]))
            except AgentFailed as error:
                answers.first_error = answers.first_error or str(error)
        answers.all_shares[side] = np.array(list(rows.values()))


def _weighed(draws: Sequence[Lines], key: StepKey) -> Distribution:
    [lines] = draws
    line = lines.get(key)
    if line is None or line.probabilities is None:
        raise AgentFailed((line and line.error) or NO_PROBABILITIES)
    return dict(line.probabilities)
