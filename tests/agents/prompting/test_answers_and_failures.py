"""What a server may do, and what an evaluation makes of it: a reply, or an error with its cause; never a score of 0.

1. What the model wrote is its reply, however bad: prose, a refusal, half a reply.
2. What the server or the way to it did is NoAnswer, with a cause of the vocabulary.
3. What may pass is tried again, as often and as late as is allowed; what will not pass is not.
"""

import socket
from collections.abc import Callable
from typing import Any

import pytest

from agents.prompting.agent import PromptingAgent
from agents.prompting.answers import CAUSES, NoAnswer
from agents.prompting.options import read_options
from agents.registry import parse_spec
from shop_env.evaluation.generate import format_error, generate_batch
from shop_env.observation import Observation
from tests.agents.prompting.scripted_server import REPLY, Said, Script, ScriptedServer, completion, error

MakeAgent = Callable[..., PromptingAgent]
PAGE: Observation = {"page": '<a name="buy">Buy</a>', "history": (), "persona": "", "goal": "a hat", "step": 0}


def page(number: int) -> Observation:
    return {**PAGE, "page": f'<a name="buy">Buy {number}</a>'}  # type: ignore[typeddict-item]


def answer(agent: PromptingAgent, observation: Observation = PAGE, seed: int = 0) -> str | NoAnswer:
    (found,) = generate_batch(agent, [observation], [seed])
    assert isinstance(found, str | NoAnswer), found
    return found


def then(*said: Said) -> Script:
    """First the one, then the next, and the last ever after."""
    return lambda request, times: said[min(times, len(said) - 1)]


@pytest.mark.parametrize(
    ("said", "reply", "remark"),
    [
        (completion(), REPLY, None),
        (completion("I would rather not."), "I would rather not.", None),
        (
            completion('{"rationale": "I', ended="length"),
            '{"rationale": "I',
            "cut at max_new_tokens=512: 1 of 1 replies",
        ),
        (completion(None, ended="length"), "", "cut at max_new_tokens=512"),
        (completion(None, refusal="I cannot help."), "I cannot help.", "refused by the model: 1 of 1"),
        (completion(None, ended="tool_calls"), "", None),
        (completion("half a pair: \ud83d"), "half a pair: \\ud83d", None),
    ],
)
def test_what_the_model_wrote_is_its_reply(
    make_prompting: MakeAgent, said: Said, reply: str, remark: str | None
) -> None:
    with ScriptedServer(said) as server:
        agent = make_prompting(server)
        assert answer(agent) == reply
        assert remark is None or any(remark in told for told in agent.remarks())
        assert len(server.heard) == 1


@pytest.mark.parametrize(
    ("said", "cause"),
    [
        (error(400, "This model's maximum context length is 4096 tokens"), "too long"),
        (error(400, "no", code="context_length_exceeded"), "too long"),
        (error(413, "request entity too large"), "too long"),
        (error(400, "The response was filtered", code="content_filter"), "content filter"),
        (completion("", ended="content_filter"), "content filter"),
        (error(401, "Incorrect API key"), "refused access"),
        (error(403, "not for you"), "refused access"),
        (error(404, "The model `scripted` does not exist."), "no such model"),
        (error(402, "pay first"), "quota used up"),
        (error(429, "You exceeded your quota", code="insufficient_quota"), "quota used up"),
        (error(400, "Unsupported parameter: 'seed'"), "bad request"),
        (error(422, "extra fields"), "bad request"),
    ],
)
def test_what_will_not_pass_is_an_error_with_its_cause_after_one_try(
    make_prompting: MakeAgent, said: Said, cause: str
) -> None:
    with ScriptedServer(said) as server:
        failure = answer(make_prompting(server))
        assert isinstance(failure, NoAnswer)
        assert failure.cause == cause
        assert format_error(failure).startswith(f"NoAnswer: {cause}: ")
        assert len(server.heard) == 1


@pytest.mark.parametrize(
    ("said", "cause"),
    [
        (error(429, "slow down"), "too many requests"),
        (error(500, "oh no"), "server error"),
        (error(503, "loading the model"), "server error"),
        (Said(b"Bad Gateway", 502, {"Content-Type": "text/html"}), "server error"),
        (completion()._replace(cut=0), "server gone"),
        (completion()._replace(cut=20), "server gone"),
        (Said(b'{"choices": [{"mess'), "malformed answer"),
        (Said(b"<html>Welcome</html>", headers={"Content-Type": "text/html"}), "malformed answer"),
        (Said(b"[]"), "malformed answer"),
        (Said(b""), "malformed answer"),
        (Said(b'{"choices": []}'), "malformed answer"),
        (Said(b'{"choices": [{"message": {"content": 7}}]}'), "malformed answer"),
        (Said(b'{"choices": [{"text": "a completion, and no chat"}]}'), "malformed answer"),
        (Said(b"[" * 100_000), "malformed answer"),
        (Said(b'{"choices": [{"message": {"content": "\xff"}}]}'), "malformed answer"),
        (completion(usage=(-5, 20)), "malformed answer"),
        (completion()._replace(after_s=2.0), "timed out"),
        (completion()._replace(pause_s=0.02), "timed out"),  # a byte at a time, each of them in time
    ],
)
def test_what_may_pass_is_tried_again_and_then_an_error_or_a_reply(
    make_prompting: MakeAgent, said: Said, cause: str
) -> None:
    options = {"tries": 2, "timeout_s": 1.0 if cause == "timed out" else 20}
    with ScriptedServer(said) as server:
        failure = answer(make_prompting(server, **options))
        assert isinstance(failure, NoAnswer)
        assert failure.cause == cause
        assert len(server.heard) == 2
    with ScriptedServer(then(said, completion())) as server:
        assert answer(make_prompting(server, **options), page(1)) == REPLY
        assert len(server.heard) == 2


def visit(pages: int) -> Observation:
    """A visit with so many past pages, each of 1,000 letters of its own."""
    click = '{"type": "click", "name": "buy"}'
    past = [{"page": chr(97 + number) * 1000, "rationale": "", "action": click} for number in range(pages)]
    return {**PAGE, "history": tuple(past), "step": pages}  # type: ignore[typeddict-item]


def pages_in(request: dict[str, Any]) -> str:
    """The letters of the past pages that a request shows."""
    shown = "".join(message["content"] for message in request["messages"])
    return "".join(letter for letter in "abcdefgh" if letter * 1000 in shown)


def no_more_than(pages: int) -> Script:
    def script(request: dict[str, Any], times: int) -> Said:
        fits = len(pages_in(request)) <= pages
        return completion() if fits else error(400, "This model's maximum context length is 4096 tokens")

    return script


def test_what_is_too_long_is_sent_without_the_earliest_pages(make_prompting: MakeAgent) -> None:
    with ScriptedServer(no_more_than(2)) as server:
        agent = make_prompting(server)
        assert answer(agent, visit(5)) == REPLY
        assert [pages_in(one.request) for one in server.heard] == ["abcde", "bcde", "cde", "de"]
        assert "without the earliest pages, since all were too long: 1 replies" in agent.remarks()
        assert agent._chat.account.spending().cost.tokens == 120  # the server asks nothing for what it refuses
        left_whole = answer(make_prompting(server, shorten=False), visit(5))
        assert isinstance(left_whole, NoAnswer)
        assert left_whole.cause == "too long"
        assert len(server.heard) == 5


def test_a_page_that_is_too_long_by_itself_is_an_error(make_prompting: MakeAgent) -> None:
    with ScriptedServer(no_more_than(-1)) as server:
        failure = answer(make_prompting(server), visit(2))
        assert isinstance(failure, NoAnswer)
        assert failure.cause == "too long"
        assert [pages_in(one.request) for one in server.heard] == ["ab", "b", ""]


def test_an_answer_without_an_end_is_left(make_prompting: MakeAgent, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agents.prompting.server._MOST_BYTES", 10_000)
    with ScriptedServer(Said(b'{"choices": "' + b"x" * 20_000)) as server:
        failure = answer(make_prompting(server, tries=1))
        assert isinstance(failure, NoAnswer)
        assert "longer than 10,000 bytes" in str(failure)


def test_the_server_says_how_long_to_wait(make_prompting: MakeAgent) -> None:
    with ScriptedServer(then(error(429, "slow down", retry_after="0.4"), completion())) as server:
        assert answer(make_prompting(server, longest_wait_s=1.0)) == REPLY
        first, second = server.heard
        assert second.at_s - first.at_s >= 0.4


def test_a_wait_that_is_too_long_is_not_waited_for(make_prompting: MakeAgent) -> None:
    with ScriptedServer(error(429, "come back tomorrow", retry_after="86400")) as server:
        failure = answer(make_prompting(server))
        assert isinstance(failure, NoAnswer)
        assert failure.cause == "too many requests"
        assert len(server.heard) == 1


def test_a_server_that_sends_elsewhere_is_not_followed(make_prompting: MakeAgent) -> None:
    with ScriptedServer() as elsewhere, ScriptedServer() as server:
        there = f"{elsewhere.base_url}/chat/completions"
        server.script = lambda request, times: error(307, "moved", location=there)
        failure = answer(make_prompting(server))
        assert isinstance(failure, NoAnswer)
        assert "HTTP 307" in str(failure)
        assert not elsewhere.heard


def test_after_a_refused_key_nothing_further_is_sent(make_prompting: MakeAgent) -> None:
    with ScriptedServer(error(401, "Incorrect API key")) as server:
        agent = make_prompting(server)
        failures = [answer(agent, page(number)) for number in range(5)]
        assert {failure.cause for failure in failures if isinstance(failure, NoAnswer)} == {"refused access"}
        assert "not sent" in str(failures[-1])
        assert len(server.heard) == 1


def test_a_server_that_is_away_is_given_up_and_costs_nothing(make_prompting: MakeAgent) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        nobody = f"http://127.0.0.1:{unused.getsockname()[1]}/v1"
        agent = make_prompting(nobody, tries=2, concurrency=2, input_price=1, output_price=1, budget=1)
        failures = [answer(agent, page(number)) for number in range(12)]
    assert all(isinstance(failure, NoAnswer) and failure.cause == "server gone" for failure in failures)
    assert "8 requests in a row had no answer" in str(failures[-1])
    spending = agent._chat.account.spending()
    assert (spending.tries, spending.cost.money, spending.unknown) == (16, 0, 0)


def test_every_failure_is_of_the_vocabulary() -> None:
    assert len(set(CAUSES)) == len(CAUSES) == 13


def test_a_model_whose_name_is_a_number_is_a_text() -> None:
    """FINDINGS A18."""
    spec = parse_spec("prompting?base_url=http://localhost:1/v1&model=404&max_new_tokens=9")
    options = read_options(None, spec.arguments)
    assert (options.model, options.max_new_tokens) == ("404", 9)
