"""Lets an agent walk through the demo shop by itself: ShopLive-v0 -> one LiveVisit per visit.

    LiveEnv ─► observation ─► agent ─► reply ─► LiveEnv … ─► LiveVisit ─► benchmarks.live

Here, unlike in a replay (evaluation/evaluate.py), each page follows from the agent's own action, a visit is played step
by step; agents that answer batches play many visits side by side. Nothing here is ever scored against a log.
"""

from collections.abc import Callable, Iterator
from itertools import islice
from typing import Literal

import gymnasium
import msgspec
from gymnasium.wrappers import TimeLimit

from replay_sessions.demo_shop.pages import PageSize
from replay_sessions.demo_shop.realistic import CONTROL, ShopVariant
from replay_sessions.foundation.progress import progress_bar
from shop_env.evaluation.generate import ReplyOrError, format_error, generate_batch, step_seed
from shop_env.evaluation.protocol import Agent, BatchAgent
from shop_env.live import LiveEnv, visit_id
from shop_env.observation import ContextConfig, Observation

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
        revenue_cents: Of a purchase, in a shop whose goods have prices.
    """

    session_id: str
    user_id: str
    steps: tuple[LiveStep, ...]
    ending: Ending
    error: str | None = None
    revenue_cents: int = 0


def free_run(
    agent: Agent,
    visits: int,
    *,
    population: int,
    page_size: PageSize = "small",
    variant: ShopVariant = CONTROL,
    context: ContextConfig | None = None,
    max_steps: int = 20,
    seed: int | None = 0,
    batch_size: int = 64,
    progress: str | None = None,
) -> list[LiveVisit]:
    """The first so many visits of a population of shoppers, each played by the agent to its end.

    Args:
        population: The seed of the shoppers, their goals and the shop (`demo_shop.generate_sessions`).
        variant: Of the shop; not of the small one.
        max_steps: The most replies in one visit.
        seed: The run's, from which each step of each visit has its own (shop_env.evaluation.generate.step_seed).
        batch_size: How many visits a BatchAgent plays side by side.
        progress: What to call the run where it tells how far it is; None: it does not.
    """
    shown, changed = msgspec.to_builtins(context or ContextConfig()), msgspec.to_builtins(variant)

    def begin(number: int) -> _OpenVisit:
        return _OpenVisit(TimeLimit(LiveEnv(page_size, variant=changed, context=shown), max_steps), population, number)

    at_once = batch_size if isinstance(agent, BatchAgent) else 1
    with progress_bar(progress, visits, "visits") as advance:
        found = []
        for visit in _side_by_side(agent, begin, visits, at_once, seed):
            found.append(visit)
            advance(1)
    return sorted(found, key=lambda visit: visit.session_id)


class _OpenVisit:
    """A visit under way."""

    def __init__(self, env: gymnasium.Env[Observation, str], population: int, number: int) -> None:
        self._env = env
        self.observation, self._info = env.reset(options={"session_id": visit_id(population, number)})
        self._steps: list[LiveStep] = []
        self._revenue_cents = 0
        self.ending: Ending | None = None
        self.error: str | None = None

    def seed(self, seed: int | None) -> int | None:
        """The seed of the next step, of a run's."""
        return step_seed(seed, self._info["session_id"], len(self._steps))

    def take(self, answer: ReplyOrError) -> None:
        """Goes on with a reply; an exception ends the visit."""
        if isinstance(answer, Exception):
            self.ending, self.error = "error", format_error(answer)
            return
        self.observation, _, terminated, truncated, info = self._env.step(answer)
        self._steps.append(LiveStep(reply=answer, action=info.get("action"), problem=info.get("problem")))
        if terminated:
            self.ending = info["outcome"]
            self._revenue_cents = info.get("revenue_cents", 0)
        elif truncated:
            self.ending = "limit"

    def finished(self) -> LiveVisit:
        assert self.ending is not None
        return LiveVisit(
            session_id=self._info["session_id"],
            user_id=self._info["user_id"],
            steps=tuple(self._steps),
            ending=self.ending,
            error=self.error,
            revenue_cents=self._revenue_cents,
        )


def _side_by_side(
    agent: Agent, begin: Callable[[int], _OpenVisit], visits: int, at_once: int, seed: int | None
) -> Iterator[LiveVisit]:
    """Plays `at_once` visits at a time; where one ends the next begins."""
    waiting = iter(range(visits))
    under_way = [begin(number) for number in islice(waiting, at_once)]
    while under_way:
        observations = [visit.observation for visit in under_way]
        answers = generate_batch(agent, observations, [visit.seed(seed) for visit in under_way])
        for visit, answer in zip(under_way, answers, strict=True):
            visit.take(answer)
        yield from (visit.finished() for visit in under_way if visit.ending is not None)
        going_on = [visit for visit in under_way if visit.ending is None]
        under_way = going_on + [begin(number) for number in islice(waiting, len(under_way) - len(going_on))]
