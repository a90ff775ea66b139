"""Nothing is asked twice that was answered: over runs, in one run, in two threads, and after kills."""

import json
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agents.prompting.agent import PromptingAgent
from agents.prompting.answers import CAUSES
from agents.prompting.chat import answer_key
from agents.prompting.options import NOT_DECIDING, PromptingOptions
from benchmarks.leaderboard.__main__ import main as leaderboard
from replay_sessions.store import SessionStore
from shop_env.evaluation.generate import generate_batch, generate_replies
from shop_env.evaluation.scored_steps import scored_steps
from shop_env.observation import Observation
from tests.agents.prompting.scripted_server import ScriptedServer, completion, digest, error, faulty
from tests.demo_stores import demo_store_at

MakeAgent = Callable[..., PromptingAgent]
PAGE: Observation = {"page": '<a name="buy">Buy</a>', "history": (), "persona": "", "goal": "", "step": 0}
OPTIONS = PromptingOptions(base_url="http://127.0.0.1:1/v1", model="one")
OTHER: dict[str, Any] = {
    "base_url": "http://127.0.0.1:2/v1",
    "model": "another",
    "key_env": "MY_KEY",
    "temperature": 0.7,
    "max_new_tokens": 99,
    "limit_field": "max_completion_tokens",
    "send_seed": False,
    "extra": {"top_p": 0.5},
    "concurrency": 3,
    "timeout_s": 9.0,
    "tries": 2,
    "longest_wait_s": 3.0,
    "cache": "elsewhere",
    "reuse": False,
    "input_price": 1.0,
    "output_price": 2.0,
    "budget": 4.0,
    "budget_tokens": 5,
    "schema": True,
    "choice": True,
    "history": "described",
    "shorten": False,
    "shots": 1,
    "shot_seed": 4,
    "shot_page_characters": 50,
    "system_file": "mine.txt",
}


def heard_of(agent: PromptingAgent, store: SessionStore) -> list[dict[str, Any]]:
    """What the agent sends at the second step of a session, apart from where to."""
    step = next(step for step in scored_steps(store, "test") if step.step_index == 2)
    with ScriptedServer() as server:
        agent._chat._server._client.base_url = server.base_url
        generate_batch(agent, [step.observation], [7])
        agent.close()
    return [one.request for one in server.heard]


def test_every_option_is_tried_here() -> None:
    assert OTHER.keys() == set(PromptingOptions.__struct_fields__)


@pytest.mark.parametrize("name", sorted(OTHER.keys() - NOT_DECIDING))
def test_an_option_that_decides_a_reply_changes_the_rows_identity(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("mine.txt").write_text("Shop as I would.")
    given = {"base_url": OPTIONS.base_url, "model": "one"}
    changed = given | {name: OTHER[name]}
    assert PromptingAgent.deciding_arguments(given) != PromptingAgent.deciding_arguments(changed)


# `shorten` decides which request is answered, and nothing of any request.
@pytest.mark.parametrize("name", sorted(OTHER.keys() - NOT_DECIDING - {"shorten"}))
def test_an_option_that_decides_an_answer_changes_what_it_is_kept_under(
    name: str, demo_store: SessionStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("mine.txt").write_text("Shop as I would.")
    # Where an option matters only beside another, both sides have that other.
    beside = {"shot_seed": {"shots": 1}, "shot_page_characters": {"shots": 1}, "send_seed": {"temperature": 0.7}}
    usual = {"base_url": OPTIONS.base_url, "model": "one", "temperature": 0.0} | beside.get(name, {})
    changed = usual | {name: OTHER[name]}
    one, two = (PromptingAgent(str(demo_store.path), cache="asked", **options) for options in (usual, changed))
    (sent,), (sent_two,) = (heard_of(agent, demo_store) for agent in (one, two))
    keys = {answer_key(agent.options.base_url, request, 7) for agent, request in ((one, sent), (two, sent_two))}
    assert len(keys) == 2


@pytest.mark.parametrize("name", sorted(NOT_DECIDING))
def test_all_other_options_change_neither(name: str) -> None:
    given = {"base_url": OPTIONS.base_url, "model": "one", "input_price": 3.0, "output_price": 3.0}
    changed = given | {name: OTHER[name]}
    assert PromptingAgent.deciding_arguments(given) == PromptingAgent.deciding_arguments(changed)
    one, two = (msgspec.convert(options, PromptingOptions) for options in (given, changed))
    assert one.request_fields(7) == two.request_fields(7)


@settings(max_examples=60, deadline=None)
@given(
    field=st.sampled_from(["model", "messages", "temperature", "max_tokens", "seed", "response_format", "extra_field"]),
    values=st.lists(
        st.one_of(st.text(max_size=5), st.integers(0, 99), st.dictionaries(st.text(max_size=3), st.text(max_size=3))),
        min_size=2,
        max_size=2,
        unique_by=repr,
    ),
)
def test_two_requests_that_differ_anywhere_have_two_keys(field: str, values: list[Any]) -> None:
    keys = {answer_key("http://a/v1", {"model": "m", "messages": [], field: value}, None) for value in values}
    assert len(keys) == 2
    request = {field: values[0], "z": 1}
    backwards = {"z": 1, field: values[0]}
    assert answer_key("http://a/v1", request, 1) == answer_key("http://a/v1/", backwards, 1)
    assert answer_key("http://a/v1", request, 1) != answer_key("http://a/v1", request, 2)


def test_two_draws_of_one_page_are_two_questions_and_two_greedy_ones_are_one(make_prompting: MakeAgent) -> None:
    with ScriptedServer() as server:
        drawing = make_prompting(server, temperature=1.0, send_seed=False)
        generate_batch(drawing, [PAGE, PAGE, PAGE], [1, 2, 1])
        assert len(server.heard) == 2
        generate_batch(make_prompting(server), [PAGE, PAGE, PAGE], [1, 2, 1])
        assert len(server.heard) == 3


def test_of_threads_that_ask_the_same_one_asks(make_prompting: MakeAgent) -> None:
    with ScriptedServer(completion()._replace(after_s=0.05)) as server:
        agent = make_prompting(server)
        threads = [threading.Thread(target=generate_batch, args=(agent, [PAGE], [0])) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(server.heard) == 1


def test_a_failure_is_not_kept(make_prompting: MakeAgent) -> None:
    with ScriptedServer(lambda request, times: error(400, "not yet") if times == 0 else completion()) as server:
        agent = make_prompting(server)
        assert isinstance(generate_batch(agent, [PAGE], [0])[0], Exception)
        assert isinstance(generate_batch(agent, [PAGE], [0])[0], str)
        assert len(server.heard) == 2


def test_a_reply_that_a_filter_took_away_is_not_paid_for_twice(make_prompting: MakeAgent) -> None:
    with ScriptedServer(completion("", ended="content_filter")) as server:
        found = [generate_batch(make_prompting(server), [PAGE], [0])[0] for _ in range(3)]
        assert all("content filter" in str(one) for one in found)
        assert len(server.heard) == 1


def test_an_agent_told_to_ask_anew_does_so_once(make_prompting: MakeAgent) -> None:
    with ScriptedServer() as server:
        generate_batch(make_prompting(server), [PAGE], [0])
        anew = make_prompting(server)
        anew.ask_anew()
        generate_batch(anew, [PAGE, PAGE], [0, 0])
        assert len(server.heard) == 2


def test_a_run_that_is_left_goes_on_where_it_was(make_prompting: MakeAgent, demo_store: SessionStore) -> None:
    """Left five times in the middle, as by Ctrl-C: what was under way is kept, and asked by no later run."""
    steps = list(scored_steps(demo_store, "all"))[:60]
    with ScriptedServer(faulty(0.15, slow_s=0.05)) as server:
        for stop in (7, 15, 22, 31, 40, None):
            agent = make_prompting(server, concurrency=8)
            answers = generate_replies(agent, steps)
            for _ in zip(range(stop or len(steps)), answers, strict=False):
                pass
            answers.close()  # type: ignore[attr-defined]
            while agent._chat._pending:
                time.sleep(0.01)
        assert agent._chat.counts["cached"] >= 40
        asked = Counter(digest(request) for request in server.answered)
    assert set(asked.values()) == {1}


def big_store(path: Path, sessions: int) -> SessionStore:
    return demo_store_at(path, sessions, seed=11)


def rank_words(server: ScriptedServer, store: SessionStore, tmp_path: Path, **options: Any) -> list[str]:
    given = {
        "base_url": server.base_url,
        "model": "scripted",
        "cache": tmp_path / "asked.sqlite",
        "longest_wait_s": 0.1,
        "concurrency": 32,
        **options,
    }
    spec = "zero=prompting?" + "&".join(f"{name}={value}" for name, value in given.items())
    words = ["--agents", spec, "--store", str(store.path), "--split", "all", "--out", str(tmp_path / "board")]
    return [*words]


def kept_keys(cache: Path) -> set[str]:
    if not cache.exists():
        return set()
    with closing(sqlite3.connect(cache)) as file:
        return {key for (key,) in file.execute("SELECT key FROM answers")}


@pytest.mark.slow
def test_two_thousand_steps_on_a_faulty_server_killed_five_times_end_scored_or_with_a_cause(tmp_path: Path) -> None:
    store = big_store(tmp_path / "store", 420)
    with ScriptedServer(faulty(0.15, answer=completion()._replace(after_s=0.05), slow_s=1.0)) as server:
        words = rank_words(server, store, tmp_path, tries=4, timeout_s=30)
        for stop in (signal.SIGKILL, signal.SIGINT, signal.SIGKILL, signal.SIGINT, signal.SIGKILL, None):
            kept, before = kept_keys(tmp_path / "asked.sqlite"), len(server.heard)
            said, code = run_until(server, words, before + 350, stop)
            again = [one for one in server.heard[before:] if answer_key(server.base_url, one.request, None) in kept]
            assert not again
            assert code == {signal.SIGKILL: -signal.SIGKILL, signal.SIGINT: 130, None: 0}[stop], said
        # Beyond what was kept, a kill may lose what was answered and not yet read: at most what was under way.
        asked = Counter(digest(request) for request in server.answered)
        assert sum(asked.values()) - len(asked) <= 3 * 32
    entry = json.loads((tmp_path / "board" / "results.json").read_text())["entries"][0]
    errors = [record["error"] for record in records(tmp_path / "board") if record.get("error")]
    assert entry["row"]["steps"] + len(errors) >= 2000
    assert all(error.startswith(tuple(f"NoAnswer: {cause}: " for cause in CAUSES)) for error in errors)
    assert len(errors) <= 20


def run_until(
    server: ScriptedServer, words: list[str], heard: int, stop: signal.Signals | None
) -> tuple[str, int | None]:
    """Runs the leaderboard until the server heard so much, then stops it; what it said, and its exit code."""
    command = [sys.executable, "-m", "benchmarks.leaderboard", *words]
    run = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    while stop is not None and len(server.heard) < heard and run.poll() is None:
        time.sleep(0.01)
    if stop is not None:
        run.send_signal(stop)
    said, _ = run.communicate(timeout=600)
    return said, run.returncode


def records(board: Path) -> list[dict[str, Any]]:
    (file,) = board.glob("agents/*/steps.jsonl")
    return [json.loads(line) for line in file.read_text().splitlines()]


def test_the_leaderboard_counts_anew_from_kept_replies_and_from_kept_answers(
    demo_store: SessionStore, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with ScriptedServer(completion(ended="length")) as server:
        words = rank_words(server, demo_store, tmp_path)
        assert leaderboard(words) == 0
        first = len(server.heard)
        assert f"cut at max_new_tokens=512: {first} of {first} replies" in capsys.readouterr().out
        assert leaderboard(words) == 0  # its own kept replies
        other = [word.replace("concurrency=32", "concurrency=2") for word in words]
        assert leaderboard(other) == 0  # another way to ask: the agent's kept answers
        assert len(server.heard) == first
        assert leaderboard([*words, "--fresh"]) == 0
        assert len(server.heard) == 2 * first
        verify = ["verify", str(tmp_path / "board"), "--rerun", "3", "--store", str(demo_store.path)]
        assert leaderboard(verify) == 1  # the address that the folder names is asked only if the caller names it too
        assert len(server.heard) == 2 * first
        assert leaderboard([*verify, "--trust", words[words.index("--agents") + 1]]) == 0
        assert len(server.heard) == 2 * first + 3  # what the agent keeps proves nothing


def test_a_changed_file_of_options_asks_anew(demo_store: SessionStore, tmp_path: Path) -> None:
    with ScriptedServer() as server:
        options = tmp_path / "options.toml"
        words = ["--agents", f"zero=prompting?options={options}", "--store", str(demo_store.path)]
        words += ["--split", "test", "--out", str(tmp_path / "board")]
        usual = f'base_url = "{server.base_url}"\nmodel = "scripted"\ncache = "{tmp_path / "asked"}"\n'
        options.write_text(usual)
        assert leaderboard(words) == 0
        first = len(server.heard)
        options.write_text(usual + "schema = true\n")
        assert leaderboard(words) == 0
        assert len(server.heard) == 2 * first
        options.write_text(usual + "schema = true\nconcurrency = 2\n")
        assert leaderboard(words) == 0
        assert len(server.heard) == 2 * first
