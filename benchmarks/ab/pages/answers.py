"""Asks one agent about the steps that a change touches, on A, on B and on the placebo, and keeps what it answers.

    ProbabilityAgent    its probabilities, once for each page: no chance is in them
    all others          replies to each page, drawn with the same seeds on A, B and placebo; and again on A with others

Replies are cached as a leaderboard caches them (shop_env/evaluation/log.py), those to A under the same name as a
leaderboard's: nothing is run twice, `leaderboard merge` brings the replies of a leaderboard, and steps at which an
agent failed are run again by the next call.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from agents.agent_code import reply_identity
from agents.registry import gives_probabilities, make_agent
from benchmarks.ab.pages.changed import ChangedSteps, PageVersion
from benchmarks.ab.pages.config import PagesConfig
from benchmarks.ab.pages.shares import Distribution, Kinds
from replay_sessions.elements import page_names
from replay_sessions.foundation.errors import AgentFailed
from replay_sessions.foundation.progress import progress_bar
from replay_sessions.schema import Action
from replay_sessions.store import SessionStore
from shop_env.evaluation.evaluate import NOT_RUN, fill_cache
from shop_env.evaluation.generate import NO_PROBABILITIES, AgentSpec, LazyAgent
from shop_env.evaluation.log import AgentFiles
from shop_env.evaluation.reply_cache import ReplyCache
from shop_env.evaluation.scored_steps import StepKey
from shop_env.metrics import checked_distribution
from shop_env.replies import Reply, parse_reply

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
    def complete(self) -> NDArray[np.bool_]:
        """Which steps were answered on every side, (steps,)."""
        complete: NDArray[np.bool_] = np.all(
            [~np.isnan(shares).any(axis=1) for shares in self._shares.values()], axis=0
        )
        return complete

    @property
    def failed(self) -> int:
        return int(np.sum(~self.complete))

    def shares(self, side: Side) -> Floats:
        """Of the steps that were answered on every side, (known steps, kinds)."""
        return self._shares[side][self.complete]


def ask_agent(
    spec: AgentSpec, config: PagesConfig, store: SessionStore, changed: ChangedSteps, kinds: Kinds
) -> Answers:
    """Generates what is not cached yet."""
    agent = _Agent(spec, config, store, changed, kinds)
    answers = None if config.by_replies or not gives_probabilities(spec) else agent.probabilities()
    answers = answers or agent.replies()
    answers.remarks = agent.lazy.close()
    return answers


class _Agent:
    """One agent with its caches; it is built when there is something that they lack."""

    def __init__(
        self, spec: AgentSpec, config: PagesConfig, store: SessionStore, changed: ChangedSteps, kinds: Kinds
    ) -> None:
        self._spec, self._config = spec, config
        self._changed, self._kinds = changed, kinds
        # What decides a reply to A, as in a leaderboard; computed once, since it reads the agent's code.
        self._identity = reply_identity(spec, config.context, store, config.seed)
        self.lazy = LazyAgent(lambda: make_agent(spec, store=store))

    def probabilities(self) -> Answers | None:
        """None where the agent gives none."""
        answers = Answers(by_probabilities=True)
        for version in VERSIONS:
            with self._cache(version, self._config.seed) as cache:
                self._fill(cache, version, version, self._config.seed, replies=False)
                keys = self._changed.keys
                if all(cache.probabilities(key) is None and cache.probabilities_error(key) is None for key in keys):
                    return None
                answers.add(version, *self._counted(version, lambda key, cache=cache: _weighed(cache, key)))  # type: ignore[misc]
        return answers

    def replies(self) -> Answers:
        """Replies of several draws; on A of as many more."""
        answers = Answers(by_probabilities=False)
        first, draws = self._config.seed, self._config.draws
        sides: list[tuple[Side, PageVersion, int]] = [(version, version, first) for version in VERSIONS]
        for side, version, seed in [*sides, (AGAIN, "A", first + draws)]:
            with ExitStack() as stack:
                caches = [stack.enter_context(self._cache(version, seed + draw)) for draw in range(draws)]
                for draw, cache in enumerate(caches):
                    self._fill(cache, side, version, seed + draw, replies=True)
                answers.add(side, *self._counted(version, lambda key, caches=caches: self._drawn(caches, key)))  # type: ignore[misc]
        return answers

    def _cache(self, version: PageVersion, seed: int) -> ReplyCache:
        identity = {**self._identity, "seed": seed}
        if version != "A":
            identity["pages"] = self._changed.digests[version]
        return ReplyCache(AgentFiles.of(self._config.out, self._spec.label).replies(identity), identity)

    def _fill(self, cache: ReplyCache, side: Side, version: PageVersion, seed: int, *, replies: bool) -> None:
        fill_cache(
            cache,
            self.lazy,
            self._changed.keys,
            lambda keys: self._changed.steps(version, keys),
            seed=seed,
            batch_size=self._config.batch_size,
            replies=replies,
            probabilities=not replies,
            progress=f"{self._spec.label}, {side}",
        )

    def _drawn(self, caches: Sequence[ReplyCache], key: StepKey) -> Distribution:
        """The share of each action among the replies to a step."""
        actions: Counter[Action | None] = Counter()
        for cache in caches:
            reply = cache.reply(key)
            if reply is None:
                raise AgentFailed(cache.error(key) or NOT_RUN)
            read = parse_reply(reply, self._config.extraction)
            actions[read.action if isinstance(read, Reply) else None] += 1
        return {action: count / len(caches) for action, count in actions.items()}

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


def _weighed(cache: ReplyCache, key: StepKey) -> Distribution:
    probabilities = cache.probabilities(key)
    if probabilities is None:
        raise AgentFailed(cache.probabilities_error(key) or NO_PROBABILITIES)
    checked_distribution(probabilities)
    return dict(probabilities.items())
