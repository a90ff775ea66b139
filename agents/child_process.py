"""Runs an agent of a user in a child process, so that its failures are errors of steps and not of the run.

    waves.py ─► ForeignAgent ─► agents/worker.py: the agent ─► replies and probabilities, as lines of JSON

If an agent raises, ends its process or does not reply in time, the requested steps are errors and the run continues.
This protects a run from mistakes. It does not stop code that looks for the answers on the disk or the network: run
untrusted code in a container, on a store that its authors do not have.
"""

import os
import signal
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

import msgspec

from agents.catalogue import is_own
from agents.registry import make_agent
from agents.worker import AgentAnswer, Request, Response, Start, Started, send
from replay_sessions.foundation.child_environment import environment_without_keys
from replay_sessions.foundation.errors import AgentFailed
from replay_sessions.store import SessionStore
from shop_env.evaluation.answering import Answer, AnsweringAgent, NoReply, Seeds
from shop_env.evaluation.protocol import Agent
from shop_env.evaluation.waves import AgentSpec
from shop_env.observation import ContextConfig, Observation

Message = TypeVar("Message", bound=msgspec.Struct)
START_LIMIT_S = STEP_LIMIT_S = 600.0
MOST_STARTS = 4  # of the process of one agent; then its steps fail


def build_agent(
    spec: AgentSpec,
    store: SessionStore | None,
    context: ContextConfig,
    step_limit_s: float = STEP_LIMIT_S,
    *,
    trusted: bool = False,
) -> Agent:
    """Builds an agent of this project in this process, and any other agent in a child process.

    If an agent in a child process cannot be built, each of its steps fails, and other agents are not affected.

    Args:
        step_limit_s: The longest time for one reply, in seconds; a call for n replies may take n times as long.
        trusted: Whether an agent of a user may read whole sessions (AnsweringAgent).
    """
    if is_own(spec):
        return make_agent(spec, store=store, context=context)
    worker = Worker(spec, store, context, step_limit_s)
    with suppress(AgentFailed):
        worker.start()
    return ForeignAgent(worker, trusted=trusted)


class ForeignAgent(AnsweringAgent):
    """An agent that gets its replies and probabilities from a worker."""

    def __init__(self, worker: "Worker", *, trusted: bool = False) -> None:
        self._worker = worker
        self.takes_batches = worker.agent.takes_batches
        self.reads_whole_sessions = trusted and worker.agent.reads_whole_sessions

    def answer(self, observations: Sequence[Observation], seeds: Seeds, probabilities: bool) -> list[Answer]:
        """Returns the answer to each observation; if the call fails, its error stands in place of every reply."""
        try:
            response = self._worker.call(Request(list(observations), list(seeds), probabilities))
        except AgentFailed as failed:
            return [Answer(NoReply.of(failed))] * len(observations)
        return list(map(_answer, response.given))

    def remarks(self) -> list[str]:
        """Returns a line if the agent could share the computation of a session's pages and was not trusted to."""
        if self.reads_whole_sessions or not self._worker.agent.reads_whole_sessions:
            return []
        return ["it computed each page of a session again; with --trust it reads the steps of a session together"]

    def close(self) -> None:
        """Ends the process."""
        self._worker.close()


class Worker:
    """The child process of one agent, which is started again after it ended.

    Attributes:
        agent: What the process said of its agent.
    """

    agent = Started(takes_batches=False)

    def __init__(
        self, spec: AgentSpec, store: SessionStore | None, context: ContextConfig, step_limit_s: float
    ) -> None:
        self._start = Start(spec, None if store is None else str(store.path.absolute()), context)
        self._step_limit_s = step_limit_s
        self._process: subprocess.Popen[bytes] | None = None
        self._starts = 0
        self._failure = ""

    def start(self) -> None:
        """Starts the process and builds the agent in it.

        Raises:
            AgentFailed: The agent cannot be built, or the process was started MOST_STARTS times before.
        """
        if self._starts == MOST_STARTS:
            raise AgentFailed(self._failure)
        self._starts += 1
        # The current folder is last, as for `load_own`, so that a module in it cannot hide modules of this project.
        paths = [str(Path(__file__).parents[1]), *filter(None, sys.path)]
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", "agents.worker"],
            env=environment_without_keys() | {"PYTHONPATH": os.pathsep.join(dict.fromkeys(paths))},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,  # so that _kill also ends the processes that the agent starts
        )
        self._kill = weakref.finalize(self, _kill, self._process)
        started = self._exchange(self._process, self._start, Started, START_LIMIT_S)
        if started.error is not None:
            self.close()
            self._starts, self._failure = MOST_STARTS, started.error
            raise AgentFailed(self._failure)
        self.agent = started

    def call(self, request: Request) -> Response:
        """Sends a request and returns the agent's response.

        Raises:
            AgentFailed: The process ended, did not answer in time, or sent a malformed answer.
        """
        if self._process is None:
            self.start()
        assert self._process is not None
        count = len(request.observations)
        response = self._exchange(self._process, request, Response, self._step_limit_s * count)
        if len(response.given) != count:
            raise AgentFailed(f"the agent's process gave {len(response.given)} replies to {count} observations")
        return response

    def close(self) -> None:
        """Ends the process."""
        if self._process is not None:
            self._kill()
            self._process = None

    def _exchange(
        self, process: subprocess.Popen[bytes], message: msgspec.Struct, kind: type[Message], limit_s: float
    ) -> Message:
        assert process.stdin is not None and process.stdout is not None
        began, line = time.monotonic(), b""  # before the timer: what it ends took the limit or more
        timer = threading.Timer(limit_s, self._kill)
        timer.start()
        try:
            send(process.stdin, message)
            line = process.stdout.readline()
            return msgspec.json.decode(line, type=kind)
        except (OSError, msgspec.DecodeError) as error:
            timed_out = time.monotonic() - began >= limit_s
            self.close()
            if line:
                self._failure = f"the agent's process sent what is no answer: {error}"
            elif timed_out:
                self._failure = f"no reply within {limit_s:g} s"
            else:
                self._failure = f"the agent's process ended (exit code {process.wait()})"
            raise AgentFailed(self._failure) from error
        finally:
            timer.cancel()


def _kill(process: subprocess.Popen[bytes]) -> None:
    """Kills a process and all processes that it started."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    with suppress(OSError), process:  # closes its pipes and waits
        pass


def _answer(message: AgentAnswer) -> Answer:
    return Answer(message.reply, None if message.weights is None else dict(message.weights), message.cut)
