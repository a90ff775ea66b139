"""The child process of an agent of a user: builds the agent, then answers requests until its input ends.

    python -m agents.worker        agents/child_process.py starts it

Messages are lines of JSON on standard input and output: a Start and a Started, then Requests and Responses. The agent's
own output goes to standard error.
"""

import os
from concurrent.futures import ThreadPoolExecutor
from typing import IO

import msgspec

from agents.registry import make_agent
from replay_sessions.foundation.records import Record
from replay_sessions.schema import Action
from replay_sessions.store import SessionStore
from shop_env.evaluation.answering import Answer, AnsweringAgent, NoReply, adapt_agent, call_agent, format_error
from shop_env.evaluation.protocol import PromptCut
from shop_env.evaluation.waves import AgentSpec
from shop_env.observation import ContextConfig, Observation


class Start(msgspec.Struct, frozen=True):
    """A message to the child: the agent to build, the path of its store, and the context of its observations."""

    spec: AgentSpec
    store: str | None
    context: ContextConfig


class Started(Record):
    """A message from the child: the error that prevented building the agent, or what it is (AnsweringAgent)."""

    error: str | None = None
    takes_batches: bool = False
    reads_whole_sessions: bool = False


class Request(msgspec.Struct, frozen=True):
    """A message to the child: the observations to reply to, and whether to give probabilities."""

    observations: list[Observation]
    seeds: list[int | None]
    probabilities: bool


class AgentAnswer(Record):
    """The agent's answer to one observation."""

    reply: str | NoReply
    weights: list[tuple[Action, float]] | None = None
    cut: PromptCut | None = None


class Response(msgspec.Struct, frozen=True):
    """A message from the child: the agent's response to each observation."""

    given: list[AgentAnswer]


def main() -> None:
    """Builds the agent and answers requests until the evaluation closes the pipe."""
    requests, responses = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)
    try:
        start = msgspec.json.decode(requests.readline(), type=Start)
        store = None if start.store is None else SessionStore.open(start.store)
        agent = adapt_agent(make_agent(start.spec, store=store, context=start.context))
    except BaseException as error:
        send(responses, Started(error=format_error(error)))
        return
    threads, process = agent.concurrency, os.getpid()
    is_whole = type(agent).reads_whole_sessions  # what the class says; `make_agent` lets only our own do it
    send(responses, Started(takes_batches=agent.takes_batches, reads_whole_sessions=is_whole))
    with ThreadPoolExecutor(threads) as pool:
        for line in requests:
            response = _respond(agent, msgspec.json.decode(line, type=Request), pool if threads > 1 else None)
            if os.getpid() != process:  # a fork of the agent, whose response would be taken for the next one
                os._exit(1)
            send(responses, response)


def send(pipe: IO[bytes], message: msgspec.Struct) -> None:
    """Writes a message as a line of JSON."""
    pipe.write(msgspec.json.encode(message) + b"\n")
    pipe.flush()


def _respond(agent: AnsweringAgent, request: Request, pool: ThreadPoolExecutor | None) -> Response:
    observations, seeds, probabilities = request.observations, request.seeds, request.probabilities

    def answer(observation: Observation, seed: int | None) -> Answer:
        return call_agent(agent, [observation], [seed], probabilities=probabilities)[0]

    if pool is None:
        answers = call_agent(agent, observations, seeds, probabilities=probabilities)
    else:
        answers = list(pool.map(answer, observations, seeds))
    return Response(list(map(_to_message, answers)))


def _to_message(answer: Answer) -> AgentAnswer:
    weights = None if answer.probabilities is None else list(answer.probabilities.items())
    return AgentAnswer(reply=answer.reply, weights=weights, cut=answer.cut)


if __name__ == "__main__":
    main()
