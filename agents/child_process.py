"""One start of the process of somebody else's agent, and what it may do.

AgentProcess ─► Child.call ─► socket ─► agent_worker.py ─► socket ─► Response
"""

import contextlib
import os
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import IO
from weakref import WeakValueDictionary

import msgspec

from agents.agent_worker import Method, Request, Response, Start, Started, receive, send
from agents.sandbox import child_environment, sandbox_options, sandbox_works, write_train_split
from replay_sessions.foundation.errors import AgentFailed, BadConfig
from replay_sessions.foundation.table import plain_text
from replay_sessions.store import SessionStore
from shop_env.evaluation.generate import AgentSpec, named_failure
from shop_env.evaluation.log import SANDBOXED, Process
from shop_env.observation import Observation

START_LIMIT_S = 600.0
_LONGEST_LINE = 8192


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """What the process of an agent may do.

    Attributes:
        step_time_s: For one reply; a call for several at once has as many times as long.
        sandbox: Cut it off from network and files by bubblewrap, where that works.
        environment: Names of the variables of this process that it gets too.
        hidden: Folders that it is not to see in the sandbox, whatever else it sees.
    """

    step_time_s: float = 600.0
    sandbox: bool = True
    environment: tuple[str, ...] = ()
    hidden: tuple[Path, ...] = ()

    @property
    def process(self) -> Process:
        """Whose process it is, for the table."""
        return SANDBOXED if self.sandbox and sandbox_works() else "own, not sandboxed"


class Child:
    """One start of the child process."""

    def __init__(self, spec: AgentSpec, store: SessionStore | None, folder: Path, limits: Limits) -> None:
        working = Path(tempfile.mkdtemp(dir=folder))
        ours, theirs = socket.socketpair()
        command = [sys.executable, "-m", "agents.agent_worker", str(theirs.fileno())]
        passed = [theirs.fileno()]
        if limits.process == SANDBOXED:
            passed.append(sandbox_options(spec, folder, working, limits.hidden))
            command = ["bwrap", "--args", str(passed[1]), *command]
        # An agent in a file needs nothing of the folder that the evaluation runs in, where results may lie.
        here, is_file = str(Path.cwd()), spec.target.rpartition(":")[0].endswith(".py")
        paths = [path for path in map(os.path.abspath, sys.path) if path != here and os.path.exists(path)]
        paths = [str(Path(__file__).parents[1]), *paths, *([] if is_file else [here])]
        self._process = subprocess.Popen(
            command,
            cwd=working,
            env=child_environment(working, limits.environment) | {"PYTHONPATH": os.pathsep.join(dict.fromkeys(paths))},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            pass_fds=passed,
            start_new_session=True,  # Ctrl-C is the evaluation's, and what the agent starts ends with it
        )
        threading.Thread(target=_relay, args=(self._process.stderr, spec.label), daemon=True).start()
        threading.Thread(target=self._end_group, daemon=True).start()
        theirs.detach()
        for descriptor in passed:
            os.close(descriptor)
        # A process that reads nothing must not stop the evaluation: writing has a limit too.
        ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("@ll", int(limits.step_time_s) + 1, 0))
        self._socket, self._pipe = ours, ours.makefile("rwb")
        self._writing = threading.Lock()
        self._waiting: WeakValueDictionary[int, SimpleQueue[Response | None]] = WeakValueDictionary()
        self._count = 0
        self._failure = ""
        try:
            self.started = self._start(Start(spec), store, folder)
        except BaseException:
            self.kill()
            self._close()
            raise
        threading.Thread(target=self._receive, daemon=True, name="replies of an agent").start()

    def _start(self, start: Start, store: SessionStore | None, folder: Path) -> Started:
        timer = threading.Timer(START_LIMIT_S, self.kill)
        timer.start()
        try:
            started = self._ask_to_start(start)
            if started.needs_store and store is not None:
                copy = folder / "train" / "store"
                if not copy.exists():
                    write_train_split(store, copy)
                started = self._ask_to_start(msgspec.structs.replace(start, store=str(copy)))
        finally:
            timer.cancel()
        if started.failure is not None:
            raise BadConfig(started.failure.text.partition(": ")[2])
        return started

    def _ask_to_start(self, start: Start) -> Started:
        try:
            send(self._pipe, start)
            if message := receive(self._pipe):
                return msgspec.msgpack.decode(message, type=Started)
        except (OSError, ValueError, msgspec.DecodeError) as error:
            self.kill()
            raise BadConfig(f"the agent '{start.spec.target}' could not be started: {error}") from error
        raise BadConfig(f"the agent '{start.spec.target}' ended its process as it was made ({self._exit()})")

    def call(
        self, method: Method, observations: Sequence[Observation], seeds: Sequence[int | None], limit_s: float
    ) -> Iterator[Response]:
        """The responses to a request, as many as are asked for.

        Raises:
            AgentFailed: The process ended, or did not answer in time or in form; it is of no further use.
        """
        responses: SimpleQueue[Response | None] = SimpleQueue()
        with self._writing:
            self._count += 1
            self._waiting[self._count] = responses
            try:
                if not self._failure:
                    send(self._pipe, Request(self._count, method, list(observations), list(seeds)))
            except OSError as error:
                raise AgentFailed(f"the agent's process takes nothing ({error})") from error
        while True:
            try:
                response = None if self._failure and responses.empty() else responses.get(timeout=limit_s)
            except Empty as error:
                raise AgentFailed(f"no reply within {limit_s:g} s") from error
            if response is None:
                raise AgentFailed(self._failure)
            if response.failure is not None:
                raise named_failure(response.failure.text)
            yield response

    def acknowledge(self) -> None:
        """A reply has reached its place, and the agent may go on."""
        with self._writing, contextlib.suppress(OSError, ValueError):  # a process that ended fails at its next reply
            send(self._pipe, None)

    def _end_group(self) -> None:
        """What the process started could hold its socket open when it has ended."""
        self._process.wait()
        self._kill_group()

    def _kill_group(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)

    def kill(self) -> None:
        self._kill_group()
        self._process.wait()
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)

    def _receive(self) -> None:
        failure = ""
        try:
            while (message := receive(self._pipe)) is not None:
                response = msgspec.msgpack.decode(message, type=Response)
                self._waiting[response.number].put(response)
        except (ValueError, KeyError, OSError, msgspec.DecodeError) as error:
            failure = f"the agent's process sent what is no response: {error}"
        self._failure = failure or f"the agent's process ended ({self._exit()})"
        self.kill()
        with self._writing:
            for responses in list(self._waiting.values()):
                responses.put(None)
        self._close()

    def _close(self) -> None:
        with contextlib.suppress(OSError):  # what could not be written is of no use now
            self._pipe.close()
        self._socket.close()

    def _exit(self) -> str:
        try:
            code = self._process.wait(10)
        except subprocess.TimeoutExpired:
            return "its socket is closed"
        return f"signal {-code}" if code < 0 else f"exit code {code}"


def _relay(errors: IO[bytes], label: str) -> None:
    """Shows what an agent prints: under its own name, and without what moves a terminal's cursor."""
    with errors:
        for line in iter(lambda: errors.readline(_LONGEST_LINE), b""):
            sys.stderr.write(f"{plain_text(label)}: {plain_text(line.decode(errors='replace'))}\n")
