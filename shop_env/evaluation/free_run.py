"""Runs an agent in the demo shop by itself: ShopLive-v0 -> one LiveVisit per visit.

    LiveEnv ─► observation ─► agent ─► reply ─► LiveEnv … ─► LiveVisit ─► benchmarks.ab

Unlike in a replay (evaluation/evaluate.py), each page follows from the agent's action, so a visit runs step by step.
Agents that answer batches take part in many visits at the same time. Visits are never scored against a log.
"""

from collections.abc import Generator
from itertools import islice
from typing import Literal

import gymnasium
import msgspec
from gymnasium.wrappers import TimeLimit

from replay_sessions.demo_shop.realistic import CONTROL, ShopVariant
from replay_sessions.demo_shop.shop import PageSize
from replay_sessions.foundation.progress import progress_bar
from replay_sessions.foundation.records import Record
from shop_env.evaluation.answering import NoReply, adapt_agent, call_agent
from shop_env.evaluation.protocol import Agent
from shop_env.evaluation.waves import WAVE, step_seed
from shop_env.live import LiveEnv, visit_id
from shop_env.observation import Observation


class LiveVisit(Record, omit_defaults=True):
    """One visit of an agent to the shop.

    Attributes:
        replies: The agent's replies, in order.
        ending: How the visit ended. `limit` means that the agent neither bought nor terminated within the most replies
            allowed; `error` means that it failed to answer, and such a visit is counted but not compared.
        error: Why the agent failed; None if it did not.
        revenue_cents: The price of a purchase, in shops with prices; else 0.
    """

    session_id: str
    user_id: str
    replies: tuple[str, ...] = ()
    ending: Literal["purchase", "terminate", "limit", "error"] = "limit"
    error: str | None = None
    revenue_cents: int = 0


def free_run(
    agent: Agent,
    visits: int,
    *,
    population: int,
    page_size: PageSize = "small",
    variant: ShopVariant = CONTROL,
    max_steps: int = 20,
    seed: int | None = 0,
    progress: str | None = None,
) -> list[LiveVisit]:
    """Runs the agent through the first visits of a population of shoppers, each to its end.

    Args:
        visits: Number of visits.
        population: The seed of the shoppers, their goals and the shop (`demo_shop.generate_sessions`).
        page_size: The shop (shop_env.live.LiveEnv).
        variant: A change to the shop's pages; the small shop has none.
        max_steps: The largest number of replies in one visit.
        seed: The seed of the run, from which the seed of each step of each visit is derived
            (shop_env.evaluation.waves.step_seed).
        progress: The label of the progress bar; None means no bar.

    Returns:
        The visits, ordered by session_id.
    """
    env_config = {"variant": msgspec.to_builtins(variant)}
    played = (
        _play(TimeLimit(LiveEnv(page_size, **env_config), max_steps), visit_id(population, number), seed)
        for number in range(visits)
    )
    ended: list[LiveVisit] = []
    answering = adapt_agent(agent)
    at_once = WAVE if answering.takes_batches else 1
    under_way = {visit: next(visit) for visit in islice(played, at_once)}
    with progress_bar(progress, visits) as advance:
        while under_way:
            observations, seeds = zip(*under_way.values(), strict=True)
            answers = call_agent(answering, observations, seeds)
            for visit, (reply, *_) in zip(list(under_way), answers, strict=True):
                try:
                    under_way[visit] = visit.send(reply)
                except StopIteration as stopped:
                    del under_way[visit]
                    ended.append(stopped.value)
                    advance(1)
            under_way |= {visit: next(visit) for visit in islice(played, at_once - len(under_way))}
    return sorted(ended, key=lambda visit: visit.session_id)


def _play(
    env: gymnasium.Env[Observation, str], session_id: str, seed: int | None
) -> Generator[tuple[Observation, int | None], str | NoReply, LiveVisit]:
    """Runs one visit: yields each observation with the step's seed, and receives the reply; a missing one ends it."""
    observation, info = env.reset(options={"session_id": session_id})
    visit = LiveVisit(session_id=info["session_id"], user_id=info["user_id"])
    while True:
        reply = yield observation, step_seed(seed, visit.session_id, len(visit.replies))
        if isinstance(reply, NoReply):
            return msgspec.structs.replace(visit, ending="error", error=reply.text)
        observation, _, terminated, truncated, info = env.step(reply)
        visit = msgspec.structs.replace(visit, replies=(*visit.replies, reply))
        if terminated:
            revenue = info.get("revenue_cents", 0)
            return msgspec.structs.replace(visit, ending=info["outcome"], revenue_cents=revenue)
        if truncated:
            return visit
