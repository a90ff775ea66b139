"""Each answer of a server is a reply or an error with its cause, never a score of 0.

1. What the model wrote is its reply, however bad: prose, a refusal, half a reply.
2. What the server or the way to it did is NoAnswer, with the client's name of the error.
3. What may pass is tried again, as often as is allowed; what will not pass is not.
"""

import socket
from collections.abc import Callable
from typing import Any

import pytest

from agents.prompting.agent import PromptingAgent
from agents.prompting.chat import NoAnswer
from replay_sessions.foundation.errors import PromptTooLong
from shop_env.evaluation.answering import format_error, generate_batch
from shop_env.observation import Observation
from tests.agents.prompting.scripted_server import REPLY, Response, Script, ScriptedServer, completion, error
from tests.scored_steps import first_seen

MakeAgent = Callable[..., PromptingAgent]
PAGE = first_seen('<a name="buy">Buy</a>', "a hat")


def page(number: int) -> Observation:
    return {**PAGE, "page": f'<a name="buy">Buy {number}</a>'}


def answer(agent: PromptingAgent, observation: Observation = PAGE) -> str | NoAnswer | PromptTooLong:
    (reply,) = generate_batch(agent, [observation], [0])
    assert isinstance(reply, str | NoAnswer | PromptTooLong), reply
    return reply


def then(*responses: Response) -> Script:
    """First the one, then the next, and the last ever after."""
    return lambda request, times: responses[min(times, len(responses) - 1)]


@pytest.mark.parametrize(
    ("response", "reply", "remarks"),
    [
        (completion(), REPLY, []),
        (completion("I would rather not."), "I would rather not.", []),
        (completion('{"rat', ended="length"), '{"rat', ["cut at max_new_tokens=512: 1 replies"]),
        (completion(None, ended="length"), "", ["cut at max_new_tokens=512: 1 replies"]),
        (completion(None, refusal="I cannot help."), "I cannot help.", ["refused by the model: 1 replies"]),
        (completion(None, ended="tool_calls"), "", []),
        (completion("half a pair: \ud83d"), "half a pair: \\ud83d", []),
    ],
)
def test_the_models_text_is_the_reply(make_prompting, response, reply, remarks):
    with ScriptedServer(response) as server:
        agent = make_prompting(server)
        assert answer(agent) == reply
        assert agent.remarks() == ["1 answers from the server, 120 tokens read and written", *remarks]
        assert len(server.received) == 1


@pytest.mark.parametrize(
    ("response", "cause"),
    [
        (completion("", ended="content_filter"), "content filter"),
        (error(401, "Incorrect API key"), "AuthenticationError"),
        (error(403, "not for you"), "PermissionDeniedError"),
        (error(404, "The model `scripted` does not exist."), "NotFoundError"),
        (error(400, "Unsupported parameter: 'seed'"), "BadRequestError"),
        (error(422, "extra fields"), "UnprocessableEntityError"),
        (Response(b'{"choices": [{"mess'), "malformed answer"),
        (Response(b"<html>Welcome</html>", headers={"Content-Type": "text/html"}), "malformed answer"),
        (Response(b"[]"), "malformed answer"),
        (Response(b'{"choices": []}'), "malformed answer"),
        (Response(b'{"choices": [{"text": "a completion, and no chat"}]}'), "malformed answer"),
        (Response(b"[" * 100_000), "malformed answer"),
        (completion(7), "malformed answer"),
    ],
)
def test_lasting_failures_are_errors_with_their_cause_after_one_try(make_prompting, response, cause):
    with ScriptedServer(response) as server:
        failure = answer(make_prompting(server))
        assert isinstance(failure, NoAnswer)
        assert format_error(failure).startswith(f"NoAnswer: {cause}: ")
        assert len(server.received) == 1


@pytest.mark.parametrize(
    ("response", "cause"),
    [
        (error(429, "slow down"), "RateLimitError"),
        (error(503, "loading the model"), "InternalServerError"),
        (completion()._replace(cut=20), "APIConnectionError"),
        (completion()._replace(delay_s=2.0), "APITimeoutError"),
    ],
)
def test_passing_failures_are_tried_again(make_prompting, response, cause):
    options = {"max_retries": 1, "timeout_s": 1.0}
    with ScriptedServer(response) as server:
        failure = answer(make_prompting(server, **options))
        assert isinstance(failure, NoAnswer)
        assert format_error(failure).startswith(f"NoAnswer: {cause}: ")
        assert len(server.received) == 2
    with ScriptedServer(then(response, completion())) as server:
        assert answer(make_prompting(server, **options)) == REPLY
        assert len(server.received) == 2


@pytest.mark.parametrize(
    "response",
    [
        error(400, "This model's maximum context length is 4096 tokens"),
        error(400, "no", code="context_length_exceeded"),
        error(413, "request entity too large"),
    ],
)
def test_a_page_that_is_too_long_by_itself_is_no_failure_of_the_server(make_prompting, response):
    with ScriptedServer(response) as server:
        assert isinstance(answer(make_prompting(server), session(2)), PromptTooLong)
        assert [pages_in(received.request) for received in server.received] == ["ab", "b", ""]


def session(pages: int) -> Observation:
    """A step with so many past pages, each of 1,000 letters of its own."""
    click = '{"type": "click", "name": "buy"}'
    past = [{"page": chr(97 + number) * 1000, "rationale": "", "action": click} for number in range(pages)]
    return {**PAGE, "history": tuple(past), "step": pages}


def pages_in(request: dict[str, Any]) -> str:
    """The letters of the past pages that a request shows."""
    text = "".join(message["content"] for message in request["messages"])
    return "".join(letter for letter in "abcdefgh" if letter * 1000 in text)


def test_too_long_prompts_are_sent_without_the_earliest_pages(make_prompting):
    def script(request: dict[str, Any], times: int) -> Response:
        return completion() if len(pages_in(request)) <= 2 else error(400, messages[len(pages_in(request)) - 3])

    messages = [
        "the maximum context length is 4096 tokens",
        "The input token count (9) exceeds the maximum number of tokens allowed (8).",
        "The prompt (length 9) is longer than the maximum model length of 8.",
    ]
    with ScriptedServer(script) as server:
        agent = make_prompting(server)
        assert answer(agent, session(5)) == REPLY
        assert [pages_in(received.request) for received in server.received] == ["abcde", "bcde", "cde", "de"]
        assert "without the earliest pages, since all were too long: 1 replies" in agent.remarks()


def test_the_server_says_how_long_to_wait(make_prompting):
    with ScriptedServer(then(error(429, "slow down", retry_after_ms="400"), completion())) as server:
        assert answer(make_prompting(server)) == REPLY
        first, second = server.received
        assert second.at_s - first.at_s >= 0.4


def test_a_server_that_redirects_is_not_followed(make_prompting):
    with ScriptedServer() as elsewhere, ScriptedServer() as server:
        there = f"{elsewhere.base_url}/chat/completions"
        server.script = lambda request, times: error(307, "moved", location=there)
        assert isinstance(answer(make_prompting(server)), NoAnswer)
        assert not elsewhere.received


@pytest.mark.parametrize("response", [error(401, "Incorrect API key"), error(404, "no such model"), None])
def test_after_many_requests_in_a_row_without_an_answer_nothing_is_sent(make_prompting, response):
    with ScriptedServer(response) as server, socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        nobody = f"http://127.0.0.1:{unused.getsockname()[1]}/v1"
        agent = make_prompting(server if response else nobody, max_retries=0, concurrency=2)
        failures = [answer(agent, page(number)) for number in range(12)]
        assert all(isinstance(failure, NoAnswer) for failure in failures)
        assert ["not sent" in str(failure) for failure in failures] == [False] * 8 + [True] * 4
        assert len(server.received) == (8 if response else 0)


@pytest.mark.parametrize(("tokens", "limit"), [(120, 300), (None, 1000), (0, 1000)])
def test_nothing_is_sent_beyond_the_token_limit(make_prompting, tokens, limit):
    """Where the server reports no tokens, a quarter of the characters counts: 334 to 499 of each of these requests."""
    with ScriptedServer(completion(tokens=tokens)) as server:
        agent = make_prompting(server, token_limit=limit)
        replies = [answer(agent, page(number)) for number in range(5)]
        assert [reply == REPLY for reply in replies] == [True, True, True, False, False]
        assert str(replies[-1]).startswith("token limit: ")
        assert len(server.received) == 3
        estimated = "tokens not reported: a quarter of the characters of 3 answers"
        assert (estimated in agent.remarks()) == (not tokens)
