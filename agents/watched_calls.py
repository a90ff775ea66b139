"""Calls of an agent under test: each in time, none that ends the process, and nothing changed that it was shown.

The agent runs in one thread of its own, in which it is also made. A thread cannot be ended from outside: one that does
not come back is left to itself, as a daemon, so that the process can end without it.
"""

import copy
import queue
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Any, TypeVar

from shop_env.observation import Observation

__all__ = ["NoAnswer", "TriedToEnd", "WatchedCalls"]

Result = TypeVar("Result")
Task = tuple[Callable[[], Any], Future[Any]]


class NoAnswer(Exception):
    """The agent did not come back in time; its thread is left to itself."""


class TriedToEnd(Exception):
    """The agent raised what no evaluation holds back."""


class WatchedCalls:
    """Runs what an agent is asked.

    Args:
        time_limit_s: For one answer; a call that asks for several has as many times as long.

    Attributes:
        changed: In which call the agent changed an observation; None: in none.
        left: Whether a call did not come back.
    """

    def __init__(self, time_limit_s: float) -> None:
        self.time_limit_s = time_limit_s
        self.changed: str | None = None
        self.left = False
        self._tasks: queue.SimpleQueue[Task | None] = queue.SimpleQueue()
        threading.Thread(target=self._work, daemon=True, name="agent under test").start()

    def run(self, task: Callable[[], Result], answers: int = 1) -> Result:
        """What the task returns or raises.

        Raises:
            NoAnswer: It did not end in time.
            TriedToEnd: It raised SystemExit or the like.
        """
        outcome: Future[Result] = Future()
        self._tasks.put((task, outcome))
        limit_s = self.time_limit_s * max(1, answers)
        try:
            return outcome.result(limit_s)
        except TimeoutError as error:
            if outcome.done():  # the agent's own, or it came at the last moment
                return outcome.result()
            self.left = True
            raise NoAnswer(f"no answer within {limit_s:g} s") from error

    def show(
        self, observations: Sequence[Observation], call: str, ask: Callable[[list[Observation]], Result]
    ) -> Result:
        """What `ask` makes of copies of the observations; notes in which call it changed one."""
        shown = copy.deepcopy(list(observations))
        try:
            return self.run(lambda: ask(shown), len(shown))
        finally:
            if not self.left and self.changed is None and shown != list(observations):
                self.changed = call

    def close(self) -> None:
        """Lets the thread end, unless it is left in a call."""
        self._tasks.put(None)

    def _work(self) -> None:
        while (task := self._tasks.get()) is not None:
            action, outcome = task
            try:
                outcome.set_result(action())
            except Exception as error:
                outcome.set_exception(error)
            except BaseException as error:  # SystemExit and its like pass through what guards an evaluation
                outcome.set_exception(TriedToEnd(f"raised {type(error).__name__}, which ends the whole run"))
