"""Where sessions of a raw log end: purchases, pauses, and the end of the recording."""

import json
from pathlib import Path
from typing import Any

import pytest

from replay_sessions import Click, SessionStore, Terminate
from replay_sessions.__main__ import main

PAGE = '<title>Kettle</title><h1>Kettle</h1><a href="/more">More</a><button id="buy"><i>Buy</i></button>'


def imported(folder: Path, rows: list[dict[str, Any]], *flags: str) -> SessionStore:
    (folder / "pages").mkdir()
    (folder / "pages" / "a.html").write_text(PAGE)
    (folder / "pages" / "b.html").write_text(PAGE.replace("Kettle", "Toaster"))
    lines = [{"session_id": "v1", "page": "a.html", "type": "click", "element_text": "More", **row} for row in rows]
    (folder / "pages" / "actions.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert main(["import", "raw", str(folder / "pages"), *flags, "--out", str(folder / "store")]) == 0
    return SessionStore.open(folder / "store")


def test_nothing_is_made_up_unless_it_is_asked_for_and_that_is_told(tmp_path, capsys):
    store = imported(tmp_path, [{"timestamp": 0}, {"timestamp": 90_000}, {"type": "view", "timestamp": 90_001}])
    assert [step.action for step in store.session("v1").steps] == [Click(name="more")] * 2
    assert "no action is a terminate: --purchase-selector" in capsys.readouterr().out


def test_a_click_on_the_purchase_button_is_the_last(tmp_path):
    rows = [{}, {"element_text": "", "selector": "#buy i"}, {}, {"type": "terminate"}]
    store = imported(tmp_path, rows, "--purchase-selector", "#buy")
    assert [step.action for step in store.session("v1").steps] == [
        Click(name="more"),
        Click(name="buy", click_type="purchase"),
    ]
    assert store.manifest.left_out_steps == {"click after the purchase": 1, "terminate after the purchase": 1}
    assert store.manifest.options["purchase_selector"] == "#buy"


def test_the_click_before_a_purchase_by_address_is_the_purchase(tmp_path):
    bought = {"url": "https://shop.example/thank-you?order=1"}
    rows = [bought, {}, {"element_text": "Buy"}, bought]  # the first is of an earlier order
    store = imported(tmp_path, rows, "--purchase-url", "/thank-you")
    assert store.session("v1").steps[-1].action == Click(name="buy", click_type="purchase")
    assert len(store.session("v1").steps) == 3


def test_a_long_pause_ends_a_session_on_the_page_that_was_shown_and_begins_another(tmp_path):
    start = 1_794_787_200_000  # milliseconds
    rows = [{"timestamp": start}, {"timestamp": start + 60_000}, {"timestamp": start + 32 * 60_000, "page": "b.html"}]
    store = imported(tmp_path, rows, "--idle-minutes", "30")
    assert store.session_ids() == ["v1", "v1 (2)"]
    first, second = store.sessions()
    assert [step.action for step in first.steps] == [Click(name="more"), Click(name="more"), Terminate()]
    assert "Toaster" in first.steps[-1].page
    assert [step.action for step in second.steps] == [Click(name="more")]
    assert first.user_id == second.user_id
    assert first.steps[0].timestamp == "2026-11-16T00:00:00+00:00"


def test_a_pause_after_a_page_that_was_viewed_ends_on_it_and_one_before_such_a_page_on_none(tmp_path):
    view = {"type": "view", "page": "b.html"}
    rows: list[dict[str, Any]] = [{"timestamp": 0}, {**view, "timestamp": 5}, {**view, "timestamp": 9000}]
    store = imported(tmp_path, [*rows, {"timestamp": 9001}, {**view, "timestamp": 19_000}], "--idle-minutes", "30")
    first, second = store.sessions()
    assert [step.action for step in first.steps] == [Click(name="more"), Terminate()]
    assert "Toaster" in first.steps[1].page
    assert [step.action for step in second.steps] == [Click(name="more")]  # nobody knows which page was left


def test_a_purchase_is_no_leaving_even_if_its_button_is_not_found(tmp_path):
    rows = [{}, {"type": "purchase", "element_text": "gone"}, {"type": "view"}]
    store = imported(tmp_path, rows, "--terminate-at-end")
    assert [step.action for step in store.session("v1").steps] == [Click(name="more")]


def test_the_end_of_a_recording_is_a_terminate_where_its_page_is_known(tmp_path):
    rows: list[dict[str, Any]] = [{}, {"type": "view", "page": "b.html"}, {"session_id": "v2"}]
    store = imported(tmp_path, rows, "--terminate-at-end")
    assert [type(step.action) for step in store.session("v1").steps] == [Click, Terminate]
    assert "Toaster" in store.session("v1").steps[-1].page
    assert [type(step.action) for step in store.session("v2").steps] == [Click]


@pytest.mark.parametrize(("flag", "value"), [("--idle-minutes", "0"), ("--purchase-selector", "a[[")])
def test_endings_that_mean_nothing_are_told(tmp_path, capsys, flag, value):
    (tmp_path / "actions.csv").write_text("session_id,page,type\n")
    assert main(["import", "raw", str(tmp_path), flag, value, "--out", str(tmp_path / "store")]) == 2
    told = capsys.readouterr().err
    assert value in told and told.count("\n") == 1
