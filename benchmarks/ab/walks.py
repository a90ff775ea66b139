"""Simulates visits to the shop as it is and to its variants, by the known shoppers or by agents that learnt from logs.

Visit n has the same shopper with the same need in every variant, and each choice has its own seed. So the outcomes of
two variants are paired. lab.py saves the outcomes in files, and does not repeat the visits of a file that exists.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec
import numpy as np

from benchmarks.ab.config import AGAIN, VARIANTS
from replay_sessions.demo_shop.shop import PageSize
from shop_env.evaluation.answering import Answer, AnsweringAgent, Seeds
from shop_env.evaluation.free_run import LiveVisit, free_run
from shop_env.evaluation.protocol import Agent
from shop_env.evaluation.waves import step_seed
from shop_env.metrics.clustered_errors import Codes, Floats
from shop_env.observation import Observation

PAGE_SIZE: PageSize = "compact"
OTHER_NUMBERS = 1_000_000  # added to the seed of the visits to `A_again`


class VisitOutcome(msgspec.Struct, frozen=True, gc=False):
    """The outcome of a visit.

    Attributes:
        steps: Number of replies, including the last.
        dollars: Price of what was bought, without shipping.
        failed: Whether the agent gave no reply at some step, so that the outcome is unknown.
        log_ratios: Log-likelihood of the visit under each refit minus that under the agent, in nats; empty for an agent
            without refits.
    """

    user_id: str
    bought: bool
    steps: int
    dollars: float
    failed: bool = False
    log_ratios: tuple[float, ...] = ()


class Outcomes:
    """The outcomes of visits as arrays, in the order of the visits.

    Attributes:
        users: The number of each visit's shopper, (visits,).
        failed: True for visits with an unknown outcome, (visits,).
        log_ratios: Log-likelihood of each visit under each refit minus that under the agent, (visits, refits).
    """

    def __init__(self, visits: Iterable[VisitOutcome]) -> None:
        self.visits = list(visits)
        self.users: Codes = np.unique([visit.user_id for visit in self.visits], return_inverse=True)[1]
        self.failed = np.array([visit.failed for visit in self.visits])
        self.log_ratios: Floats = np.array([visit.log_ratios for visit in self.visits], dtype=np.float64)

    def measure(self, name: str) -> Floats:
        """Returns `bought`, `steps` or `dollars` of each visit, (visits,)."""
        return np.array([getattr(visit, name) for visit in self.visits], dtype=np.float64)


def walk(agent: Agent, label: str, variant: str, *, visits: int, population: int, max_steps: int) -> list[VisitOutcome]:
    """Simulates an agent's visits in the place of a population's shoppers and returns their outcomes."""
    seed = population + OTHER_NUMBERS * (variant == AGAIN)
    if getattr(agent, "refits", 0):
        agent = _Refitted(agent)
    walked = free_run(
        agent,
        visits,
        population=population,
        page_size=PAGE_SIZE,
        variant=VARIANTS[variant],
        max_steps=max_steps,
        seed=seed,
        progress=f"{label}, {variant}",
    )
    return [
        VisitOutcome(
            user_id=visit.user_id,
            bought=visit.ending == "purchase",
            steps=len(visit.replies),
            dollars=visit.revenue_cents / 100,
            failed=visit.ending == "error",
            log_ratios=agent.log_ratios(visit, seed) if isinstance(agent, _Refitted) else (),
        )
        for visit in walked
    ]


class _Refitted(AnsweringAgent):
    """An agent with refits (a bootstrap), which records how likely each refit makes its replies."""

    def __init__(self, agent: Any) -> None:
        self._agent = agent
        self._ratios: dict[tuple[int | None, str], Floats] = {}  # log-ratios by the seed and the reply of a step

    def answer(self, observations: Sequence[Observation], seeds: Seeds, probabilities: bool) -> list[Answer]:
        replies: list[str] = self._agent.act_batch(observations, seeds=seeds)
        ratios = self._agent.log_ratios(observations, replies)
        self._ratios.update(zip(zip(seeds, replies, strict=True), ratios, strict=True))
        return list(map(Answer, replies))

    def log_ratios(self, visit: LiveVisit, seed: int) -> tuple[float, ...]:
        """Returns the log-ratio of each refit, summed over the steps of a visit, (refits,)."""
        keys = [(step_seed(seed, visit.session_id, index), reply) for index, reply in enumerate(visit.replies)]
        return tuple(np.sum([self._ratios[key] for key in keys], axis=0).round(5).tolist())
