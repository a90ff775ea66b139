"""The options that identify a row, those that go into a request, and the wrong ones."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agents.prompting.agent import PromptingAgent
from agents.prompting.options import PromptingOptions, parse_options
from agents.registry import make_agent, parse_spec
from benchmarks.leaderboard.__main__ import main as leaderboard
from replay_sessions.foundation.errors import BadConfig
from shop_env.evaluation.answering import generate_batch
from tests.agents.prompting.scripted_server import ScriptedServer, completion
from tests.scored_steps import first_seen

MakeAgent = Callable[..., PromptingAgent]
PAGE = first_seen('<a name="buy">Buy</a>')
USUAL = {"base_url": "http://127.0.0.1:1/v1", "model": "one"}
DECIDING: dict[str, Any] = {
    "base_url": "http://127.0.0.1:2/v1",
    "model": "another",
    "temperature": 0.7,
    "max_new_tokens": 99,
    "extra": {"top_p": 0.5},
    "schema": True,
    "system_role": "first_user",
    "shots": 1,
    "shot_seed": 4,
    "shot_page_characters": 50,
    "style": "customer_r1",
    "typing": "input",
    "scrolls": True,
    "system_file": "mine.txt",
}
OTHERS: dict[str, Any] = {
    "key_env": "MY_KEY",
    "concurrency": 3,
    "timeout_s": 9.0,
    "max_retries": 2,
    "token_limit": 5,
}


@pytest.mark.parametrize("name", PromptingOptions.__struct_fields__)
def test_an_option_changes_the_rows_identity_if_it_decides_replies(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("mine.txt").write_text("Shop as I would.")
    changed = USUAL | {name: (DECIDING | OTHERS)[name]}
    is_same = PromptingAgent.deciding_arguments(USUAL) == PromptingAgent.deciding_arguments(changed)
    assert is_same == (name in OTHERS)


def test_the_content_of_the_instructions_identifies_a_row(tmp_path):
    identities = []
    for number, text in enumerate(["Shop as I would.", "Shop as I would.", "Shop as you would."]):
        file = tmp_path / f"{number}.txt"
        file.write_text(text)
        identities.append(PromptingAgent.deciding_arguments({**USUAL, "system_file": str(file)}))
    assert identities[0] == identities[1] != identities[2]


def test_a_request_holds_the_options(make_prompting):
    renamed = {"max_tokens": None, "max_completion_tokens": 9, "top_p": 0.5}
    with ScriptedServer() as server:
        for options in (
            {"temperature": 0.7, "extra": renamed},
            {"temperature": 0.7, "extra": {"temperature": None, "seed": None}},
            {},
        ):
            generate_batch(make_prompting(server, **options), [PAGE], [7])
    sent = [
        {key: value for key, value in received.request.items() if key != "messages"} for received in server.received
    ]
    assert sent == [
        {"model": "scripted", "temperature": 0.7, "max_completion_tokens": 9, "top_p": 0.5, "seed": 7},
        {"model": "scripted", "max_tokens": 512},
        {"model": "scripted", "temperature": 0.0, "max_tokens": 512},
    ]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("", "needs base_url and model"),
        ("base_url=http://a/v1", "needs model"),
        ("base_url=http://a/v1&model=m&temprature=1", "Did you mean 'temperature'"),
        ("base_url=http://a/v1&model=m&shots=x", "Expected `int`"),
        ("base_url=ftp://a/v1&model=m", "base_url"),
        ("base_url=http://a/v1&model=m&temperature=-1", "temperature"),
        ("base_url=http://a/v1&model=m&max_retries=-1", "max-retries"),
        ("base_url=http://a/v1&model=m&shots=2", "no store"),
    ],
)
def test_a_wrong_option_is_named(arguments, message):
    with pytest.raises(BadConfig) as error:
        make_agent(f"prompting?{arguments}")
    assert message in str(error.value)


def test_a_numeric_model_name_is_a_text():
    spec = parse_spec("prompting?base_url=http://localhost:1/v1&model=404&max_new_tokens=9")
    options = parse_options(spec.arguments)
    assert (options.model, options.max_new_tokens) == ("404", 9)


def test_the_docs_name_every_option():
    page = (Path(__file__).parents[3] / "docs" / "prompting.md").read_text(encoding="utf-8")
    assert [name for name in PromptingOptions.__struct_fields__ if name not in page] == []


def test_the_leaderboard_keeps_the_replies(demo_store, tmp_path, capsys):
    with ScriptedServer(completion(ended="length")) as server:
        spec = f"zero=prompting?base_url={server.base_url}&model=scripted"
        words = f"--store {demo_store.path} --split test --out {tmp_path}/board".split()
        assert leaderboard([*words, "--agents", f"{spec}&concurrency=32"]) == 0
        steps = len(server.received)
        assert f"cut at max_new_tokens=512: {steps} replies" in capsys.readouterr().out
        assert leaderboard([*words, "--agents", f"{spec}&concurrency=2"]) == 0
        assert len(server.received) == steps
        assert leaderboard([*words, "--agents", f"{spec}&schema=true"]) == 0
        assert len(server.received) == 2 * steps
