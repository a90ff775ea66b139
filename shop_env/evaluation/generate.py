"""The only way to run an agent: observations and seeds go in; for each comes a reply or the exception in its place.

    scored_steps.py ─► generate_replies, compute_probabilities ─► (step, result) ─► evaluate.py ─► reply_cache.py

The logged page never depends on the agent's action (a replay shows what the shopper saw, whatever the agent replied).
So no step waits for the reply to the one before it, and a batch may mix steps of many sessions.
"""

import hashlib
import inspect
import logging
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from replay_sessions.foundation.errors import AgentFailed
from replay_sessions.schema import Action
from shop_env.evaluation.protocol import Agent, BatchAgent, ProbabilityAgent, ServedAgent
from shop_env.evaluation.scored_steps import ScoredStep
from shop_env.observation import Observation

logger = logging.getLogger(__name__)

ReplyOrError = str | Exception
Probabilities = Mapping[Action, float]
Seeds = Sequence[int | None]
Item = TypeVar("Item")
Result = TypeVar("Result")
NO_PROBABILITIES = "the agent gave probabilities at other steps, and none here"
CHECKPOINT_MARKER = "shop_r1_checkpoint.json"  # the file that makes a folder a checkpoint


def step_seed(seed: int | None, session_id: str, step_index: int) -> int | None:
    """The seed of one step: it does not depend on which other steps are run, or in which order."""
    if seed is None:
        return None
    digest = hashlib.blake2b(f"{seed}:{session_id}:{step_index}".encode(), digest_size=4)
    return int.from_bytes(digest.digest(), "big")


class AgentSpec(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What to run, as typed by a user: `label=target?key=value` (agents.registry.parse_spec)."""

    target: str
    arguments: dict[str, Any] = {}
    label: str

    @property
    def is_checkpoint(self) -> bool:
        return os.path.isfile(os.path.join(self.target, CHECKPOINT_MARKER))  # False too for what no path can be

    def within(self, folder: Path) -> "AgentSpec":
        """The same, of a checkpoint that is named by its folder within a training run."""
        inside = msgspec.structs.replace(self, target=str(folder / self.target))
        return inside if inside.is_checkpoint else self


class LazyAgent:
    """An agent that is built when it is first needed: one whose replies are all cached never is."""

    def __init__(self, build: Callable[[], Agent]) -> None:
        self._build = build
        self._agent: Agent | None = None

    def get(self) -> Agent:
        if self._agent is None:
            self._agent = self._build()
        return self._agent

    def close(self) -> list[str]:
        """Ends the agent; returns what a ServedAgent reports of its replies."""
        if not isinstance(self._agent, ServedAgent):
            return []
        remarks = self._agent.remarks()
        self._agent.close()
        return remarks


def generate_replies(
    agent: Agent, steps: Iterable[ScoredStep], *, seed: int | None = 0, batch_size: int = 64
) -> Iterator[tuple[ScoredStep, ReplyOrError]]:
    """Runs the agent on every step; each comes with its reply as soon as that is there. Ctrl-C goes through.

    Args:
        seed: The run's; each step has one of its own (`step_seed`).
        batch_size: The most steps in one `act_batch`.
    """

    def run(batch: list[ScoredStep]) -> list[tuple[ScoredStep, ReplyOrError]]:
        replies = generate_batch(agent, [step.observation for step in batch], _step_seeds(seed, batch))
        return list(zip(batch, replies, strict=True))

    batches = batched(steps, effective_batch_size(agent, batch_size))
    concurrency = _concurrency(agent)
    if concurrency == 1 or not isinstance(agent, BatchAgent):
        for batch in batches:
            yield from run(batch)
        return
    try:
        for results in map_in_threads(run, batches, concurrency):
            yield from results
    except BaseException:  # Ctrl-C, most often: the process ends when its threads do
        if isinstance(agent, ServedAgent):
            agent.stop()
        raise


def compute_probabilities(
    agent: ProbabilityAgent, steps: Iterable[ScoredStep], *, seed: int | None = 0, batch_size: int = 64
) -> Iterator[tuple[ScoredStep, Probabilities | Exception]]:
    """For each step the agent's probabilities, or what it raised; nothing where the agent gives no probabilities.

    An agent that gives them at some steps must give them at all, or it would choose what it is judged by.

    Args:
        seed: The run's; a step's own is the one of its reply.
        batch_size: Steps in one call.
    """
    gave_some = False
    for batch in batched(steps, batch_size):
        observations = [step.observation for step in batch]
        results = call_batched(agent.probabilities, observations, _step_seeds(seed, batch), Mapping)
        if results is None and not gave_some:
            return
        gave_some = True
        missing = AgentFailed(NO_PROBABILITIES)
        yield from zip(batch, [missing] * len(batch) if results is None else results, strict=True)


def effective_batch_size(agent: Agent, batch_size: int) -> int:
    """How many steps one call of this agent takes."""
    return batch_size if isinstance(agent, BatchAgent) and _concurrency(agent) == 1 else 1


def _concurrency(agent: Agent) -> int:
    concurrency: int = getattr(agent, "concurrency", 1)
    return concurrency


def _step_seeds(seed: int | None, steps: Iterable[ScoredStep]) -> list[int | None]:
    return [step_seed(seed, *step.key) for step in steps]


def batched(items: Iterable[Item], size: int) -> Iterator[list[Item]]:
    """Lists of so many items each, the last one shorter."""
    remaining = iter(items)
    return iter(lambda: list(islice(remaining, size)), [])


def map_in_threads(call: Callable[[Item], Result], items: Iterator[Item], threads: int) -> Iterator[Result]:
    """The results of calls with each item, as they end; where one ends the next begins."""
    pool = ThreadPoolExecutor(threads)
    try:
        running = {pool.submit(call, item) for item in islice(items, threads)}
        while running:
            ended, running = wait(running, return_when=FIRST_COMPLETED)
            running |= {pool.submit(call, item) for item in islice(items, len(ended))}
            for future in ended:
                yield future.result()
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def generate_batch(agent: Agent, observations: Sequence[Observation], seeds: Seeds) -> list[ReplyOrError]:
    """For each observation the reply, or the exception in its place: one failure costs one step."""
    if isinstance(agent, BatchAgent):
        replies = call_batched(agent.act_batch, observations, seeds, str)
        return [_wrong_type(agent.act_batch, None, str)] * len(observations) if replies is None else replies
    return [_act(agent, observation, seed) for observation, seed in zip(observations, seeds, strict=True)]


def call_batched(
    method: Callable[..., Sequence[Any] | None], observations: Sequence[Observation], seeds: Seeds, kind: type[Any]
) -> list[Any] | None:
    """The results of a method for several observations, each a `kind` or an exception; None where it returns None.

    A method that raises (instead of returning the exception in its item's place) fails for all: what it had for the
    others is lost, and running them again one by one would pay for them twice.
    """
    try:
        returned = method(observations, seeds=seeds) if _takes_seeds(method) else method(observations)
        if returned is None:
            return None
        results = list(returned)
        if len(results) != len(observations):
            raise ValueError(f"{method.__name__} gave {len(results)} answers to {len(observations)} observations")
    except Exception as error:
        logger.debug("an agent failed on %d steps at once", len(observations), exc_info=True)
        return [error] * len(observations)
    return [
        result if isinstance(result, (kind, Exception)) else _wrong_type(method, result, kind) for result in results
    ]


def _act(agent: Agent, observation: Observation, seed: int | None) -> ReplyOrError:
    try:
        agent.reset(seed=seed)
        reply: object = agent.act(observation)
    except Exception as error:
        logger.debug("an agent failed at step %d", observation["step"], exc_info=True)
        return error
    return reply if isinstance(reply, str) else _wrong_type(agent.act, reply, str)


def _takes_seeds(method: Callable[..., Any]) -> bool:
    parameters = inspect.signature(method).parameters.values()
    return any(parameter.name == "seeds" or parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in parameters)


def _wrong_type(method: Callable[..., Any], result: object, kind: type) -> TypeError:
    expected = "the text of a reply" if kind is str else f"a {kind.__name__}"
    return TypeError(f"{method.__name__} returned {type(result).__name__}, not {expected}")


def format_error(error: Exception) -> str:
    """An exception as records hold it."""
    return f"{type(error).__name__}: {error}"[:500]
