"""Runs an agent on logged steps in an order in which no answer is seen early, and returns an answer to each.

    scored_steps.py ─► waves.py ─► answering.py ─► Answer (reply, probabilities) ─► evaluate.py ─► steps_file.py

In a replay the logged page never depends on the agent's reply, so no step needs the reply to the step before it. But
the history of step t+1 holds the logged action of step t, and an agent that saw both steps at once could copy the
answer. So step t of a session ends before step t+1 starts: steps run in waves, one step of each of `WAVE` sessions.
Probabilities are computed with the reply, before the next wave. Only the project's own language models read all steps
of a session together, which is faster.
"""

import hashlib
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from itertools import groupby, islice
from operator import itemgetter
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from replay_sessions.foundation.records import Config
from shop_env.evaluation.answering import Answer, AnsweringAgent, call_agent
from shop_env.evaluation.scored_steps import ScoredStep, StepKey

Generated = tuple[ScoredStep, Answer]
Item = TypeVar("Item")
Result = TypeVar("Result")
WAVE = 64  # sessions whose next steps are evaluated together
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


def plan_batches(agent: AnsweringAgent, keys: Sequence[StepKey], batch_size: int) -> list[list[StepKey]]:
    """Groups the steps into batches, each for one call of the agent.

    The batches depend on all steps of the run, so a stopped run continues with the same batches.

    Args:
        keys: All steps of the run.
        batch_size: Steps in one call of an agent that reads whole sessions; all others get waves of fixed size.
    """
    if agent.reads_whole_sessions:
        return [list(keys[first : first + batch_size]) for first in range(0, len(keys), batch_size)]
    sessions = (deque(group) for _, group in groupby(keys, key=itemgetter(0)))
    return list(waves(sessions, WAVE if agent.takes_batches else 1))


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
    agent: AnsweringAgent,
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
        answers = call_agent(agent, [step.observation for step in batch], seeds, probabilities=probabilities)
        return list(zip(batch, answers, strict=True))

    if agent.concurrency == 1:
        for batch in _gathered(steps, batches):
            yield from run(batch)
        return
    sessions = (deque([step] for step in group) for _, group in groupby(steps, key=lambda step: step.key[0]))
    try:
        for results in map_in_threads(run, sessions, agent.concurrency):
            yield from results
    except BaseException:  # mostly Ctrl-C; the process ends only when its threads end
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
