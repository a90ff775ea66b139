"""What people recorded, as an agent: the same records as an agent that answers the same."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from agents.conformance import check_agent
from agents.registry import make_agent
from benchmarks.leaderboard.__main__ import main as leaderboard
from replay_sessions.foundation.errors import AgentFailed, BadConfig
from replay_sessions.schema import Click, Session, Step, reply_action
from replay_sessions.store import SessionStore
from shop_env.evaluation.evaluate import evaluate
from shop_env.evaluation.results import summarise
from shop_env.observation import ContextConfig
from shop_env.replies import Reply, parse_reply
from tests.agents.human.conftest import Client, Serve, store_of


def answer_as(name: str, client: Client, store: SessionStore, *, most: int = 10_000) -> None:
    """Answers what is served as an agent does, from what the evaluation shows that agent."""
    replies = {(one.session_id, one.step_index): one.reply for one in evaluate(make_agent(name), store, "test")}
    for key in list(replies)[client.step()["answered"] :][:most]:
        reply = parse_reply(replies[key] or "")
        assert isinstance(reply, Reply)
        view = client.step()
        assert client.predict(view["number"], reply_action(reply.action), reply.rationale)[0] == 200


def test_a_person_who_answers_as_an_agent_does_has_the_agent_s_records(
    serve: Serve, shop_store: SessionStore, tmp_path: Path
) -> None:
    answer_as("copy_match", serve(shop_store), shop_store)
    person = make_agent(f"human?replies={tmp_path / 'people'}")
    assert evaluate(person, shop_store, "test") == evaluate(make_agent("copy_match"), shop_store, "test")


def test_steps_that_nobody_answered_are_errors_and_the_row_is_not_ranked(
    serve: Serve, shop_store: SessionStore, tmp_path: Path
) -> None:
    answer_as("copy_match", serve(shop_store), shop_store, most=3)
    records = evaluate(make_agent(f"human?replies={tmp_path / 'people'}"), shop_store, "test")
    assert [record.error is None for record in records[:5]] == [True, True, True, False, False]
    assert "not answered: ada" in (records[4].error or "")
    assert not summarise(records, label="ada").ranked


def test_another_context_is_another_question(serve: Serve, shop_store: SessionStore, tmp_path: Path) -> None:
    answer_as("copy_match", serve(shop_store), shop_store)
    person = make_agent(f"human?replies={tmp_path / 'people'}")
    records = evaluate(person, shop_store, "test", context=ContextConfig(persona="none"))
    assert all("not asked: ada" in (record.error or "") for record in records)


def test_a_sitting_goes_on_where_it_was_left(serve: Serve, shop_store: SessionStore, tmp_path: Path) -> None:
    answer_as("copy_match", serve(shop_store), shop_store, most=4)
    again = serve(shop_store)
    assert again.step()["answered"] == again.step()["number"] == 4
    answer_as("copy_match", again, shop_store)
    person = make_agent(f"human?replies={tmp_path / 'people'}")
    assert evaluate(person, shop_store, "test") == evaluate(make_agent("copy_match"), shop_store, "test")


def test_the_leaderboard_ranks_people_beside_agents_and_verifies_them(
    serve: Serve, shop_store: SessionStore, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    answer_as("copy_match", serve(shop_store), shop_store)
    given = f"ada=human?replies={tmp_path / 'people'}&person=ada"
    board = ["--store", str(shop_store.path), "--out", str(tmp_path / "board")]
    assert leaderboard(["--agents", given, "copy_match", *board]) == 0
    table = (tmp_path / "board" / "leaderboard.md").read_text()
    rows = {row.split(" | ")[0].strip("| "): row.split(" | ")[1:4] for row in table.splitlines() if row[:1] == "|"}
    assert rows["ada"] == rows["copy_match"]
    verify = ["verify", str(tmp_path / "board"), "--store", str(shop_store.path), "--rerun", "5"]
    assert leaderboard([*verify, "--trust", given]) == 0


def test_the_same_page_answered_twice_is_drawn_by_the_step_s_seed(serve: Serve, tmp_path: Path) -> None:
    page = '<a name="a">a</a><a name="b">b</a>'
    sessions = [
        Session(
            session_id=name,
            user_id="u",
            steps=(Step(page=page, action=Click(name="a")),) * 2,
            source="planted",
            official_split="test",
        )
        for name in ("one", "two")
    ]
    store = store_of(tmp_path / "store", sessions)
    client = serve(store)
    client.predict(0, {"type": "click", "name": "a"})
    client.predict(1, {"type": "click", "name": "b"})
    person = make_agent(f"human?replies={tmp_path / 'people'}")
    drawn = set()
    for seed in range(20):
        records = evaluate(person, store, "test", seed=seed)
        assert records == evaluate(person, store, "test", seed=seed)
        drawn.update(record.predicted["name"] for record in records if record.predicted)
    assert drawn == {"a", "b"}


def test_the_agent_keeps_the_contract_and_says_what_it_was_not_asked(
    serve: Serve, shop_store: SessionStore, tmp_path: Path
) -> None:
    answer_as("copy_match", serve(shop_store), shop_store, most=1)
    person = make_agent(f"human?replies={tmp_path / 'people'}")
    with pytest.raises(AgentFailed, match="not asked"):
        person.act({"page": "\ud800", "history": (), "persona": "", "goal": "", "step": 0})
    assert not [finding for finding in check_agent(person).findings if "Unicode" in str(finding)]


def refusal(spec: str) -> str:
    with pytest.raises(BadConfig) as refused:
        make_agent(spec)
    return str(refused.value)


def test_whose_predictions_is_said_where_there_are_several_people(
    serve: Serve, shop_store: SessionStore, tmp_path: Path
) -> None:
    folder = tmp_path / "people"
    assert "No recorded predictions" in refusal(f"human?replies={folder}")
    for person in ("ada", "ben"):
        answer_as("copy_match", serve(shop_store, person=person), shop_store, most=1)
    assert "person=ada|ben" in refusal(f"human?replies={folder}")
    assert "Did you mean 'ben'?" in refusal(f"human?replies={folder}&person=bne")
    make_agent(f"human?replies={folder}&person=ben")


def test_people_who_were_shown_answers_have_it_in_their_row_s_name(
    serve: Serve, shop_store: SessionStore, tmp_path: Path
) -> None:
    client = serve(shop_store, show_answer=True)
    client.predict(0, {"type": "terminate"})
    spec = f"human?replies={tmp_path / 'people'}"
    assert "give show_answer=true" in refusal(spec)
    make_agent(f"{spec}&show_answer=true")


def test_a_folder_takes_answers_to_the_same_questions_only(
    serve: Serve, shop_store: SessionStore, tmp_path: Path
) -> None:
    serve(shop_store)
    with pytest.raises(BadConfig, match="show_answer False, now True"):
        serve(shop_store, show_answer=True)
    with pytest.raises(BadConfig, match="context"):
        serve(shop_store, context=ContextConfig(rationales=False))


def test_one_person_is_asked_by_one_process_at_a_time(serve: Serve, shop_store: SessionStore, tmp_path: Path) -> None:
    from_first = serve(shop_store).server.sitting
    recording = from_first._recording
    with (
        pytest.raises(BadConfig, match=r"another process is at work .* choose another --person than 'ada'"),
        recording.lock_replies("ada"),
    ):
        pass
    with recording.lock_replies("ben"):
        pass


@pytest.mark.parametrize("person", ["", "a/b", "..", "a b", "x" * 41, "a.b", "-", "ada\n"])
def test_a_name_that_is_no_file_name_is_refused(serve: Serve, shop_store: SessionStore, person: str) -> None:
    with pytest.raises(BadConfig, match="--person"):
        serve(shop_store, person=person)


def test_times_are_of_the_step_alone(serve: Serve, shop_store: SessionStore, tmp_path: Path) -> None:
    client = serve(shop_store)
    client.step()
    client.predict(0, {"type": "terminate"})
    lines: list[Any] = [
        msgspec.json.decode(one) for one in (tmp_path / "people/people/ada.jsonl").read_bytes().splitlines()
    ]
    assert lines[-1]["reply"] == '{"rationale": "", "action": {"type": "terminate"}}'
    assert 0 < lines[-1]["seconds"] < 30
