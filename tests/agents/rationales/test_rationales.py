"""Rationales that a log lacks: who is asked what, what of it comes into the new store, and what a stop costs.

1. The shopper's own rationales, pages, actions and splits stay as they are; each new rationale says who wrote it.
2. A model sees nothing of what came after, nor who the shopper is.
3. A run that is killed goes on: nothing is asked twice that was kept, the budget holds over all runs.
"""

import json
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import msgspec
import pytest

from agents.prompting.account import UNITS, Account, Budget, Prices
from agents.prompting.answers import Answer
from agents.rationales.__main__ import main
from agents.rationales.request import INSTRUCTIONS, NoRationale, rationale_in
from agents.rationales.synthesis import compute_statistics
from replay_sessions.__main__ import main as replay_sessions
from replay_sessions.demo_shop import SOURCE, generate_sessions
from replay_sessions.schema import Action, Click, Persona, Session, Step, Terminate
from replay_sessions.store import SessionStore, StoreWriter
from tests.agents.prompting.scripted_server import Said, Script, ScriptedServer, completion, digest, error, faulty

KEY = "sk-planted-4711-Zx9"
INPUT_PRICE, OUTPUT_PRICE = 0.4, 1.6


def without_some_rationales(session: Session) -> Session:
    """Every third step keeps what the shopper said."""
    steps = [
        step if number % 3 == 0 else Step(page=step.page, action=step.action, url=step.url)
        for number, step in enumerate(session.steps)
    ]
    return Session(
        session_id=session.session_id,
        user_id=session.user_id,
        steps=tuple(steps),
        source=session.source,
        persona=Persona(text=f"SECRET-PERSONA of {session.user_id}"),
        goal="SECRET-GOAL",
    )


def make_store(path: Path, sessions: int = 8) -> SessionStore:
    with StoreWriter(path, source=SOURCE, options={"seed": "5"}) as writer:
        for session in generate_sessions(sessions, seed=5):
            writer.write(without_some_rationales(session))
        writer.reject("somewhere", "for a reason")
        writer.leave_out("scroll", 7)
    return SessionStore.open(path)


def words(server: ScriptedServer, tmp_path: Path, *more: str) -> list[str]:
    given = ["--store", str(tmp_path / "store"), "--out", str(tmp_path / "told"), "--model", "writer"]
    return [*given, "--base-url", server.base_url, "--longest-wait-s", "0.05", *more]


def lacking(store: SessionStore) -> list[tuple[Session, int]]:
    return [(one, index) for one in store.sessions() for index, step in enumerate(one.steps) if not step.rationale]


def thought(request: dict[str, Any], times: int = 0) -> Said:
    """A sentence of its own for each request."""
    return completion(json.dumps({"rationale": f"I think {digest(request)}."}))


def test_each_lacking_rationale_is_written_and_all_else_stays(tmp_path: Path) -> None:
    store = make_store(tmp_path / "store")
    with ScriptedServer(thought) as server:
        assert main(words(server, tmp_path)) == 0
        assert len(server.heard) == len(lacking(store))
    new = SessionStore.open(tmp_path / "told")
    assert not lacking(new)
    for before, after in zip(store.sessions(), new.sessions(), strict=True):
        for old, step in zip(before.steps, after.steps, strict=True):
            if old.rationale:
                assert step == old
            else:
                assert re.fullmatch(r"I think [0-9a-f]{16}\.", step.rationale or "")
                assert step.rationale_source == "writer"
                assert (step.page, step.action, step.url) == (old.page, old.action, old.url)
        assert after.persona == before.persona
    assert [(row.session_id, row.split) for row in new.index()] == [
        (row.session_id, row.split) for row in store.index()
    ]
    assert new.manifest.left_out_steps == {"scroll": 7}
    assert new.manifest.rejected == 1
    assert new.manifest.options.items() >= {"seed": "5", "rationales_by": "writer"}.items()
    assert new.fingerprint != store.fingerprint


def test_the_new_store_passes_check_and_an_export_keeps_who_wrote_what(tmp_path: Path) -> None:
    with StoreWriter(tmp_path / "store", source=SOURCE) as writer:
        for session in generate_sessions(40, seed=5):
            steps = tuple(Step(page=step.page, action=step.action) for step in session.steps)
            writer.write(msgspec.structs.replace(session, steps=steps))
    with ScriptedServer(thought) as server:
        assert main(words(server, tmp_path)) == 0
    assert not lacking(SessionStore.open(tmp_path / "told"))
    told = str(tmp_path / "told")
    assert replay_sessions(["check", told, "--workers", "1"]) == 0
    assert replay_sessions(["export", "hub", told, "--out", str(tmp_path / "hub")]) == 0
    back = [*("import", "hub", str(tmp_path / "hub"), "--out", str(tmp_path / "back")), "--split-by", "official"]
    assert replay_sessions(back) == 0
    sources = {
        (session.session_id, index): step.rationale_source
        for session in SessionStore.open(told).sessions()
        for index, step in enumerate(session.steps)
    }
    for session in SessionStore.open(tmp_path / "back").sessions():
        for index, step in enumerate(session.steps):
            assert step.rationale_source == sources[session.session_id, index]


def test_a_model_sees_page_and_past_actions_and_nothing_of_later_or_of_the_person(tmp_path: Path) -> None:
    steps = tuple(Step(page=f'<a name="element_{n}">PAGE-{n}</a>', action=Click(name=f"element_{n}")) for n in range(4))
    session = Session(
        session_id="s", user_id="u", steps=steps, source="x", persona=Persona(text="SECRET"), goal="SECRET"
    )
    with StoreWriter(tmp_path / "store", source="x") as writer:
        writer.write(session)
    with ScriptedServer(thought) as server:
        assert main(words(server, tmp_path, "--concurrency", "1")) == 0
    for number, heard in enumerate(server.heard):
        text = json.dumps(heard.request)
        assert "SECRET" not in text
        assert [f"PAGE-{n}" in text for n in range(4)] == [n == number for n in range(4)]
        assert [f"element_{n}" in text for n in range(4)] == [n <= number for n in range(4)]
        assert heard.request["messages"][0]["content"] == INSTRUCTIONS


def test_instructions_of_ones_own_schema_and_further_fields_are_sent(tmp_path: Path) -> None:
    make_store(tmp_path / "store", 1)
    (tmp_path / "mine.txt").write_text("Say why.\n")
    more = ["--prompt", str(tmp_path / "mine.txt"), "--schema", "--request", '{"top_p": 0.5}', "--temperature", "0.7"]
    with ScriptedServer(thought) as server:
        assert main(words(server, tmp_path, *more, "--page-characters", "200")) == 0
    for heard in server.heard:
        assert heard.request["messages"][0]["content"] == "Say why."
        assert heard.request["response_format"]["json_schema"]["name"] == "rationale"
        assert (heard.request["top_p"], heard.request["temperature"], heard.request["seed"]) == (0.5, 0.7, 0)
    assert any("characters left out" in heard.request["messages"][1]["content"] for heard in server.heard)


def test_only_the_split_that_was_asked_for_is_asked_about(tmp_path: Path) -> None:
    store = make_store(tmp_path / "store", 40)
    with ScriptedServer(thought) as server:
        assert main(words(server, tmp_path, "--split", "test")) == 0
    new = SessionStore.open(tmp_path / "told")
    assert not [one for one in new.sessions("test") for step in one.steps if not step.rationale]
    assert list(new.sessions("train")) == list(store.sessions("train"))


@pytest.mark.parametrize(
    ("said", "told"),
    [
        (completion(None, refusal="I cannot help with shopping."), "refused"),
        (completion('{"rationale": "I\'m sorry, but I cannot."}'), "refused"),
        (completion("As an AI, I do not shop."), "refused"),
        (completion('{"rationale": "I nee', ended="length"), "cut"),
        (completion("I need a hat."), "malformed"),
        (completion('{"rationale": ""}'), "malformed"),
        (completion('{"rationale": 7}'), "malformed"),
    ],
)
def test_an_answer_without_a_rationale_is_counted_and_leaves_the_step_as_it_was(
    said: Said, told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = make_store(tmp_path / "store", 2)
    with ScriptedServer(said) as server:
        assert main(words(server, tmp_path)) == 0
    assert list(SessionStore.open(tmp_path / "told").sessions()) == list(store.sessions())
    assert f"no rationale in the answer: {len(lacking(store))} {told}" in capsys.readouterr().out


def test_steps_without_an_answer_keep_the_store_from_being_written_until_they_have_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = make_store(tmp_path / "store", 4)
    down = True

    def script(request: dict[str, Any], times: int) -> Said:
        return error(500, "oh no") if down and digest(request)[0] in "01234567" else thought(request)

    with ScriptedServer(script) as server:
        assert main(words(server, tmp_path, "--tries", "1")) == 1
        said = capsys.readouterr().out
        assert "steps have no answer, so" in said
        assert "server error: HTTP 500, oh no" in said
        assert not (tmp_path / "told").exists()
        assert main(words(server, tmp_path, "--tries", "1", "--partial")) == 0
        partial = len(lacking(SessionStore.open(tmp_path / "told")))
        assert 0 < partial < len(lacking(store))
        down = False
        assert main(words(server, tmp_path, "--overwrite")) == 0
        assert not lacking(SessionStore.open(tmp_path / "told"))
        assert set(Counter(map(digest, server.answered)).values()) == {1}


def test_a_budget_stops_the_run_and_a_larger_one_goes_on(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store = make_store(tmp_path / "store", 6)
    prices = ["--input-price", str(INPUT_PRICE), "--output-price", str(OUTPUT_PRICE)]
    with ScriptedServer(thought) as server:
        budget = 0.0035
        assert main(words(server, tmp_path, *prices, "--budget", str(budget))) == 1
        assert "budget used up" in capsys.readouterr().out
        assert 0 < charged(server) <= budget * UNITS
        assert main(words(server, tmp_path, *prices, "--budget", "1")) == 0
        assert len(server.answered) == len(lacking(store))
        assert spent(tmp_path) == charged(server)


def charged(server: ScriptedServer) -> int:
    """What the server asks for all that it answered: 100 tokens read and 20 written each."""
    prices = Prices.of(INPUT_PRICE, OUTPUT_PRICE)
    assert prices is not None
    return prices.cost(100, 20) * len(server.answered)


def spent(tmp_path: Path) -> int:
    with Account(tmp_path / "told.rationales.sqlite", Budget()) as account:
        return account.spending().cost.money


def test_no_key_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    make_store(tmp_path / "store", 2)
    with ScriptedServer(completion(json.dumps({"rationale": f"I like {KEY}."}))) as server:
        assert main(words(server, tmp_path)) == 0
        assert {one.key for one in server.heard} == {f"Bearer {KEY}"}
    assert not [path for path in tmp_path.rglob("*") if path.is_file() and KEY.encode() in path.read_bytes()]
    assert all(
        KEY not in (step.rationale or "")
        for one in SessionStore.open(tmp_path / "told").sessions()
        for step in one.steps
    )
    printed = capfd.readouterr()
    assert KEY not in printed.out + printed.err


@pytest.mark.parametrize(
    ("more", "told"),
    [
        (["--out", "STORE"], "is the store itself"),
        (["--budget", "1"], "needs prices"),
        (["--prompt", "no_such_file"], "cannot be read as UTF-8 text"),
        (["--request", "top_p"], "--request is no JSON"),
        (["--request", '{"stream": true}'], "extra.stream is a field that the agent fills itself"),
        (["--page-characters", "0"], "--page-characters is 0, and at least 1 was expected"),
    ],
)
def test_a_wrong_call_is_one_line_before_anything_is_asked(
    more: list[str], told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    make_store(tmp_path / "store", 1)
    more = [str(tmp_path / "store") if word == "STORE" else word for word in more]
    with ScriptedServer() as server:
        assert main([*words(server, tmp_path), *more]) == 2
        assert not server.heard
    said = capsys.readouterr().err
    assert told in said
    assert said.count("\n") == 1


def test_figures_count_names_words_and_repetitions() -> None:
    red: Action = Click(name="results.red_wool_hat.view")
    figures = compute_statistics(
        [
            (red, "I click results.red_wool_hat.view now."),
            (red, "The red hat of wool is nice."),
            (red, "I view it."),
            (red, "i  VIEW it."),
            (Terminate(), "Enough."),
            (Click(name="search"), "I search."),
        ]
    )
    assert figures.count == 6
    assert (figures.name_verbatim, figures.name_words, figures.duplicates) == (1, 2, 1)
    assert figures.words == (1, 3, 6, 7)
    assert compute_statistics([]).words == ()


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('{"rationale": "I need\\n a hat."}', "I need a hat."),
        ('```json\n{"rationale": "I need a hat."}\n```', "I need a hat."),
        ('<think>{"rationale": "no"}</think>{"rationale": "yes"}', "yes"),
        ('{"rationale": "a"} {"rationale": "b"}', NoRationale("malformed", '{"rationale": "a"} {"rationale": "b"}')),
    ],
)
def test_a_rationale_is_found_in_fences_and_behind_thoughts(text: str, found: Any) -> None:
    assert rationale_in(Answer(text=text, ended="stop")) == found


def run_until(server: ScriptedServer, given: list[str], heard: int | None, stop: signal.Signals) -> int:
    process = subprocess.Popen(
        [sys.executable, "-m", "agents.rationales", *given], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    while heard is not None and len(server.heard) < heard and process.poll() is None:
        time.sleep(0.005)
    if heard is not None:
        process.send_signal(stop)
    return process.wait(timeout=300)


@pytest.mark.slow
def test_five_hundred_steps_survive_kills_and_keep_the_budget_to_the_cent(tmp_path: Path) -> None:
    store = make_store(tmp_path / "store", 160)
    steps = len(lacking(store))
    assert steps >= 500
    slow = completion('{"rationale": "I like it."}', usage=(900, 20))._replace(after_s=0.05)
    script: Script = faulty(0.1, answer=slow)
    prices = ["--input-price", str(INPUT_PRICE), "--output-price", str(OUTPUT_PRICE), "--budget", "1"]
    with ScriptedServer(script) as server:
        given = words(server, tmp_path, *prices)
        for stop in (signal.SIGKILL, signal.SIGINT, signal.SIGKILL):
            run_until(server, given, len(server.heard) + 120, stop)
            assert not (tmp_path / "told").exists()
        assert run_until(server, given, None, signal.SIGKILL) == 0
        # What was answered when the process was killed may be asked again: at most what was under way.
        twice = len(server.answered) - len(set(map(digest, server.answered)))
        assert twice <= 2 * 16
        prices_of = Prices.of(INPUT_PRICE, OUTPUT_PRICE)
        assert prices_of is not None
        asked_for = prices_of.cost(900, 20) * len(server.answered)
        assert asked_for <= spent(tmp_path) <= 1 * UNITS
    assert not lacking(SessionStore.open(tmp_path / "told"))


def test_the_first_rationale_from_which_the_action_is_reconstructed_is_taken(tmp_path: Path) -> None:
    """The action is reconstructed from the second rationale of a click, and from none of a termination."""
    names = ("shop.red_kettle.view", "shop.tea.view")
    clicks = [Step(page=f'<a name="{name}">x</a>', action=Click(name=name)) for name in names]
    steps = (*clicks, Step(page="<p>", action=Terminate()))
    with StoreWriter(tmp_path / "store", source="x") as writer:
        writer.write(Session(session_id="s", user_id="u", steps=steps, source="x"))
    asked = []

    def answer(request: dict[str, Any], times: int = 0) -> Said:
        text = request["messages"][-1]["content"]
        if "## What the person thinks" in text:
            assert "## What the person did" not in text
            asked.append(request["model"])
            name = text.partition('<a name="')[2].partition('"')[0]
            action = {"type": "click", "name": name if "seed 6" in text else "elsewhere"}
            return completion(json.dumps({"rationale": "x", "action": action}))
        copied = names[1] if names[1] in text.rpartition("did")[2] and request["seed"] == 5 else ""
        return completion(json.dumps({"rationale": f"seed {request['seed']} {copied}"}))

    options = ["--temperature", "0.8", "--reconstruct", "2", "--reconstructed-by", "reader", "--seed", "5"]
    with ScriptedServer(answer) as server:
        assert main(words(server, tmp_path, *options, "--concurrency", "1")) == 0
        sent = len(server.heard)
        assert main(words(server, tmp_path, *options, "--overwrite")) == 0
        assert len(server.heard) == sent, "every answer was stored"
    (session,) = SessionStore.open(tmp_path / "told").sessions()
    assert [step.rationale for step in session.steps] == ["seed 6", "seed 6", None]
    # Twice for the first click, once for the second, whose first rationale is a copy, and twice for the termination.
    assert asked == ["reader"] * 5
    report = json.loads((tmp_path / "told.rationales.json").read_text())["report"]
    assert report["without"] == {"not reconstructed": 1}
    assert (report["synthesised"]["count"], report["synthesised"]["name_verbatim"]) == (2, 0)


def test_several_draws_need_a_temperature(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with ScriptedServer(thought) as server:
        assert main(words(server, tmp_path, "--reconstruct", "3")) == 2
    assert "at --temperature 0 all are the same" in capsys.readouterr().err.replace("\n", " ")
