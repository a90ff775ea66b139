"""Asks one agent about the steps that a change touches, on A, on B and on the placebo, and keeps what it answers.

    ProbabilityAgent    its probabilities, once for each page: no chance is in them
    all others          replies to each page, drawn with the same seeds on A, B and placebo; and again on A with others

Answers are kept as a leaderboard keeps them (agents/kept_replies.py, benchmarks/leaderboard/agent_files.py), those to A
under the same name as a leaderboard's: nothing is asked twice, `leaderboard take` brings what a leaderboard has asked,
and what an agent failed to answer is asked again by the next call.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from agents.asking import ask_all
from agents.kept_replies import KeptReplies
from agents.probabilities import ask_probabilities
from agents.protocol import Agent, ProbabilityAgent, ServedAgent
from agents.registry import AgentSpec, make_agent
from agents.scored_steps import StepKey
from benchmarks.ab.pages.changed import ChangedSteps, PageVersion
from benchmarks.ab.pages.config import PagesConfig
from benchmarks.ab.pages.shares import Distribution, Kinds
from benchmarks.leaderboard.agent_files import AgentFiles
from benchmarks.leaderboard.config import asked_with
from benchmarks.leaderboard.ranking import gives_probabilities
from replay_sessions.elements import page_names
from replay_sessions.errors import AgentFailed
from replay_sessions.progress_bar import progress_bar
from replay_sessions.provenance import provenance
from replay_sessions.schema import Action
from replay_sessions.store import SessionStore
from shop_env.metrics import checked_distribution
from shop_env.replies import Reply, parse_reply

__all__ = ["AGAIN", "VERSIONS", "Answers", "ask_agent"]

Floats = NDArray[np.float64]
Side = PageVersion | Literal["A again"]
VERSIONS: tuple[PageVersion, ...] = ("A", "B", "placebo")
AGAIN: Side = "A again"


class Answers:
    """What an agent answers at each touched step, as shares of kinds of action.

    Attributes:
        by_probabilities: Else by replies.
        failed: At how many steps it gave no answer to one of the pages; those are in no figure.
        first_error: What the first of them said.
        remarks: What the agent says of what it was asked now.
    """

    def __init__(self, *, by_probabilities: bool) -> None:
        self.by_probabilities = by_probabilities
        self.first_error: str | None = None
        self.remarks: list[str] = []
        self._shares: dict[Side, Floats] = {}

    def add(self, side: Side, shares: Floats, first_error: str | None) -> None:
        """Takes the shares of each step, (steps, kinds); not a number where there was no answer."""
        self._shares[side] = shares
        self.first_error = self.first_error or first_error

    @property
    def sides(self) -> list[Side]:
        return list(self._shares)

    @property
    def known(self) -> NDArray[np.bool_]:
        """Which steps were answered on every side, (steps,)."""
        known: NDArray[np.bool_] = np.all([~np.isnan(one).any(axis=1) for one in self._shares.values()], axis=0)
        return known

    @property
    def failed(self) -> int:
        return int(np.sum(~self.known))

    def shares(self, side: Side) -> Floats:
        """Of the steps that were answered on every side, (known steps, kinds)."""
        return self._shares[side][self.known]


def ask_agent(
    spec: AgentSpec, config: PagesConfig, store: SessionStore, changed: ChangedSteps, kinds: Kinds
) -> Answers:
    """Asks what is not kept yet."""
    asking = _Asking(spec, config, store, changed, kinds)
    answers = None if config.by_replies or not gives_probabilities(spec) else asking.probabilities()
    answers = answers or asking.replies()
    answers.remarks = asking.close()
    return answers


class _Asking:
    """One agent, made when there is something that it has not answered."""

    def __init__(
        self, spec: AgentSpec, config: PagesConfig, store: SessionStore, changed: ChangedSteps, kinds: Kinds
    ) -> None:
        self._spec, self._config, self._store = spec, config, store
        self._changed, self._kinds = changed, kinds

    @cached_property
    def _agent(self) -> Agent:
        return make_agent(self._spec, store=self._store)

    def close(self) -> list[str]:
        """What the agent says of what it was asked."""
        agent = self.__dict__.get("_agent")
        if not isinstance(agent, ServedAgent):
            return []
        remarks = agent.remarks()
        agent.close()
        return remarks

    def probabilities(self) -> Answers | None:
        """None where the agent gives none."""
        answers = Answers(by_probabilities=True)
        for version in VERSIONS:
            with self._kept(version, self._config.seed) as kept:
                self._ask_probabilities(version, kept)
                keys = self._changed.keys
                if all(kept.probabilities(key) is None and kept.probabilities_error(key) is None for key in keys):
                    return None
                answers.add(version, *self._counted(version, lambda key, kept=kept: _weighed(kept, key)))  # type: ignore[misc]
        return answers

    def replies(self) -> Answers:
        """Replies of several draws; on A of as many more."""
        answers = Answers(by_probabilities=False)
        first, draws = self._config.seed, self._config.draws
        sides: list[tuple[Side, PageVersion, int]] = [(version, version, first) for version in VERSIONS]
        for side, version, seed in [*sides, (AGAIN, "A", first + draws)]:
            with ExitStack() as stack:
                kept = [stack.enter_context(self._kept(version, seed + draw)) for draw in range(draws)]
                self._ask_replies(side, version, kept, seed)
                answers.add(side, *self._counted(version, lambda key, kept=kept: self._drawn(kept, key)))  # type: ignore[misc]
        return answers

    def _kept(self, version: PageVersion, seed: int) -> KeptReplies:
        decided_by = {**self._decided_by, "seed": seed}
        if version != "A":
            decided_by["pages"] = self._changed.digests[version]
        return KeptReplies(AgentFiles(self._config.out, self._spec.label).replies(decided_by), decided_by)

    @cached_property
    def _decided_by(self) -> dict[str, Any]:
        """What decides an answer to A, as a leaderboard has it; worked out once, since it reads the agent's code."""
        return asked_with(self._spec, self._config.as_leaderboard(), self._store)

    @cached_property
    def _asked_by(self) -> dict[str, Any]:
        described = provenance({}, store=self._store, seed=self._config.seed)
        return {name: described[name] for name in ("time", "commit", "dirty", "python", "packages", "machine")}

    def _ask_probabilities(self, version: PageVersion, kept: KeptReplies) -> None:
        missing = [key for key in self._changed.keys if kept.probabilities(key) is None]
        if not missing or not isinstance(self._agent, ProbabilityAgent):
            return
        kept.begin_run(self._asked_by)
        steps = self._changed.steps(version, missing)
        asked = ask_probabilities(self._agent, steps, seed=self._config.seed, batch_size=self._config.batch_size)
        with progress_bar(f"{self._spec.label}, {version}", len(missing), "steps") as advance:
            for step, found in asked:
                kept.keep_probabilities(step.key, found)
                advance(1)

    def _ask_replies(self, side: Side, version: PageVersion, kept: Sequence[KeptReplies], seed: int) -> None:
        missing = [[key for key in self._changed.keys if one.reply(key) is None] for one in kept]
        if not any(missing):
            return
        with progress_bar(f"{self._spec.label}, {side}", sum(map(len, missing)), "replies") as advance:
            for draw, (one, keys) in enumerate(zip(kept, missing, strict=True)):
                if not keys:
                    continue
                agent = self._agent
                one.begin_run(self._asked_by)
                steps = self._changed.steps(version, keys)
                for step, answer in ask_all(agent, steps, seed=seed + draw, batch_size=self._config.batch_size):
                    one.keep(step.key, answer)
                    advance(1)

    def _drawn(self, kept: Sequence[KeptReplies], key: StepKey) -> Distribution:
        """The share of each action among the replies to a step."""
        actions: Counter[Action | None] = Counter()
        for one in kept:
            reply = one.reply(key)
            if reply is None:
                raise AgentFailed(one.error(key) or "the agent was not asked")
            read = parse_reply(reply, self._config.extraction)
            actions[read.action if isinstance(read, Reply) else None] += 1
        return {action: count / len(kept) for action, count in actions.items()}

    def _counted(self, version: PageVersion, answer: Callable[[StepKey], Distribution]) -> tuple[Floats, str | None]:
        """The shares of each step, (steps, kinds), and why the first without an answer has none."""
        rows = dict.fromkeys(self._changed.keys, np.full(len(self._kinds.labels), np.nan))
        first_error = None
        with progress_bar(f"{self._spec.label}, {version}: counting", len(rows)) as advance:
            for step in self._changed.steps(version):
                try:
                    rows[step.key] = self._kinds.shares(answer(step.key), page_names(step.observation["page"]))
                except AgentFailed as error:
                    first_error = first_error or str(error)
                advance(1)
        return np.array(list(rows.values())), first_error


def _weighed(kept: KeptReplies, key: StepKey) -> Distribution:
    found = kept.probabilities(key)
    if found is None:
        raise AgentFailed(kept.probabilities_error(key) or "the agent gave probabilities at other steps, and none here")
    checked_distribution(found)
    return dict(found.items())
