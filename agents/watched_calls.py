"""Calls of an agent under test: with a time limit, no way to end the process, and on copies of the observations.

The agent runs in one thread of its own, in which it is also made. A thread cannot be ended from outside: one that does
not return is abandoned as a daemon, so that the process can end without it (an executor would wait for it).
"""

import copy
import queue
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Any, TypeVar

from shop_env.observation import Observation

Result = TypeVar("Result")


class NoReply(Exception):
    """The agent did not return in time; its thread is abandoned."""


class TriedToExit(Exception):
    """The agent raised what no evaluation catches."""


class WatchedCalls:
    """Runs the calls of an agent.

    Args:
        time_limit_s: For one reply; a call for several has as many times as long.

    Attributes:
        changed: The call in which the agent changed an observation; None: in none.
        left_running: Whether a call did not return.
    """

    def __init__(self, time_limit_s: float) -> None:
        self.time_limit_s = time_limit_s
        self.changed: str | None = None
        self.left_running = False
        self._tasks: queue.SimpleQueue[tuple[Callable[[], Any], Future[Any]] | None] = queue.SimpleQueue()
        threading.Thread(target=self._work, daemon=True, name="agent under test").start()

    def run(self, task: Callable[[], Result], replies: int = 1) -> Result:
        """What the task returns or raises.

        Raises:
            NoReply: It did not end in time.
            TriedToExit: It raised SystemExit or the like.
        """
        outcome: Future[Result] = Future()
        self._tasks.put((task, outcome))
        limit_s = self.time_limit_s * max(1, replies)
        try:
            return outcome.result(limit_s)
        except TimeoutError as error:
            if outcome.done():  # the agent's own, or it came at the last moment
                return outcome.result()
            self.left_running = True
            raise NoReply(f"no reply within {limit_s:g} s") from error

    def show(
        self, observations: Sequence[Observation], call: str, task: Callable[[list[Observation]], Result]
    ) -> Result:
        """What the task makes of copies of the observations; notes the call if it changes one."""
        copies = copy.deepcopy(list(observations))
        try:
            return self.run(lambda: task(copies), len(copies))
        finally:
            if not self.left_running and self.changed is None and copies != list(observations):
                self.changed = call

    def close(self) -> None:
        """Lets the thread end, unless a call has not returned."""
        self._tasks.put(None)

    def _work(self) -> None:
        while (task := self._tasks.get()) is not None:
            call, outcome = task
            try:
                outcome.set_result(call())
            except Exception as error:
                outcome.set_exception(error)
            except BaseException as error:  # SystemExit and the like pass through what guards an evaluation
                outcome.set_exception(TriedToExit(f"raised {type(error).__name__}, which ends the whole run"))
