"""The key goes into the header of a request, and nowhere else: no file, no log, no terminal, no error."""

import logging
from pathlib import Path

import pytest

from agents.prompting.agent import PromptingAgent
from agents.registry import make_agent
from benchmarks.leaderboard.__main__ import main as leaderboard
from replay_sessions.foundation.errors import BadConfig
from tests.agents.prompting.scripted_server import Response, ScriptedServer, completion, error
from tests.scored_steps import first_seen

KEY = "sk-planted-4711-Zx9"


def everything_in(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file() and KEY.encode() in path.read_bytes()]


@pytest.mark.parametrize(
    "response",
    [
        completion(f'{{"rationale": "My key is {KEY}.", "action": {{"type": "terminate"}}}}'),
        completion(None, refusal=f"Not with {KEY}."),
        completion(ended=KEY),
        error(401, f"Incorrect API key provided: {KEY}"),
        error(400, f"bad header: Bearer {KEY}"),
        error(500, f"crashed while handling Bearer {KEY}"),
        Response(f"<html>{KEY}</html>".encode()),
        Response(KEY.encode(), 502, {"Content-Type": "text/plain"}),
        completion()._replace(cut=5),
    ],
)
def test_a_server_that_repeats_the_key_gets_it_nowhere(
    response,
    demo_store,
    tmp_path,
    monkeypatch,
    capfd,
    caplog,
):
    monkeypatch.setenv("MY_KEY", KEY)
    caplog.set_level(logging.DEBUG)
    log = logging.FileHandler(tmp_path / "log.txt", encoding="utf-8")
    logging.getLogger().addHandler(log)
    try:
        with ScriptedServer(response) as server:
            spec = f"zero=prompting?base_url={server.base_url}&model=m&key_env=MY_KEY&max_retries=1"
            words = ["--agents", spec, "--store", str(demo_store.path), "--sessions", "1"]
            leaderboard([*words, "--out", str(tmp_path / "board")])
            assert {received.key for received in server.received} == {f"Bearer {KEY}"}
    finally:
        logging.getLogger().removeHandler(log)
        log.close()
    assert (tmp_path / "log.txt").stat().st_size > 0
    assert everything_in(tmp_path) == []
    printed = capfd.readouterr()
    assert KEY not in printed.out + printed.err + caplog.text
    assert (tmp_path / "board" / "results.json").exists()


@pytest.mark.parametrize(
    "spec",
    [
        f"prompting?base_url=http://{KEY}@127.0.0.1:1/v1&model=m",
        f"prompting?base_url=http://127.0.0.1:1/v1%3Fkey={KEY}&model=m",
        f"prompting?base_url={KEY}&model=m",
        f"prompting?base_url=http://127.0.0.1:1/v1&model=m&key_env={KEY}",
        f"prompting?base_url=http://127.0.0.1:1/v1&model=m&api_key={KEY}",
        f"prompting?base_url=http://127.0.0.1:1/v1&model=m&concurrency={KEY}",
    ],
)
def test_a_key_in_the_wrong_place_is_refused_and_not_repeated(spec):
    with pytest.raises(BadConfig) as refused:
        make_agent(spec)
    assert KEY not in str(refused.value)


def test_a_placeholder_for_a_key_is_kept_in_replies(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    with ScriptedServer(completion("none of these")) as server:
        agent = make_agent(f"prompting?base_url={server.base_url}&model=m")
        assert isinstance(agent, PromptingAgent)
        assert agent.act(first_seen("")) == "none of these"
        agent.close()


def test_without_a_key_none_of_the_environment_is_sent(
    monkeypatch,
):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with ScriptedServer() as server:
        spec = f"prompting?base_url={server.base_url}&model=m&key_env=MY_KEY"
        agent = make_agent(spec)
        assert isinstance(agent, PromptingAgent)
        agent.act(first_seen(""))
        agent.close()
        assert [received.key for received in server.received] == ["Bearer no-key"]
