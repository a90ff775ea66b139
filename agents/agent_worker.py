"""The child of an AgentProcess: makes an agent and answers requests for it, until the pipe is closed.

    python -m agents.agent_worker REQUESTS REPLIES        the numbers of two open pipes; only agent_process.py starts it

Messages are msgpack, each behind its length in four bytes. Requests carry a number, since an agent with `concurrency`
answers several at once.
"""

import os
import sys
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import BinaryIO, Literal

import msgspec

from agents.registry import learns_from_store, make_agent
from replay_sessions.foundation.errors import AgentFailed
from replay_sessions.schema import Action
from replay_sessions.store import SessionStore
from shop_env.evaluation.generate import AgentSpec, ReplyOrError, Seeds, call_batched, generate_batch
from shop_env.evaluation.protocol import Agent, BatchAgent, ProbabilityAgent, ServedAgent
from shop_env.observation import Observation

Method = Literal["act_batch", "probabilities", "ask_anew", "remarks", "close"]
LARGEST_MESSAGE = 256 * 2**20  # bytes


class Failure(msgspec.Struct, frozen=True):
    """An exception of the agent as text."""

    kind: str
    message: str

    @classmethod
    def of(cls, error: BaseException) -> "Failure":
        try:
            message = str(error)
        except Exception as unprintable:
            message = f"its message cannot be formatted ({type(unprintable).__name__})"
        return cls(type(error).__name__, message.encode("utf-8", "backslashreplace").decode()[:2000])

    def exception(self) -> Exception:
        """An AgentFailed that reads as the agent's own exception did."""
        exception: Exception = type(self.kind, (AgentFailed,), {})(self.message)
        return exception


class Start(msgspec.Struct, frozen=True):
    """To the child: which agent, and where the copy of the train split is, once it asked for it."""

    spec: AgentSpec
    store: str | None = None


class Started(msgspec.Struct, frozen=True, kw_only=True):
    """From the child: what the agent can do, or why there is none."""

    needs_store: bool = False
    failure: Failure | None = None
    concurrency: int = 1
    replies_in_batches: bool = False
    gives_probabilities: bool = False
    is_served: bool = False


class Request(msgspec.Struct, frozen=True):
    """To the child: call a method of the agent."""

    number: int
    method: Method
    observations: list[Observation] = []
    seeds: list[int | None] = []


class Response(msgspec.Struct, frozen=True, kw_only=True):
    """From the child: a failure of the whole call, or what the method returned.

    Attributes:
        weights: Pairs of an action and its probability for each observation; None: the agent gives none.
    """

    number: int
    failure: Failure | None = None
    replies: list[str | Failure] = []
    weights: list[list[tuple[Action, float]] | Failure] | None = None
    remarks: list[str] = []


def send(pipe: BinaryIO, message: msgspec.Struct | bytes) -> None:
    """Writes a message, encoded or not."""
    content = message if isinstance(message, bytes) else msgspec.msgpack.encode(message)
    pipe.write(len(content).to_bytes(4, "big") + content)
    pipe.flush()


def receive(pipe: BinaryIO) -> bytes | None:
    """Reads a message; None at the end of the pipe.

    Raises:
        ValueError: It is larger than any message may be.
    """
    head = pipe.read(4)
    if len(head) < 4:
        return None
    size = int.from_bytes(head, "big")
    if size > LARGEST_MESSAGE:
        raise ValueError(f"a message of {size} bytes; the most is {LARGEST_MESSAGE}")
    content = pipe.read(size)
    return content if len(content) == size else None


def main(requests_at: int, replies_at: int) -> None:
    """Answers requests until the pipe ends; the agent's own prints go to standard error."""
    requests, replies = os.fdopen(requests_at, "rb"), os.fdopen(replies_at, "wb")
    agent = _make(requests, replies)
    writing = threading.Lock()

    def answer(request: Request) -> None:
        try:
            content = msgspec.msgpack.encode(_call(agent, request))
        except BaseException as error:  # SystemExit too: it is the error of these steps and ends nothing
            content = msgspec.msgpack.encode(Response(number=request.number, failure=Failure.of(error)))
        with writing:
            send(replies, content)

    concurrency = getattr(agent, "concurrency", 1)
    with ThreadPoolExecutor(concurrency) as pool:
        while (message := receive(requests)) is not None:
            request = msgspec.msgpack.decode(message, type=Request)
            if concurrency == 1:
                answer(request)  # here: some libraries are bound to the main thread
            else:
                pool.submit(answer, request)


def _make(requests: BinaryIO, replies: BinaryIO) -> Agent:
    """The agent of the start message; the process ends where none can be made."""
    while (message := receive(requests)) is not None:
        start = msgspec.msgpack.decode(message, type=Start)
        try:
            if start.store is None and learns_from_store(start.spec):
                send(replies, Started(needs_store=True))
                continue
            agent = make_agent(start.spec, store=None if start.store is None else SessionStore.open(start.store))
        except BaseException as error:
            send(replies, Started(failure=Failure.of(error)))
            break
        send(
            replies,
            Started(
                concurrency=getattr(agent, "concurrency", 1),
                replies_in_batches=isinstance(agent, BatchAgent),
                gives_probabilities=isinstance(agent, ProbabilityAgent),
                is_served=isinstance(agent, ServedAgent),
            ),
        )
        return agent
    sys.exit(1)


def _call(agent: Agent, request: Request) -> Response:
    number, observations, seeds = request.number, request.observations, request.seeds
    if request.method == "act_batch":
        replies = generate_batch(agent, observations, seeds)
        return Response(number=number, replies=[_sendable(reply) for reply in replies])
    if request.method == "probabilities":
        return Response(number=number, weights=_weights(agent, observations, seeds))
    if not isinstance(agent, ServedAgent):
        return Response(number=number)
    if request.method == "remarks":
        return Response(number=number, remarks=[str(remark) for remark in agent.remarks()])
    getattr(agent, request.method)()
    return Response(number=number)


def _sendable(reply: ReplyOrError) -> str | Failure:
    # Half a surrogate pair is no text that can be sent; its escape reads as the same malformed reply.
    return reply.encode("utf-8", "backslashreplace").decode() if isinstance(reply, str) else Failure.of(reply)


def _weights(
    agent: Agent, observations: Sequence[Observation], seeds: Seeds
) -> list[list[tuple[Action, float]] | Failure] | None:
    if not isinstance(agent, ProbabilityAgent):
        return None
    results = call_batched(agent.probabilities, observations, seeds, Mapping)
    if results is None:
        return None
    return [
        Failure.of(result)
        if isinstance(result, Exception)
        else [(action, float(probability)) for action, probability in result.items()]
        for result in results
    ]


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
