"""The one way to ask an agent: observations and seeds go in, for each a reply or the exception in its place comes out.

    agents/scored_steps.py ─► ask_all ─► step and answer, as they come ─► agents/evaluate.py, benchmarks/leaderboard

The logged page never depends on the agent's action (a replay shows what the shopper saw, whatever the agent answered).
So no step waits for the reply to the one before it, and a batch may mix steps of many sessions.
"""

import hashlib
import inspect
import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from itertools import islice
from typing import Any, TypeVar

from agents.protocol import Agent, BatchAgent, ServedAgent
from agents.scored_steps import ScoredStep
from shop_env.observation import Observation

__all__ = [
    "Answer",
    "ask",
    "ask_all",
    "ask_each",
    "error_in_words",
    "in_threads",
    "step_seed",
    "step_seeds",
    "steps_at_once",
]

logger = logging.getLogger(__name__)

Answer = str | Exception
Seeds = Sequence[int | None]
Batch = list[ScoredStep]
Item = TypeVar("Item")
Result = TypeVar("Result")


def step_seed(seed: int | None, session_id: str, step_index: int) -> int | None:
    """The seed of one step: the same whatever else is asked, and in which order."""
    if seed is None:
        return None
    digest = hashlib.blake2b(f"{seed}:{session_id}:{step_index}".encode(), digest_size=4)
    return int.from_bytes(digest.digest(), "big")


def step_seeds(seed: int | None, steps: Iterable[ScoredStep]) -> list[int | None]:
    """The seed of each step."""
    return [step_seed(seed, *step.key) for step in steps]


def ask_all(
    agent: Agent, steps: Iterable[ScoredStep], *, seed: int | None = 0, batch_size: int = 64
) -> Iterator[tuple[ScoredStep, Answer]]:
    """Asks about every step; each comes with its answer as soon as that is there. Ctrl-C goes through.

    Args:
        seed: The run's; each step has one of its own (`step_seed`).
        batch_size: The most steps in one `act_batch`.
    """
    if not isinstance(agent, BatchAgent):
        for step in steps:
            yield step, _ask_one(agent, step.observation, step_seed(seed, *step.key))
        return

    def answer(batch: Batch) -> list[tuple[ScoredStep, Answer]]:
        answers = ask(agent, [step.observation for step in batch], step_seeds(seed, batch))
        return list(zip(batch, answers, strict=True))

    calls_at_once = _calls_at_once(agent)
    remaining, size = iter(steps), steps_at_once(agent, batch_size)
    batches = iter(lambda: list(islice(remaining, size)), [])
    if calls_at_once == 1:
        for batch in batches:
            yield from answer(batch)
        return
    try:
        for answered in in_threads(answer, batches, calls_at_once):
            yield from answered
    except BaseException:  # Ctrl-C, most often: the process ends when its threads do
        if isinstance(agent, ServedAgent):
            agent.stop()
        raise


def steps_at_once(agent: Agent, batch_size: int) -> int:
    """How many steps one call asks this agent about."""
    return batch_size if isinstance(agent, BatchAgent) and _calls_at_once(agent) == 1 else 1


def _calls_at_once(agent: Agent) -> int:
    calls: int = getattr(agent, "concurrency", 1)
    return calls


def in_threads(call: Callable[[Item], Result], items: Iterator[Item], calls_at_once: int) -> Iterator[Result]:
    """What calls with each item give, as they end; where one ends the next begins."""
    pool = ThreadPoolExecutor(calls_at_once)
    try:
        running = {pool.submit(call, item) for item in islice(items, calls_at_once)}
        while running:
            ended, running = wait(running, return_when=FIRST_COMPLETED)
            running |= {pool.submit(call, item) for item in islice(items, len(ended))}
            for future in ended:
                yield future.result()
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def ask(agent: Agent, observations: Sequence[Observation], seeds: Seeds) -> list[Answer]:
    """For each observation the reply, or the exception in its place: one failure costs one step."""
    if isinstance(agent, BatchAgent):
        answers = ask_each(agent.act_batch, observations, seeds, str)
        return [_wrong_type(agent.act_batch, None, str)] * len(observations) if answers is None else answers
    return [_ask_one(agent, observation, seed) for observation, seed in zip(observations, seeds, strict=True)]


def ask_each(
    method: Callable[..., Sequence[Any] | None], observations: Sequence[Observation], seeds: Seeds, kind: type[Any]
) -> list[Any] | None:
    """What a method gives for each of several observations, a `kind` or an exception; None where it gives None.

    A method that raises (instead of returning the exception in its item's place) fails for all: what it had found for
    the others is lost, and asking them again one by one would pay for them twice.
    """
    try:
        found = method(observations, seeds=seeds) if _takes_seeds(method) else method(observations)
        if found is None:
            return None
        answers = list(found)
        if len(answers) != len(observations):
            raise ValueError(f"{method.__name__} gave {len(answers)} answers to {len(observations)} observations")
    except Exception as error:
        logger.debug("an agent failed on %d steps at once", len(observations), exc_info=True)
        return [error] * len(observations)
    return [
        answer if isinstance(answer, (kind, Exception)) else _wrong_type(method, answer, kind) for answer in answers
    ]


def _ask_one(agent: Agent, observation: Observation, seed: int | None) -> Answer:
    try:
        agent.reset(seed=seed)
        reply: object = agent.act(observation)
    except Exception as error:
        logger.debug("an agent failed at step %d", observation["step"], exc_info=True)
        return error
    return reply if isinstance(reply, str) else _wrong_type(agent.act, reply, str)


def _takes_seeds(method: Callable[..., Any]) -> bool:
    parameters = inspect.signature(method).parameters
    return "seeds" in parameters or any(one.kind is inspect.Parameter.VAR_KEYWORD for one in parameters.values())


def _wrong_type(method: Callable[..., Any], answer: object, kind: type) -> TypeError:
    wanted = "the text of a reply" if kind is str else f"a {kind.__name__}"
    return TypeError(f"{method.__name__} returned {type(answer).__name__}, not {wanted}")


def error_in_words(error: Exception) -> str:
    """What a record keeps of an exception."""
    return f"{type(error).__name__}: {error}"[:500]
