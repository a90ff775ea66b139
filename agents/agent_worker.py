"""The child of an AgentProcess: makes an agent and answers requests for it, until the socket is closed.

    python -m agents.agent_worker SOCKET        the number of an open socket; only agent_process.py starts it

Messages are msgpack, each behind its length in four bytes. Requests carry a number, since an agent with `concurrency`
answers several at once. An agent that answers one observation at a time has each reply sent as soon as it is there, and
goes on when the one before was acknowledged.
"""

import contextlib
import socket
import sys
import threading
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from io import BufferedRWPair
from typing import Annotated, Literal

import msgspec

from agents.registry import MOST_CALLS, learns_from_store, make_agent
from replay_sessions.schema import Action
from replay_sessions.store import SessionStore
from shop_env.evaluation.generate import (
    AgentSpec,
    ReplyOrError,
    call_batched,
    format_error,
    generate_batch,
)
from shop_env.evaluation.protocol import Agent, BatchAgent, ProbabilityAgent, ServedAgent
from shop_env.metrics import checked_distribution
from shop_env.observation import Observation

Method = Literal["act", "probabilities", "ask_anew", "remarks", "close"]
LARGEST_MESSAGE = 256 * 2**20  # bytes
AHEAD = 8  # replies that were sent one by one and not yet acknowledged: what is lost where the evaluation is killed


class Failure(msgspec.Struct, frozen=True):
    """An exception of the agent as records hold it."""

    text: str


class Start(msgspec.Struct, frozen=True):
    """To the child: which agent, and where the copy of the train split is, once it asked for it."""

    spec: AgentSpec
    store: str | None = None


class Started(msgspec.Struct, frozen=True, kw_only=True):
    """From the child: what the agent can do, or why there is none."""

    needs_store: bool = False
    failure: Failure | None = None
    concurrency: Annotated[int, msgspec.Meta(ge=1, le=MOST_CALLS)] = 1
    replies_in_batches: bool = False
    gives_probabilities: bool = False


class Request(msgspec.Struct, frozen=True):
    """To the child: call a method of the agent."""

    number: int
    method: Method
    observations: list[Observation] = []
    seeds: list[int | None] = []


class Response(msgspec.Struct, frozen=True, kw_only=True):
    """From the child: a failure of the whole call, or what the method returned.

    Attributes:
        replies: Of `act`: some of the replies, in order; the rest come in further responses.
        weights: Pairs of an action and its probability for each observation; None: the agent gives none.
    """

    number: int
    failure: Failure | None = None
    replies: list[str | Failure] = []
    weights: list[list[tuple[Action, float]] | Failure] | None = None
    remarks: list[str] = []


def send(pipe: BufferedRWPair, message: msgspec.Struct | None) -> None:
    """Writes a message; None: an acknowledgement."""
    content = b"" if message is None else msgspec.msgpack.encode(message)
    pipe.write(len(content).to_bytes(4, "big") + content)
    pipe.flush()


def receive(pipe: BufferedRWPair) -> bytes | None:
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


def main(descriptor: int) -> None:
    """Answers requests until the socket is closed."""
    pipe = socket.socket(fileno=descriptor).makefile("rwb")
    agent = _make(pipe)
    writing = threading.Lock()

    def respond(response: Response) -> None:
        with writing:
            send(pipe, response)

    def answer(request: Request) -> None:
        try:
            for number, response in enumerate(_call(agent, request), 1):
                respond(response)
                if AHEAD <= number < len(request.observations):
                    receive(pipe)
        except BaseException as error:  # SystemExit too: it is the error of these steps and ends nothing
            respond(Response(number=request.number, failure=Failure(format_error(error))))

    concurrency = getattr(agent, "concurrency", 1)
    with ThreadPoolExecutor(concurrency) as pool:
        while (message := receive(pipe)) is not None:
            if not message:  # the acknowledgement of one of the last replies
                continue
            request = msgspec.msgpack.decode(message, type=Request)
            if concurrency == 1:
                answer(request)  # here: some libraries are bound to the main thread
            else:
                pool.submit(answer, request)


def _make(pipe: BufferedRWPair) -> Agent:
    """The agent of the start message; the process ends where none can be made."""
    while (message := receive(pipe)) is not None:
        start = msgspec.msgpack.decode(message, type=Start)
        try:
            if start.store is None and learns_from_store(start.spec):
                send(pipe, Started(needs_store=True))
                continue
            agent = make_agent(start.spec, store=None if start.store is None else SessionStore.open(start.store))
        except BaseException as error:
            send(pipe, Started(failure=Failure(format_error(error))))
            break
        started = Started(
            concurrency=getattr(agent, "concurrency", 1),
            replies_in_batches=isinstance(agent, BatchAgent),
            gives_probabilities=isinstance(agent, ProbabilityAgent),
        )
        send(pipe, started)
        return agent
    sys.exit(1)


def _call(agent: Agent, request: Request) -> Iterator[Response]:
    number, observations, seeds = request.number, request.observations, request.seeds
    if request.method == "act":
        size = max(1, len(observations)) if isinstance(agent, BatchAgent) else 1
        for first in range(0, len(observations), size):
            part = slice(first, first + size)
            replies = generate_batch(agent, observations[part], seeds[part])
            yield Response(number=number, replies=list(map(_sendable, replies)))
    elif request.method == "probabilities" and isinstance(agent, ProbabilityAgent):
        results = call_batched(agent.probabilities, observations, seeds, Mapping)
        yield Response(number=number, weights=None if results is None else list(map(_weights, results)))
    elif request.method == "remarks" and isinstance(agent, ServedAgent):
        yield Response(number=number, remarks=[str(remark) for remark in agent.remarks()])
    else:
        if isinstance(agent, ServedAgent):
            getattr(agent, request.method)()
        yield Response(number=number)


def _sendable(reply: ReplyOrError) -> str | Failure:
    # Half a surrogate pair is no text that can be sent; its escape reads as the same malformed reply.
    return (
        reply.encode("utf-8", "backslashreplace").decode() if isinstance(reply, str) else Failure(format_error(reply))
    )


def _weights(result: Mapping[Action, float] | Exception) -> list[tuple[Action, float]] | Failure:
    try:
        if isinstance(result, Exception):
            raise result
        checked_distribution(result)
        return [(action, float(probability)) for action, probability in result.items()]
    except Exception as error:
        return Failure(format_error(error))


if __name__ == "__main__":
    with contextlib.suppress(BrokenPipeError):  # the evaluation has ended
        main(int(sys.argv[1]))
