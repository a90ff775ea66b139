"""Runs agents: passes observations and seeds to an agent, and returns for each a reply or an exception in its place.

    scored_steps.py ─► generate ─► Answer (reply, probabilities) ─► evaluate.py ─► steps_file.py

In a replay the logged page never depends on the agent's reply, so no step needs the reply to the step before it. But
the history of step t+1 holds the logged action of step t, and an agent that saw both steps at once could copy the
answer. So step t of a session ends before step t+1 starts: steps run in waves, one step of each of `WAVE` sessions.
Probabilities are computed with the reply, before the next wave. Only the project's own language models read all steps
of a session together, which is faster.
"""

import hashlib
import inspect
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from itertools import groupby, islice
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeVar, runtime_checkable

import msgspec

from replay_sessions.foundation.errors import AgentFailed, DeviceFailed
from replay_sessions.foundation.records import Config
from replay_sessions.schema import Action
from shop_env.evaluation.protocol import (
    Agent,
    BatchAgent,
    CuttingAgent,
    ProbabilityAgent,
    PromptCut,
    ServedAgent,
)
from shop_env.evaluation.scored_steps import ScoredStep, StepKey
from shop_env.metrics.likelihood import checked_distribution
from shop_env.observation import Observation

ReplyOrError = str | Exception
Probabilities = Mapping[Action, float]
Seeds = Sequence[int | None]
Item = TypeVar("Item")
Result = TypeVar("Result")
WAVE = 64  # sessions whose next steps are evaluated together
OWN = ("agents.local.", "agents.mixture")  # modules of agents that may see all steps of a session in one call
CHECKPOINT_MARKER = "shop_r1_checkpoint.json"  # the file that makes a folder a checkpoint


def step_seed(seed: int | None, session_id: str, step_index: int) -> int | None:
    """Derives the seed of a step from the run's seed; it does not depend on the other steps or on their order."""
    if seed is None:
        return None
    digest = hashlib.blake2b(f"{seed}:{session_id}:{step_index}".encode(), digest_size=4)
    return int.from_bytes(digest.digest(), "big")


class AgentSpec(Config):
    """An agent to run, as a user types it: `label=target?key=value` (agents.registry.parse_spec)."""

    target: str
    arguments: dict[str, Any] = {}
    label: str

    @property
    def is_checkpoint(self) -> bool:
        return os.path.isfile(os.path.join(self.target, CHECKPOINT_MARKER))  # False too for an invalid path

    def within(self, folder: Path) -> "AgentSpec":
        """Returns the spec with the target in `folder` if that is a checkpoint, else the spec itself."""
        inside = msgspec.structs.replace(self, target=str(folder / self.target))
        return inside if inside.is_checkpoint else self


class Answer(NamedTuple):
    """The answer of an agent at a step.

    Attributes:
        reply: The reply, or the exception in its place.
        probabilities: The probabilities of actions, or the exception in their place; None if they were not requested or
            the agent gives none.
        cut: The part of the pages that the agent did not read; None if it does not report it.
    """

    reply: ReplyOrError
    probabilities: Probabilities | Exception | None = None
    cut: PromptCut | None = None


Generated = tuple[ScoredStep, Answer]


@runtime_checkable
class RemoteAgent(Agent, Protocol):
    """An agent in another process that gives probabilities in the same call as replies (agents/child_process.py)."""

    def answer_batch(
        self, observations: Sequence[Observation], seeds: Seeds, *, probabilities: bool
    ) -> Sequence[Answer]:
        """Answers like the function `answer_batch`."""
        ...


def plan_batches(
    agent: Agent, keys: Sequence[StepKey], batch_size: int, *, weighted: bool = False
) -> list[list[StepKey]]:
    """Groups the steps into batches, each for one call of the agent.

    The batches depend on all steps of the run, so a stopped run continues with the same batches.

    Args:
        keys: All steps of the run.
        batch_size: Steps in one call of the project's own language models; all other agents get waves of fixed size.
        weighted: Whether probabilities are requested too.
    """
    if getattr(agent, "reads_whole_sessions", False) and type(agent).__module__.startswith(OWN):
        return [list(keys[first : first + batch_size]) for first in range(0, len(keys), batch_size)]
    several = isinstance(agent, BatchAgent) or (weighted and isinstance(agent, ProbabilityAgent))
    sessions = (deque(group) for _, group in groupby(keys, key=itemgetter(0)))
    return list(waves(sessions, WAVE if several else 1))


def waves(sessions: Iterator[deque[Item]], width: int) -> Iterator[list[Item]]:
    """Yields lists of the next item of each of `width` sessions; when a session ends, the next one takes its place.

    >>> list(waves(iter([deque("abc"), deque("d"), deque("ef")]), 2))
    [['a', 'd'], ['b', 'e'], ['c', 'f']]
    """
    active = list(islice(sessions, width))
    while active:
        yield [session.popleft() for session in active]
        active = [session for session in active if session]
        active += islice(sessions, width - len(active))


def generate(
    agent: Agent,
    steps: Iterable[ScoredStep],
    batches: Iterable[Sequence[StepKey]],
    *,
    seed: int | None = 0,
    probabilities: bool = False,
) -> Iterator[Generated]:
    """Runs the agent on these steps, batch by batch; yields each step with its answer.

    Args:
        steps: The steps in the order of the store.
        batches: The keys of the steps in batches, from `plan_batches`; an agent with `concurrency` gets single steps.
        seed: The seed of the run, from which each step's seed is derived (`step_seed`).
        probabilities: Whether to get probabilities too from an agent that gives them.
    """

    def run(batch: Sequence[ScoredStep]) -> list[Generated]:
        seeds = [step_seed(seed, *step.key) for step in batch]
        answers = answer_batch(agent, [step.observation for step in batch], seeds, probabilities=probabilities)
        return list(zip(batch, answers, strict=True))

    concurrency: int = getattr(agent, "concurrency", 1)
    if concurrency == 1 or not isinstance(agent, BatchAgent):
        for batch in _gathered(steps, batches):
            yield from run(batch)
        return
    sessions = (deque([step] for step in group) for _, group in groupby(steps, key=lambda step: step.key[0]))
    try:
        for results in map_in_threads(run, sessions, concurrency):
            yield from results
    except BaseException:  # mostly Ctrl-C; the process ends only when its threads end
        if isinstance(agent, ServedAgent):
            agent.stop()
        raise


def _gathered(steps: Iterable[ScoredStep], batches: Iterable[Sequence[StepKey]]) -> Iterator[list[ScoredStep]]:
    """Yields the steps of each batch, and holds back the steps of later batches."""
    coming, waiting = iter(steps), dict[StepKey, ScoredStep]()
    for batch in batches:
        while not waiting.keys() >= set(batch):
            step = next(coming)
            waiting[step.key] = step
        yield [waiting.pop(key) for key in batch]


def map_in_threads(call: Callable[[Item], Result], queues: Iterator[deque[Item]], threads: int) -> Iterator[Result]:
    """Calls a function with each item in threads, and yields results as calls end; a queue's items run in order."""
    pool = ThreadPoolExecutor(threads)
    running: dict[Future[Result], deque[Item]] = {}
    try:
        for queue in islice(queues, threads):
            running[pool.submit(call, queue.popleft())] = queue
        while running:
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                queue = running.pop(future) or next(queues, deque())
                if queue:
                    running[pool.submit(call, queue.popleft())] = queue
                yield future.result()
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def answer_batch(
    agent: Agent, observations: Sequence[Observation], seeds: Seeds, *, probabilities: bool
) -> Sequence[Answer]:
    """Returns the agent's answer to each observation; a step with a failed reply gets no probabilities."""
    if isinstance(agent, RemoteAgent):
        return agent.answer_batch(observations, seeds, probabilities=probabilities)
    replies = generate_batch(agent, observations, seeds)
    cuts = agent.prompt_cuts(observations) if isinstance(agent, CuttingAgent) else [None] * len(replies)
    replied = [number for number, reply in enumerate(replies) if isinstance(reply, str)]
    if not (probabilities and replied and isinstance(agent, ProbabilityAgent)):
        return [Answer(reply, cut=cut) for reply, cut in zip(replies, cuts, strict=True)]
    seen, used = [observations[number] for number in replied], [seeds[number] for number in replied]
    by_number = dict(zip(replied, probabilities_batch(agent, seen, used), strict=True))
    return [
        Answer(reply, by_number.get(number), cut) for number, (reply, cut) in enumerate(zip(replies, cuts, strict=True))
    ]


def probabilities_batch(
    agent: ProbabilityAgent, observations: Sequence[Observation], seeds: Seeds
) -> list[Probabilities | Exception | None]:
    """Returns the agent's probabilities of each page's actions, the exception in their place, or None."""
    return list(map(_checked, _call(agent.probabilities, observations, seeds, (Mapping, Exception, type(None)))))


def _checked(probabilities: Probabilities | Exception | None) -> Probabilities | Exception | None:
    """Returns the probabilities if they form a distribution, else the error: a line with NaN would be unreadable."""
    if probabilities is None or isinstance(probabilities, Exception):
        return probabilities
    try:
        checked_distribution(probabilities)
    except Exception as error:
        return error
    return {action: float(probability) for action, probability in probabilities.items()}


def generate_batch(agent: Agent, observations: Sequence[Observation], seeds: Seeds) -> list[ReplyOrError]:
    """Returns for each observation the reply, or the exception in its place.

    A call that raises, instead of returning the exception in its step's place, fails for all of its steps. Its other
    replies are lost, because running the steps again one by one could cost twice.
    """

    def act(observations: Sequence[Observation], seeds: Seeds) -> list[object]:
        agent.reset(seed=seeds[0])
        return [agent.act(observations[0])]

    kinds = (str, Exception)
    if isinstance(agent, BatchAgent):
        return _call(agent.act_batch, observations, seeds, kinds) if observations else []
    return [_call(act, [observation], [seed], kinds)[0] for observation, seed in zip(observations, seeds, strict=True)]


def _call(
    method: Callable[..., Sequence[Any] | None],
    observations: Sequence[Observation],
    seeds: Seeds,
    kinds: tuple[type[Any], ...],
) -> list[Any]:
    """Calls a method with several observations; returns for each a result of one of these types, or an exception."""
    try:
        returned = method(observations, seeds=seeds) if _takes_seeds(method) else method(observations)
        results = [None] * len(observations) if returned is None else list(returned)
        if len(results) != len(observations):
            raise ValueError(f"{method.__name__} gave {len(results)} answers to {len(observations)} observations")
    except (KeyboardInterrupt, DeviceFailed):
        raise
    except BaseException as error:
        # `except Exception` does not catch SystemExit and CancelledError, which are errors of their steps too.
        failure = error if isinstance(error, Exception) else named_failure(format_error(error))
        return [failure] * len(observations)
    expected = "the text of a reply" if str in kinds else "probabilities"
    return [
        result
        if isinstance(result, kinds)
        else TypeError(f"{method.__name__} returned {type(result).__name__}, not {expected}")
        for result in results
    ]


def _takes_seeds(method: Callable[..., Any]) -> bool:
    parameters = inspect.signature(method).parameters.values()
    return any(parameter.name == "seeds" or parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in parameters)


def format_error(error: BaseException) -> str:
    """Formats an exception for records in at most 500 characters; never raises, whatever its message is."""
    kind = type(error).__name__
    try:
        text = f"{kind}: {error}"
    except Exception as unprintable:
        text = f"{kind}: its message cannot be formatted ({type(unprintable).__name__})"
    return text.encode("utf-8", "backslashreplace").decode()[:500]


def named_failure(text: str) -> AgentFailed:
    """Builds an AgentFailed that `format_error` formats as this text.

    >>> format_error(named_failure("SystemExit: 0"))
    'SystemExit: 0'
    """
    kind, _, message = text.partition(": ")
    failure: AgentFailed = type(kind, (AgentFailed,), {})(message) if kind.isidentifier() else AgentFailed(text)
    return failure
