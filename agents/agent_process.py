"""An agent in a process of its own: it sees observations, the train split, and nothing else of the evaluation.

    generate.py ─► AgentProcess.act_each ─► socket ─► agent_worker.py: the agent ─► socket ─► replies

An agent may be a stranger's code. In the evaluator's process it could read the logged actions, change the rows of other
agents, or end the run. The child starts in an empty folder, gets a copy of the train split alone, and is not told where
the store lies or results are written. What it sends is limited in size and time, and whatever goes wrong in it is an
error at its own steps. This does not keep code from searching the disk: `--sandbox` does, where bubblewrap is installed
(docs/leaderboards.md).
"""

import contextlib
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from agents.agent_worker import Failure, Method, Response
from agents.child_process import Child, Limits
from agents.registry import is_own, make_agent
from agents.sandbox import with_absolute_paths
from replay_sessions.foundation.errors import AgentFailed, ShopR1Error
from replay_sessions.schema import Action
from replay_sessions.store import SessionStore
from shop_env.evaluation.generate import AgentSpec, format_error, named_failure
from shop_env.evaluation.protocol import Agent
from shop_env.observation import Observation

MOST_STARTS = 4  # an agent whose process ended that often is not started again


def build_agent(spec: AgentSpec, store: SessionStore | None, limits: Limits | None = None) -> Agent:
    """An agent of ours in this process, somebody else's in one of its own."""
    return make_agent(spec, store=store) if is_own(spec) else make_foreign_agent(spec, store, limits or Limits())


def make_foreign_agent(spec: AgentSpec, store: SessionStore | None, limits: Limits | None) -> Agent:
    """Somebody else's agent; one that cannot be made fails at each step, at no other agent's cost.

    Args:
        limits: Of a process of its own; None: in this process.
    """
    try:
        return make_agent(spec, store=store) if limits is None else AgentProcess(spec, store, limits)
    except (Exception, SystemExit) as error:
        return FailingAgent(str(error) if isinstance(error, ShopR1Error) else format_error(error))


class FailingAgent:
    """Fails at every step, in place of an agent that cannot be made."""

    def __init__(self, reason: str) -> None:
        self._reason = reason

    def reset(self, *, seed: int | None) -> None:
        pass

    def act(self, observation: Observation) -> str:
        raise AgentFailed(self._reason)


class AgentProcess:
    """The agent of a spec in a child process, as a ServedAgent with probabilities.

    Args:
        spec: What to run; paths in it are resolved here, since the child starts elsewhere.
        store: What the agent is evaluated on; the child gets a copy of its train split if the agent wants a store.

    Raises:
        BadConfig: The agent cannot be made.
    """

    def __init__(self, spec: AgentSpec, store: SessionStore | None, limits: Limits | None = None) -> None:
        self._spec = with_absolute_paths(spec)
        self._store = store
        self._limits = limits or Limits()
        self._folder = tempfile.TemporaryDirectory(prefix="agent-", ignore_cleanup_errors=True)
        self._lock = threading.Lock()
        self._starts = 0
        self._child: Child | None = None
        self._ended = ""
        self._fresh = False
        self._one_by_one = False
        self._seed: int | None = None
        try:
            started = self._running().started
        except BaseException:
            self.close()
            raise
        self.concurrency = started.concurrency
        self.replies_in_batches = started.replies_in_batches
        self._gives_probabilities = started.gives_probabilities

    def reset(self, *, seed: int | None = None) -> None:
        self._seed = seed

    def act(self, observation: Observation) -> str:
        (reply,) = self.act_each([observation], seeds=[self._seed])
        if isinstance(reply, Exception):
            raise reply
        return reply

    def act_batch(self, observations: Sequence[Observation], *, seeds: Sequence[int | None]) -> list[str | Exception]:
        return list(self.act_each(observations, seeds=seeds))

    def act_each(
        self, observations: Sequence[Observation], *, seeds: Sequence[int | None]
    ) -> Iterator[str | Exception]:
        """A process that ends or hangs costs the reply under way; a batch that it did not return is run one by one."""
        done, count = 0, len(observations)
        while done < count:
            in_batches = self.replies_in_batches and not self._one_by_one
            end = done + 1 if self._one_by_one else count
            try:
                for response in self._call(
                    "act", observations[done:end], seeds[done:end], end - done if in_batches else 1
                ):
                    if not 1 <= len(response.replies) <= end - done:
                        raise AgentFailed(f"the agent's process sent {len(response.replies)} replies at once")
                    for reply in response.replies:
                        done += 1
                        yield named_failure(reply.text) if isinstance(reply, Failure) else reply
                    if done == end:
                        break
                    self._acknowledge()
            except AgentFailed as failed:
                if in_batches and end - done > 1:
                    self._one_by_one = True
                else:
                    done += 1
                    yield failed

    def probabilities(
        self, observations: Sequence[Observation], *, seeds: Sequence[int | None]
    ) -> Sequence[Mapping[Action, float] | Exception] | None:
        if not self._gives_probabilities:
            return None
        weights = next(self._call("probabilities", observations, seeds, len(observations))).weights
        return (
            weights
            if weights is None
            else [named_failure(pairs.text) if isinstance(pairs, Failure) else dict(pairs) for pairs in weights]
        )

    def ask_anew(self) -> None:
        self._fresh = True
        next(self._call("ask_anew"))

    def remarks(self) -> list[str]:
        if self._child is None:
            return [self._ended] if self._ended else []
        try:
            return [f"it says '{remark[:200]}'" for remark in next(self._call("remarks")).remarks[:9]]
        except AgentFailed:
            return []

    def stop(self) -> None:
        self._end()

    def close(self) -> None:
        if self._child is not None:
            with contextlib.suppress(AgentFailed):
                next(self._call("close"))
        self._end()
        self._folder.cleanup()

    def _call(
        self, method: Method, observations: Sequence[Observation] = (), seeds: Sequence[int | None] = (), count: int = 1
    ) -> Iterator[Response]:
        """The responses to a request, without end; `count` items may take their time before each."""
        with self._lock:
            child = self._running()
        try:
            yield from child.call(method, observations, seeds, self._limits.step_time_s * count)
        except AgentFailed as failed:
            with self._lock:
                if self._child is child:
                    self._ended = str(failed)
                    self._end()
            raise

    def _acknowledge(self) -> None:
        if self._child is not None:
            self._child.acknowledge()

    def _running(self) -> "Child":
        if self._child is None:
            if self._starts == MOST_STARTS:
                raise AgentFailed(f"not run: {self._ended} ({MOST_STARTS} times)")
            self._starts += 1
            self._child = Child(self._spec, self._store, Path(self._folder.name), self._limits)
            if self._fresh:
                next(self._child.call("ask_anew", [], [], self._limits.step_time_s))
        return self._child

    def _end(self) -> None:
        if self._child is not None:
            self._child.kill()
            self._child = None
