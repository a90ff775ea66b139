"""Lets an agent walk through the demo shop by itself: ShopLive-v0 -> one LiveVisit per visit.

    LiveEnv ─► observation ─► agent ─► reply ─► LiveEnv … ─► LiveVisit ─► benchmarks.live

Here, unlike in a replay (agents/evaluate.py), each page follows from the agent's own action, so a visit is played step
by step; agents that answer batches play many visits side by side. Nothing here is ever scored against a log.
"""

from collections.abc import Callable, Iterator
from itertools import islice
from typing import Literal

import gymnasium
import msgspec
from gymnasium.wrappers import TimeLimit

from agents.evaluate import ask, ask_all, progress_bar, session_seed
from agents.protocol import Agent, BatchAgent
from replay_sessions.demo_shop.pages import PageSize
from shop_env.context import ContextConfig
from shop_env.live import LiveEnv, visit_id
from shop_env.observation import Observation

__all__ = ["LiveStep", "LiveVisit", "free_run"]

Ending = Literal["purchase", "terminate", "limit", "error"]


class LiveStep(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One reply: the action it did, or the problem for which it did nothing."""

    reply: str
    action: dict[str, str] | None = None
    problem: str | None = None


class LiveVisit(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One visit of an agent to the shop.

    Attributes:
        ending: How it ended; `limit` where the agent neither bought nor left in the replies it was given, `error`
            where it failed to answer: such a visit is counted, not compared.
    """

    session_id: str
    user_id: str
    steps: tuple[LiveStep, ...]
    ending: Ending
    error: str | None = None


def free_run(
    agent: Agent,
    sessions: int,
    *,
    population: int,
    page_size: PageSize = "small",
    context: ContextConfig | None = None,
    max_steps: int = 20,
    seed: int | None = 0,
    batch_size: int = 64,
    progress: str | None = None,
) -> list[LiveVisit]:
    """The first `sessions` visits of a population of shoppers, each played by the agent to its end.

    Args:
        population: The seed of the shoppers, their goals and the shop (`demo_shop.generate_sessions`).
        max_steps: The most replies in one visit.
        seed: The run's; an Agent is reset before each visit with `session_seed`, a BatchAgent once.
        batch_size: How many visits a BatchAgent plays side by side.
        progress: What to call the run on the progress bar; None: no bar. Shown only on a terminal.
    """
    shown = msgspec.to_builtins(context or ContextConfig())

    def begin(number: int) -> _Walk:
        return _Walk(TimeLimit(LiveEnv(page_size, context=shown), max_steps), population, number)

    if isinstance(agent, BatchAgent):
        agent.reset(seed=seed)
        visits = _side_by_side(agent, begin, sessions, batch_size)
    else:
        visits = _one_by_one(agent, begin, sessions, seed)
    with progress_bar(progress) as bar:
        task = bar.add_task(progress or "", total=sessions)
        found = []
        for visit in visits:
            found.append(visit)
            bar.update(task, completed=len(found))
    return sorted(found, key=lambda visit: visit.session_id)


class _Walk:
    """A visit under way."""

    def __init__(self, env: gymnasium.Env[Observation, str], population: int, number: int) -> None:
        self._env = env
        self.observation, self._info = env.reset(options={"session_id": visit_id(population, number)})
        self._steps: list[LiveStep] = []
        self.ending: Ending | None = None
        self.error: str | None = None

    @property
    def session_id(self) -> str:
        return str(self._info["session_id"])

    def take(self, answer: str | Exception) -> None:
        """Goes on with a reply; an exception ends the visit."""
        if isinstance(answer, Exception):
            self.ending, self.error = "error", f"{type(answer).__name__}: {answer}"[:500]
            return
        self.observation, _, terminated, truncated, info = self._env.step(answer)
        self._steps.append(LiveStep(reply=answer, action=info.get("action"), problem=info.get("problem")))
        if terminated:
            self.ending = info["outcome"]
        elif truncated:
            self.ending = "limit"

    def finished(self) -> LiveVisit:
        assert self.ending is not None
        return LiveVisit(
            session_id=self.session_id,
            user_id=self._info["user_id"],
            steps=tuple(self._steps),
            ending=self.ending,
            error=self.error,
        )


def _one_by_one(agent: Agent, begin: Callable[[int], _Walk], sessions: int, seed: int | None) -> Iterator[LiveVisit]:
    for number in range(sessions):
        walk = begin(number)
        try:
            agent.reset(seed=session_seed(seed, walk.session_id))
        except Exception as error:
            walk.take(error)
        while walk.ending is None:
            walk.take(ask(agent, walk.observation))
        yield walk.finished()


def _side_by_side(
    agent: BatchAgent, begin: Callable[[int], _Walk], sessions: int, batch_size: int
) -> Iterator[LiveVisit]:
    """Plays `batch_size` visits at a time; where one ends the next begins."""
    waiting = iter(range(sessions))
    walks = [begin(number) for number in islice(waiting, batch_size)]
    while walks:
        for walk, answer in zip(walks, ask_all(agent, [walk.observation for walk in walks]), strict=True):
            walk.take(answer)
        going_on = []
        for walk in walks:
            if walk.ending is None:
                going_on.append(walk)
                continue
            yield walk.finished()
            if (number := next(waiting, None)) is not None:
                going_on.append(begin(number))
        walks = going_on
