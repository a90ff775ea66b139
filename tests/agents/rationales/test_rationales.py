"""Rationales that a log lacks: who is asked what, what of it comes into the new store, and what a stop costs.

1. The shopper's own rationales, pages, actions and splits stay as they are; each new rationale says who wrote it.
2. A model sees nothing of what came after, nor who the shopper is.
3. A run that is stopped goes on: nothing is asked twice that was kept.
"""

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import msgspec
import pytest

from agents.rationales.__main__ import main
from agents.rationales.report import compute_statistics
from agents.rationales.request import INSTRUCTIONS, NoRationale, parse_rationale
from replay_sessions.__main__ import main as replay_sessions
from replay_sessions.demo_shop import SOURCE, generate_sessions
from replay_sessions.foundation.locks import working_alone_in
from replay_sessions.schema import Action, Click, Persona, Session, Step, Terminate
from replay_sessions.store import SessionStore, StoreWriter
from replay_sessions.store.manifest import WrittenRationales
from shop_env.evaluation.scored_steps import AnySplit
from tests.agents.prompting.scripted_server import Response, ScriptedServer, completion, digest, error
from tests.stores import store_at

KEY = "sk-planted-4711-Zx9"


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
    given = f"--store {tmp_path}/store --out {tmp_path}/told --model writer --split all --by step".split()
    return [*given, "--base-url", server.base_url, *more]


def test_two_runs_do_not_ask_at_once(tmp_path, capsys):
    make_store(tmp_path / "store")
    with ScriptedServer(thought) as server, working_alone_in(tmp_path, ".told.rationales.lock"):
        assert main(words(server, tmp_path)) == 2
        assert not server.received
    assert "another process is at work" in capsys.readouterr().err


def lacking(store: SessionStore, split: AnySplit = "all") -> list[tuple[Session, int]]:
    return [(one, index) for one in store.sessions(split) for index, step in enumerate(one.steps) if not step.rationale]


def thought(request: dict[str, Any], times: int = 0) -> Response:
    """A sentence of its own for each request."""
    return completion(json.dumps({"rationale": f"I think {digest(request)}."}))


def test_each_lacking_rationale_is_written_and_all_else_stays(tmp_path):
    store = make_store(tmp_path / "store")
    with ScriptedServer(thought) as server:
        assert main(words(server, tmp_path)) == 0
        assert len(server.received) == len(lacking(store))
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
    assert new.manifest.options == store.manifest.options
    assert new.fingerprint != store.fingerprint


def test_the_new_store_passes_check_and_an_export_keeps_writers(tmp_path):
    with StoreWriter(tmp_path / "store", source=SOURCE) as writer:
        for session in generate_sessions(40, seed=5):
            steps = tuple(Step(page=step.page, action=step.action) for step in session.steps)
            writer.write(msgspec.structs.replace(session, steps=steps))
    with ScriptedServer(thought) as server:
        assert main(words(server, tmp_path)) == 0
    assert not lacking(SessionStore.open(tmp_path / "told"))
    told = str(tmp_path / "told")
    assert replay_sessions(["check", told]) == 0
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


def test_a_model_sees_page_and_past_actions_and_nothing_of_later_or_of_the_person(tmp_path):
    steps = tuple(Step(page=f'<a name="element_{n}">PAGE-{n}</a>', action=Click(name=f"element_{n}")) for n in range(4))
    session = Session(
        session_id="s", user_id="u", steps=steps, source="x", persona=Persona(text="SECRET"), goal="SECRET"
    )
    store_at(tmp_path / "store", [session])
    with ScriptedServer(thought) as server:
        assert main(words(server, tmp_path, "--concurrency", "1")) == 0
    for number, received in enumerate(server.received):
        text = json.dumps(received.request)
        assert "SECRET" not in text
        assert [f"PAGE-{n}" in text for n in range(4)] == [n == number for n in range(4)]
        assert [f"element_{n}" in text for n in range(4)] == [n <= number for n in range(4)]
        assert received.request["messages"][0]["content"] == INSTRUCTIONS["step"]


def test_instructions_of_ones_own_schema_and_further_fields_are_sent(tmp_path):
    make_store(tmp_path / "store", 1)
    (tmp_path / "mine.txt").write_text("Say why.\n")
    more = ["--prompt", str(tmp_path / "mine.txt"), "--schema", "--extra", '{"top_p": 0.5}', "--temperature", "0.7"]
    with ScriptedServer(thought) as server:
        assert main(words(server, tmp_path, *more, "--page-characters", "200")) == 0
    for received in server.received:
        assert received.request["messages"][0]["content"] == "Say why."
        assert received.request["response_format"]["json_schema"]["name"] == "rationale"
        assert (received.request["top_p"], received.request["temperature"], received.request["seed"]) == (0.5, 0.7, 0)
    assert any("characters left out" in received.request["messages"][1]["content"] for received in server.received)


def test_only_the_split_that_was_asked_for_is_asked_about(tmp_path):
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
        (completion('{"rationale": "I nee', ended="length"), "malformed"),
        (completion("I need a hat."), "malformed"),
        (completion('{"rationale": ""}'), "malformed"),
        (completion('{"rationale": 7}'), "malformed"),
    ],
)
def test_an_answer_without_a_rationale_is_counted_and_leaves_the_step_as_it_was(said, told, tmp_path, capsys):
    store = make_store(tmp_path / "store", 2)
    with ScriptedServer(said) as server:
        assert main(words(server, tmp_path)) == 1  # no reply at all has one
        assert not (tmp_path / "told").exists()
        assert "no reply has a rationale" in capsys.readouterr().out
        assert main(words(server, tmp_path, "--partial")) == 0
        assert len(server.received) == len(lacking(store))
    assert list(SessionStore.open(tmp_path / "told").sessions()) == list(store.sessions())
    assert f"no rationale in the reply, {told}: {len(lacking(store))} steps" in capsys.readouterr().out


def test_steps_without_an_answer_keep_the_store_from_being_written_until_they_have_one(tmp_path, capsys):
    store = make_store(tmp_path / "store", 4)
    down = True

    def script(request: dict[str, Any], times: int) -> Response:
        return error(500, "oh no") if down and digest(request)[0] in "01234567" else thought(request)

    with ScriptedServer(script) as server:
        assert main(words(server, tmp_path, "--max-retries", "0")) == 1
        assert "InternalServerError" in capsys.readouterr().out
        assert not (tmp_path / "told").exists()
        assert main(words(server, tmp_path, "--max-retries", "0", "--partial")) == 0
        partial = len(lacking(SessionStore.open(tmp_path / "told")))
        assert 0 < partial < len(lacking(store))
        down = False
        assert main(words(server, tmp_path, "--overwrite")) == 0
        assert not lacking(SessionStore.open(tmp_path / "told"))
        assert set(Counter(map(digest, server.completed)).values()) == {1}


@pytest.mark.parametrize(
    ("more", "told"),
    [
        (["--out", "STORE"], "store itself"),
        (["--prompt", "no_such_file"], "UTF-8"),
        (["--page-characters", "0"], "--page-characters"),
        *((["--by", "session", "--split", split], "add --by step") for split in ("validation", "test", "all")),
    ],
)
def test_a_wrong_call_is_one_line_before_anything_is_asked(more, told, tmp_path, capsys):
    make_store(tmp_path / "store", 1)
    more = [str(tmp_path / "store") if word == "STORE" else word for word in more]
    with ScriptedServer() as server:
        assert main([*words(server, tmp_path), *more]) == 2
        assert not server.received
    said = capsys.readouterr().err
    assert told in said
    assert said.count("\n") == 1


def test_figures_count_names_words_and_repetitions():
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
    assert (figures.name_verbatim, figures.duplicates) == (1, 1)
    assert figures.words == (1, 3, 6, 7)
    assert compute_statistics([]).words == ()


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('{"rationale": "I need\\n a hat."}', "I need a hat."),
        ('```json\n{"rationale": "I need a hat."}\n```', "I need a hat."),
        ('<think>{"rationale": "no"}</think>{"rationale": "yes"}', "yes"),
        ('{"rationale": "a"} {"rationale": "b"}', NoRationale("malformed", '{"rationale": "a"} {"rationale": "b"}')),
        ('{"rationale": "As an aisle flyer I need it."}', "As an aisle flyer I need it."),
        *((text, NoRationale("refused", text)) for text in ("I’m sorry, but no.", '{"rationale": "As an AI, no."}')),
    ],
)
def test_a_rationale_is_found_in_fences_and_behind_thoughts(text, found):
    assert parse_rationale(text) == found


def thoughts(request: dict[str, Any], times: int = 0) -> Response:
    """A sentence for each action of a session."""
    actions = re.findall(r"^## Action (\d+)$", request["messages"][1]["content"], re.MULTILINE)
    return completion(json.dumps({number: f"Thought {number} of {digest(request)}." for number in actions}))


def test_a_session_is_asked_at_once_and_missing_steps_are_taken(tmp_path):
    store = make_store(tmp_path / "store", 40)
    with ScriptedServer(thoughts) as server:
        assert main(words(server, tmp_path, "--split", "train", "--by", "session", "--schema")) == 0
        assert len(server.received) == len({session.session_id for session, _ in lacking(store, "train")})
    sent = [received.request for received in server.received]
    assert {request["messages"][0]["content"] for request in sent} == {INSTRUCTIONS["session"]}
    assert "SECRET" not in json.dumps(sent)
    new = SessionStore.open(tmp_path / "told")
    for before, after in zip(store.sessions("train"), new.sessions("train"), strict=True):
        [asked] = [one for one in sent if before.steps[-1].page in one["messages"][1]["content"]][:1] or [None]
        for number, (old, step) in enumerate(zip(before.steps, after.steps, strict=True), start=1):
            if old.rationale:
                assert step == old
            else:
                assert asked is not None and before.steps[0].page in asked["messages"][1]["content"]
                assert (step.rationale or "").startswith(f"Thought {number} of ")
        required = [one["response_format"]["json_schema"]["schema"]["required"] for one in sent]
        assert [str(number + 1) for number in range(len(before.steps))] in required


def test_of_a_session_s_reply_a_missing_number_costs_its_own_step(tmp_path):
    def script(request: dict[str, Any], times: int) -> Response:
        return completion(json.dumps({"2": "I need a hat."}))

    store = make_store(tmp_path / "store", 40)
    with ScriptedServer(script) as server:
        assert main(words(server, tmp_path, "--split", "train", "--by", "session")) == 0
    before, after = (
        {index for _, index in lacking(one, "train")} for one in (store, SessionStore.open(tmp_path / "told"))
    )
    assert before - after == {1}


def test_the_example_s_reply_has_the_form_that_is_asked_for():
    actions, reply = INSTRUCTIONS["session"].split("Its reply:\n")
    numbers = re.findall(r"^## Action (\d+)$", actions, re.MULTILINE)
    assert all(isinstance(parse_rationale(reply, number), str) for number in numbers)
    assert len(numbers) == 3


def test_train_by_session_and_the_held_out_splits_by_step_are_two_calls_on_one_another_s_output(tmp_path, capsys):
    """The defaults write train alone, and the manifest of the second store has both runs."""
    store = make_store(tmp_path / "store", 40)
    first = f"--store {tmp_path}/store --out {tmp_path}/first --model big".split()
    second = f"--store {tmp_path}/first --out {tmp_path}/second --model small --split all --by step".split()
    with ScriptedServer(thoughts) as server:
        assert main([*first, "--base-url", server.base_url]) == 0
        assert main([*first, "--base-url", server.base_url, "--overwrite"]) == 0  # each reply is there
    half = SessionStore.open(tmp_path / "first")
    assert not lacking(half, "train")
    assert [list(half.sessions(split)) for split in ("validation", "test")] == [
        list(store.sessions(split)) for split in ("validation", "test")
    ]
    with ScriptedServer(thought) as server:
        assert main([*second, "--base-url", server.base_url]) == 0
        assert len(server.received) == len(lacking(half))
    whole = SessionStore.open(tmp_path / "second")
    assert not lacking(whole)
    runs = [(run.model, run.by, run.splits) for run in whole.manifest.rationales]
    assert runs == [("big", "session", ("train",)), ("small", "step", ("validation", "test"))]
    capsys.readouterr()
    assert replay_sessions(["check", str(whole.path)]) == 0
    assert "later actions" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("runs", "message"),
    [
        (
            [WrittenRationales(model="writer", by="session", splits=("train", "test"), prompt="0")],
            "in test (writer) were",
        ),
        (
            [WrittenRationales(model="writer", by="session", splits=("train",), prompt="0")],
            "validation (writer), test (writer) written with",
        ),
        ([], "The store does not say"),
    ],
)
def test_check_names_held_out_rationales_that_may_know_later_actions(runs, message, tmp_path, capsys):
    with StoreWriter(tmp_path / "store", source=SOURCE) as writer:
        for session in generate_sessions(40, seed=5):
            steps = tuple(msgspec.structs.replace(step, rationale_source="writer") for step in session.steps)
            writer.write(msgspec.structs.replace(session, steps=steps))
        writer.rationales += runs
    assert replay_sessions(["check", str(tmp_path / "store")]) == 0
    out = capsys.readouterr().out
    assert message in out and out.count("later actions in view") == 1


def test_a_dry_run_sends_and_writes_nothing_and_counts_missing_steps(tmp_path, capsys):
    store = make_store(tmp_path / "store", 8)
    with ScriptedServer(thought) as server:
        before = sorted(tmp_path.iterdir())
        assert main(words(server, tmp_path, "--dry-run")) == 0
        assert not server.received and sorted(tmp_path.iterdir()) == before
        out = capsys.readouterr().out
        assert f"{len(lacking(store))} requests to {server.base_url}, model writer" in out
        assert "Nothing was sent." in out and "SECRET" not in out
        assert main(words(server, tmp_path, "--split", "train")) == 0
        characters = sum(
            len(message["content"]) for received in server.received for message in received.request["messages"]
        )
        assert main(words(server, tmp_path, "--overwrite", "--dry-run")) == 0
        assert f"{len(lacking(store)) - len(server.received)} requests" in capsys.readouterr().out
        (tmp_path / "told.rationales.jsonl").unlink()
        assert main(words(server, tmp_path, "--overwrite", "--dry-run", "--split", "train")) == 0
        assert f"({characters:,} characters)" in capsys.readouterr().out


def test_changed_options_are_named_and_no_earlier_reply_is_lost(tmp_path, capsys):
    make_store(tmp_path / "store", 2)
    replies = tmp_path / "told.rationales.jsonl"
    contents = []
    with ScriptedServer(thought) as server:
        for more in ([], ["--temperature", "0.5"], ["--page-characters", "300", "--model", "another"]):
            assert main(words(server, tmp_path, "--overwrite", *more)) == 0
            contents.append(replies.read_bytes())
            out = capsys.readouterr().out
            assert ("Changed since the last call" in out) == bool(more)
    assert "Changed since the last call: model, page_characters, request fields." in out
    moved = [replies.with_name(f"{replies.name}.before{number}").read_bytes() for number in ("", "2")]
    assert moved == contents[:2]
