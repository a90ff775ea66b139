"""An agent in a process of its own: it sees observations, the train split, and nothing else of the evaluation.

    evaluate.py ─► AgentProcess.act_batch ─► pipe ─► agent_worker.py: the agent ─► pipe ─► replies

An agent may be a stranger's code. In the evaluator's process it could read the logged actions, change the rows of other
agents, or end the run. The child starts in an empty folder, gets a copy of the train split alone, and is not told where
the store lies or results are written. What it sends is limited in size and time, and whatever goes wrong in it is an
error at its own steps. This does not keep code from searching the disk: `--sandbox` does, where bubblewrap is installed
(docs/leaderboards.md).
"""

import contextlib
import fcntl
import os
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from pathlib import Path

import msgspec

from agents.agent_worker import Failure, Method, Request, Response, Start, Started, receive, send
from replay_sessions.foundation.errors import AgentFailed, BadConfig
from replay_sessions.foundation.plugins import OUR_PACKAGES
from replay_sessions.schema import Action
from replay_sessions.store import SessionStore, StoreWriter
from replay_sessions.store.manifest import SplitPlan
from shop_env.evaluation.generate import AgentSpec
from shop_env.evaluation.protocol import Agent
from shop_env.observation import Observation

MOST_STARTS = 3  # an agent whose process ended that often is not started again
START_LIMIT_S = 600.0
# What the child imports of this project; `agents` lies beside the others.
OUR_FOLDERS = [Path(__file__).parents[1] / name for name in OUR_PACKAGES]


def make_isolated_agent(
    spec: AgentSpec, store: SessionStore | None, *, step_time_limit_s: float = 600.0, sandbox: bool = False
) -> Agent:
    """The agent in a process of its own; one that cannot be made fails at each step, at no other agent's cost."""
    try:
        return AgentProcess(spec, store, step_time_limit_s=step_time_limit_s, sandbox=sandbox)
    except BadConfig as error:
        return FailingAgent(str(error))


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
        step_time_limit_s: For one reply; a call for several has as many times as long.
        sandbox: Cut the child off from network and files by bubblewrap.

    Raises:
        BadConfig: The agent cannot be made, or bubblewrap is not installed.
    """

    def __init__(
        self, spec: AgentSpec, store: SessionStore | None, *, step_time_limit_s: float = 600.0, sandbox: bool = False
    ) -> None:
        self._spec = _resolved(spec)
        self._store = store
        self._limit_s = step_time_limit_s
        self._sandbox = sandbox
        self._folder = tempfile.TemporaryDirectory(prefix="agent-", ignore_cleanup_errors=True)
        self._lock = threading.Lock()
        self._starts = 0
        self._child: _Child | None = None
        self._ended = ""
        self._fresh = False
        try:
            started = self._running().started
        except BaseException:
            self.close()
            raise
        self.concurrency = started.concurrency
        self.replies_in_batches = started.replies_in_batches
        self.gives_probabilities = started.gives_probabilities
        self.is_served = started.is_served

    def reset(self, *, seed: int | None = None) -> None:
        self._seed = seed

    def act(self, observation: Observation) -> str:
        (reply,) = self.act_batch([observation], seeds=[self._seed])
        if isinstance(reply, Exception):
            raise reply
        return reply

    def act_batch(
        self, observations: Sequence[Observation], *, seeds: Sequence[int | None]
    ) -> Sequence[str | Exception]:
        replies = self._call("act_batch", observations, seeds).replies
        self._check_count(len(replies), observations)
        return [reply.exception() if isinstance(reply, Failure) else reply for reply in replies]

    def probabilities(
        self, observations: Sequence[Observation], *, seeds: Sequence[int | None]
    ) -> Sequence[Mapping[Action, float] | Exception] | None:
        if not self.gives_probabilities:
            return None
        weights = self._call("probabilities", observations, seeds).weights
        if weights is None:
            return None
        self._check_count(len(weights), observations)
        return [pairs.exception() if isinstance(pairs, Failure) else dict(pairs) for pairs in weights]

    def ask_anew(self) -> None:
        self._fresh = True
        self._call("ask_anew")

    def remarks(self) -> list[str]:
        if self._child is None:
            return [self._ended] if self._ended else []
        try:
            return self._call("remarks").remarks
        except AgentFailed:
            return []

    def stop(self) -> None:
        self._end()

    def close(self) -> None:
        if self._child is not None:
            with contextlib.suppress(AgentFailed):
                self._call("close")
        self._end()
        self._folder.cleanup()

    def _call(
        self, method: Method, observations: Sequence[Observation] = (), seeds: Sequence[int | None] = ()
    ) -> Response:
        with self._lock:
            child = self._running()
        limit_s = self._limit_s * max(1, len(observations))
        try:
            response = child.call(method, list(observations), list(seeds), limit_s)
        except AgentFailed as failed:
            with self._lock:
                if self._child is child:
                    self._ended = str(failed)
                    self._end()
            raise
        if response.failure is not None:
            raise response.failure.exception()
        return response

    def _running(self) -> "_Child":
        if self._child is None:
            if self._starts == MOST_STARTS:
                raise AgentFailed(f"not run: {self._ended} ({MOST_STARTS} times)")
            self._starts += 1
            self._child = _Child(self._spec, self._store, Path(self._folder.name), self._sandbox)
            if self._fresh:
                self._child.call("ask_anew", [], [], self._limit_s)
        return self._child

    def _end(self) -> None:
        if self._child is not None:
            self._child.kill()
            self._child = None

    @staticmethod
    def _check_count(count: int, observations: Sequence[Observation]) -> None:
        if count != len(observations):
            raise AgentFailed(f"the agent's process sent {count} results for {len(observations)} observations")


class _Child:
    """One start of the child process."""

    def __init__(self, spec: AgentSpec, store: SessionStore | None, folder: Path, sandbox: bool) -> None:
        working = Path(tempfile.mkdtemp(dir=folder))
        request_read, request_write = os.pipe()
        reply_read, reply_write = os.pipe()
        command = [sys.executable, "-m", "agents.agent_worker", str(request_read), str(reply_write)]
        if sandbox:
            command = [*_bubblewrap(spec, folder, working), *command]
        paths = dict.fromkeys(str(Path(entry or ".").absolute()) for entry in [*sys.path, "."])
        self._process = subprocess.Popen(
            command,
            cwd=working,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(paths)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            pass_fds=(request_read, reply_write),
        )
        os.close(request_read)
        os.close(reply_write)
        with contextlib.suppress(
            OSError, AttributeError
        ):  # of Linux alone; a wave of observations is larger than 64 KB
            fcntl.fcntl(request_write, fcntl.F_SETPIPE_SZ, 2**20)
        self._requests, self._replies = os.fdopen(request_write, "wb"), os.fdopen(reply_read, "rb")
        self._writing = threading.Lock()
        self._waiting: dict[int, Future[Response]] = {}
        self._count = 0
        try:
            self.started = self._handshake(Start(spec), store, folder)
        except BaseException:
            self.kill()
            self._replies.close()
            raise
        threading.Thread(target=self._receive, daemon=True, name="replies of an agent").start()

    def _handshake(self, start: Start, store: SessionStore | None, folder: Path) -> Started:
        timer = threading.Timer(START_LIMIT_S, self._process.kill)
        timer.start()
        try:
            started = self._ask_to_start(start)
            if started.needs_store and store is not None:
                copy = folder / "train" / store.path.name
                if not copy.exists():
                    write_train_split(store, copy)
                started = self._ask_to_start(msgspec.structs.replace(start, store=str(copy)))
        finally:
            timer.cancel()
        if started.failure is not None:
            raise BadConfig(started.failure.message)
        return started

    def _ask_to_start(self, start: Start) -> Started:
        try:
            send(self._requests, start)
            message = receive(self._replies)
        except (OSError, ValueError) as error:
            message = None
            self._process.kill()
            raise BadConfig(f"the agent '{start.spec.target}' could not be started: {error}") from error
        if message is None:
            raise BadConfig(f"the agent '{start.spec.target}' ended its process as it was made ({self._exit()})")
        return msgspec.msgpack.decode(message, type=Started)

    def call(
        self, method: Method, observations: list[Observation], seeds: list[int | None], limit_s: float
    ) -> Response:
        """The response to a request.

        Raises:
            AgentFailed: The process ended, or did not answer in time or in form; it is of no further use.
        """
        future: Future[Response] = Future()
        with self._writing:
            self._count += 1
            number = self._count
            self._waiting[number] = future
            if self._process.poll() is not None:
                raise AgentFailed(f"the agent's process ended ({self._exit()})")
            try:
                send(self._requests, Request(number, method, observations, seeds))
            except OSError as error:
                raise AgentFailed(f"the agent's process ended ({self._exit()})") from error
        try:
            return future.result(limit_s)
        except TimeoutError as error:
            raise AgentFailed(f"no reply within {limit_s:g} s") from error

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()
        with contextlib.suppress(OSError):
            self._requests.close()

    def _receive(self) -> None:
        reason = ""
        try:
            while (message := receive(self._replies)) is not None:
                response = msgspec.msgpack.decode(message, type=Response)
                self._waiting.pop(response.number).set_result(response)
        except (ValueError, KeyError, msgspec.DecodeError) as error:
            reason = f"the agent's process sent what is no response: {error}"
            self._process.kill()
        finally:
            failed = AgentFailed(reason or f"the agent's process ended ({self._exit()})")
            with self._writing:
                for waiting in self._waiting.values():
                    waiting.set_exception(failed)
            self._replies.close()

    def _exit(self) -> str:
        try:
            code = self._process.wait(10)
        except subprocess.TimeoutExpired:
            return "its pipe is closed"
        return f"signal {-code}" if code < 0 else f"exit code {code}"


def _resolved(spec: AgentSpec) -> AgentSpec:
    """The spec with absolute paths, for a process that starts in another folder."""
    file, colon, name = spec.target.rpartition(":")
    target = f"{Path(file).absolute()}:{name}" if colon and file.endswith(".py") else spec.target
    arguments = {
        key: os.path.abspath(value) if isinstance(value, str) and os.path.exists(value) else value
        for key, value in spec.arguments.items()
    }
    return msgspec.structs.replace(spec, target=target, arguments=arguments)


def check_sandbox() -> None:
    """Raises BadConfig where bubblewrap is not installed."""
    if shutil.which("bwrap") is None:
        raise BadConfig("--sandbox needs bubblewrap: install it (`apt install bubblewrap`), or leave --sandbox out")


def _bubblewrap(spec: AgentSpec, folder: Path, working: Path) -> list[str]:
    """The command that runs the rest of the line without network and with these files alone.

    Readable are the system's libraries, Python with its packages, this project, the agent's own folder and the files
    among its arguments; writable is the working folder.
    """
    file = spec.target.rpartition(":")[0]
    own = [Path(file).parent] if file.endswith(".py") else [Path.cwd()]
    named = [Path(value) for value in spec.arguments.values() if isinstance(value, str)]
    readable = ["/usr", "/lib", "/lib64", "/bin", "/etc/ld.so.cache", "/etc/ssl", sys.prefix, sys.base_prefix]
    readable += [*map(str, OUR_FOLDERS), *map(str, own), *(str(path) for path in named if path.exists())]
    binds = [word for path in dict.fromkeys(readable) for word in ("--ro-bind-try", path, path)]
    return [
        "bwrap", "--unshare-all", "--die-with-parent", "--new-session", "--proc", "/proc", "--dev", "/dev",
        "--tmpfs", "/tmp", *binds, "--ro-bind", str(folder), str(folder), "--bind", str(working), str(working),
        "--chdir", str(working),
    ]  # fmt: skip


def write_train_split(store: SessionStore, path: Path) -> None:
    """Writes a store of the train split alone."""
    with StoreWriter(path, source=store.manifest.source, splits=SplitPlan(by="official")) as writer:
        for session in store.sessions("train"):
            writer.write(msgspec.structs.replace(session, official_split="train"))
