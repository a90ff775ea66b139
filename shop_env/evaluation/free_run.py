"""Lets an agent walk through the demo shop by itself: ShopLive-v0 -> one LiveVisit per visit.

    LiveEnv ─► observation ─► agent ─► reply ─► LiveEnv … ─► LiveVisit ─► benchmarks.ab

Here, unlike in a replay (evaluation/evaluate.py), each page follows from the agent's own action, a visit is played step
by step; agents that answer batches play many visits side by side. Nothing here is ever scored against a log.
"""

from collections.abc import Generator, Iterator
from itertools import islice
from typing import Literal, TypeVar

import gymnasium
import msgspec
from gymnasium.wrappers import TimeLimit

from replay_sessions.demo_shop.realistic import CONTROL, ShopVariant
from replay_sessions.demo_shop.shop import PageSize
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


Visit = TypeVar("Visit")
VisitUnderWay = Generator[tuple[Observation, int | None], ReplyOrError, Visit]


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
    env_config = {
        "variant": msgspec.to_builtins(variant),
        "context": msgspec.to_builtins(context or ContextConfig()),
    }
    played = (
        _play(TimeLimit(LiveEnv(page_size, **env_config), max_steps), visit_id(population, number), seed)
        for number in range(visits)
    )
    ended = []
    with progress_bar(progress, visits) as advance:
        for visit in play_side_by_side(agent, played, batch_size if isinstance(agent, BatchAgent) else 1):
            ended.append(visit)
            advance(1)
    return sorted(ended, key=lambda visit: visit.session_id)


def _play(env: gymnasium.Env[Observation, str], session_id: str, seed: int | None) -> VisitUnderWay[LiveVisit]:
    """One visit: gives each page with the step's own seed, and goes on with the reply; an exception ends it."""
    observation, info = env.reset(options={"session_id": session_id})
    visit = LiveVisit(session_id=info["session_id"], user_id=info["user_id"], steps=(), ending="limit")
    while True:
        answer = yield observation, step_seed(seed, visit.session_id, len(visit.steps))
        if isinstance(answer, Exception):
            return msgspec.structs.replace(visit, ending="error", error=format_error(answer))
        observation, _, terminated, truncated, info = env.step(answer)
        step = LiveStep(reply=answer, action=info.get("action"), problem=info.get("problem"))
        visit = msgspec.structs.replace(visit, steps=(*visit.steps, step))
        if terminated:
            revenue = info.get("revenue_cents", 0)
            return msgspec.structs.replace(visit, ending=info["outcome"], revenue_cents=revenue)
        if truncated:
            return visit


def play_side_by_side(agent: Agent, visits: Iterator[VisitUnderWay[Visit]], at_once: int) -> Iterator[Visit]:
    """Plays `at_once` visits at a time; where one ends the next begins."""
    under_way = {visit: next(visit) for visit in islice(visits, at_once)}
    while under_way:
        observations, seeds = zip(*under_way.values(), strict=True)
        answers = generate_batch(agent, observations, seeds)
        for visit, answer in zip(list(under_way), answers, strict=True):
            try:
                under_way[visit] = visit.send(answer)
            except StopIteration as ended:
                del under_way[visit]
                yield ended.value
        under_way |= {visit: next(visit) for visit in islice(visits, at_once - len(under_way))}
