"""A visit in Chromium, recorded by rrweb 2.2.2, becomes what was done, on the pages that it was done on.

A script shopped on some small pages made for it, in two tabs, with real mouse and keyboard events: it searched by the
return key and by the button, clicked a word in a link, labels of hidden radio buttons, a button that its own press
changes, buttons in an iframe and a shadow tree, a link in a menu that opens under the pointer (hidden, so it is no step
but counted); chose by keyboard and by script; typed into fields; went back and bought. Three times: as rrweb records
when nothing is said (`plain`), with `userTriggeredOnInput` (`user`) and with `maskAllInputs` (`mask`); the last two
take a full snapshot on `pageshow`.
"""

from pathlib import Path

import pytest

from replay_sessions import Click, SessionStore, Terminate, TypeAndSubmit
from replay_sessions.importers.rrweb.importer import RrwebImporter, RrwebOptions
from replay_sessions.importers.running.run_import import run_import
from replay_sessions.schema import Action

FOLDER = Path(__file__).parents[3] / "fixtures" / "rrweb"


def typed(name: str, text: str, *, submitted: bool = False) -> Action:
    return TypeAndSubmit(name=name, text=text, submitted=submitted)


MADE: list[Action] = [
    typed("header.search.search", "red kettle", submitted=True),
    Click(name="red_kettle"),
    Click(name="red"),
    Click(name="blue"),
    Click(name="size.two_litres"),
    Click(name="size.three_litres"),  # by script
    typed("quantity", "12"),
    typed("message", "a gift"),
    Click(name="add_to_cart"),
    Click(name="inside_frame"),
    Click(name="shadow_button"),
    typed("header.search.search", "blue", submitted=True),
    Click(name="blue_kettle"),
    Click(name="add_to_cart"),  # in the other tab
    Click(name="header.cart"),
    typed("e_mail_note", "anna"),
    typed("secret", ""),
    Click(name="buy_now", click_type="purchase"),
]


def visit(kind: str, folder: Path) -> SessionStore:
    options = RrwebOptions(purchase_url="/thank-you", terminate_at_end=True)
    run_import(RrwebImporter(FOLDER / f"chromium_{kind}.jsonl.gz", options), folder / "store")
    return SessionStore.open(folder / "store")


def actions(store: SessionStore) -> list[Action]:
    (session,) = store.sessions()
    assert [step.gap for step in session.steps if step.gap] == [1]
    assert store.manifest.left_out_steps["click on what the page hides"] == 1
    return [step.action for step in session.steps]


def test_as_rrweb_records_when_nothing_is_said(tmp_path):
    assert actions(visit("plain", tmp_path)) == MADE


def test_choices_by_script_are_no_actions_if_rrweb_marks_user_events(tmp_path):
    assert actions(visit("user", tmp_path)) == [action for action in MADE if action != Click(name="size.three_litres")]


def test_masked_texts_are_unknown_but_for_those_that_an_address_tells(tmp_path):
    known = ("header.search.search",)
    masked = [
        typed(action.name, action.text if action.name in known else "", submitted=action.submitted)
        if isinstance(action, TypeAndSubmit)
        else action
        for action in MADE
        if action != Click(name="size.three_litres")  # "*" is the same value as before, so rrweb says it once
    ]
    place = masked.index(Click(name="size.two_litres"))
    masked[place] = Click(name="")
    assert actions(visit("mask", tmp_path)) == masked


@pytest.mark.parametrize("kind", ["user", "mask"])
def test_pages_and_addresses_are_those_of_the_press(tmp_path, kind):
    (session,) = visit(kind, tmp_path).sessions()
    steps = {getattr(step.action, "name", ""): step for step in reversed(session.steps)}
    assert "Press me" in steps["add_to_cart"].page  # the press takes that away
    assert "Cart empty" in steps["add_to_cart"].page
    assert "1 in cart" in steps["inside_frame"].page
    assert not any("Deals" in step.page for step in session.steps)
    paths = [(step.url or "").removeprefix("http://localhost:8731") for step in session.steps]
    places = ["/", "/s?q=red+kettle", "/p/1", "/s?q=blue", "/p/2", "/s?q=blue", "/cart"]
    assert [path for path, before in zip(paths, ["", *paths], strict=False) if path != before] == places
    assert not any(isinstance(step.action, Terminate) for step in session.steps)
