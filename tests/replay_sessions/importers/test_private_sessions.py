"""Private data and credentials go from sessions, whatever they were imported from."""

import json
from pathlib import Path

import msgspec
import pytest

from replay_sessions import Click, Session, SessionStore, Step, TypeAndSubmit
from replay_sessions.__main__ import main
from replay_sessions.importers.private_sessions import without_private_data
from replay_sessions.importers.raw.importer import RawImporter, RawOptions
from replay_sessions.importers.running.run_import import run_import
from replay_sessions.private_data.customer_values import OwnValues, SharedWords
from replay_sessions.private_data.customers import Customers
from replay_sessions.store.audit.judge import audit_store
from tests.replay_sessions.importers.rrweb.made_recordings import Recorded
from tests.replay_sessions.importers.rrweb.made_recordings import imported as imported_recording

ADDRESS = "anneliese@example.org"
PAGE = f'<a id="lists" href="/lists">Lists of {ADDRESS}</a><p>Hello, {ADDRESS}</p>'
TOKEN = "https://shop.example/?access_token=8f3a9c"
REMOVE = ("--private-data", "remove")


def from_raw_pages(folder: Path, *, keep_private_data: bool = False) -> SessionStore:
    visits = folder / "visits"
    visits.mkdir()
    (visits / "p.html").write_text(PAGE)
    row = {"session_id": "visit", "page": "p.html", "type": "click", "element_id": "lists", "url": TOKEN}
    (visits / "actions.jsonl").write_text(json.dumps(row))
    run_import(RawImporter(visits, RawOptions(keep_private_data=keep_private_data)), folder / "store")
    return SessionStore.open(folder / "store")


def from_simplified_pages(folder: Path) -> SessionStore:
    name = "lists_of_anneliese_example_org"
    page = PAGE.replace('id="lists"', f'name="{name}"')
    step = {"page": page, "action": {"type": "click", "name": name}, "url": TOKEN}
    line = {"session_id": "visit", "user_id": "u1", "source": "x", "steps": [step]}
    (folder / "log.jsonl").write_text(json.dumps(line) + "\n")
    log, store = str(folder / "log.jsonl"), folder / "store"
    assert main(["import", "jsonl", log, *REMOVE, "--out", str(store)]) == 0
    return SessionStore.open(store)


def from_recording(folder: Path) -> SessionStore:
    return imported_recording(Recorded(folder).tab(PAGE, TOKEN).click("lists"))


@pytest.mark.parametrize("make", [from_raw_pages, from_simplified_pages, from_recording])
def test_values_go_from_a_text_and_from_the_name_of_its_element(make, tmp_path):
    session: Session = make(tmp_path).session("visit")
    assert "anneliese" not in str(msgspec.to_builtins(session))
    assert session.steps[0].action == Click(name="lists_of_email")
    assert 'name="lists_of_email"' in session.steps[0].page
    assert session.steps[0].url == "https://shop.example/?access_token=[secret]"


def import_step(folder: Path, page: str, action: dict[str, str], *words: str) -> Step:
    """The one step of a session in our own form, imported without its private data where the words say so."""
    step = {"page": page, "action": action, "url": TOKEN}
    line = {"session_id": "v", "user_id": "u1", "source": "x", "steps": [step]}
    (folder / "log.jsonl").write_text(json.dumps(line) + "\n")
    assert main(["import", "jsonl", str(folder / "log.jsonl"), *words, "--out", str(folder / "own")]) == 0
    (imported,) = SessionStore.open(folder / "own").session("v").steps
    return imported


def test_two_names_that_would_become_one_stay_apart(tmp_path):
    page = '<a name="a_example_org">a@example.org</a><a name="b_example_org">b@example.org</a>'
    imported = import_step(tmp_path, page, {"type": "click", "name": "b_example_org"}, *REMOVE)
    assert imported.page == '<a name="email">[email]</a><a name="email_2">[email]</a>'
    assert imported.action == Click(name="email_2")


def test_a_number_goes_whole_and_a_name_that_is_an_address_goes_with_its_action(tmp_path):
    page = '<p>Call +1 (415) 555-2671.</p><input name="anna@example.org"><a name="call_1_415_555_2671">Call</a>'
    action = {"type": "type_and_submit", "name": "anna@example.org", "text": "x"}
    imported = import_step(tmp_path, page, action, *REMOVE)
    assert imported.page == '<p>Call [phone].</p><input name="[email]"><a name="call_phone">Call</a>'
    assert imported.action == TypeAndSubmit(name="[email]", text="x")


@pytest.mark.parametrize("is_raw", [True, False])
def test_mailboxes_of_other_domains_than_the_pages_go(is_raw, tmp_path):
    page = "<p>Write to info@shop.example</p><p>or to info@annas-blog.example</p>"
    step = {"page": page, "action": {"type": "terminate"}, "url": "https://www.shop.example/help"}
    line = {"session_id": "v", "user_id": "u", "source": "x", "steps": [step]}
    (tmp_path / "log.jsonl").write_text(json.dumps(line))
    words = ["--pages", "raw"] if is_raw else []
    assert main(["import", "jsonl", str(tmp_path / "log.jsonl"), *words, *REMOVE, "--out", str(tmp_path / "own")]) == 0
    (imported,) = SessionStore.open(tmp_path / "own").session("v").steps
    assert "Write to info@shop.example" in imported.page
    assert "or to [email]" in imported.page


def test_credentials_go_even_where_private_data_is_kept(tmp_path):
    raw = from_raw_pages(tmp_path, keep_private_data=True).session("visit").steps[0]
    for step in (raw, import_step(tmp_path, PAGE, {"type": "terminate"})):
        assert step.url == "https://shop.example/?access_token=[secret]"
        assert ADDRESS in step.page


def test_the_check_warns_of_email_addresses_as_user_ids(tmp_path):
    visits = tmp_path / "visits"
    visits.mkdir()
    (visits / "p.html").write_text("<p>Lamp</p>")
    rows = [{"session_id": f"v{n}", "user_id": user, "page": "p.html", "type": "terminate"}
            for n, user in enumerate(("u-17", "anna@example.org"))]  # fmt: skip
    (visits / "actions.jsonl").write_text("\n".join(map(json.dumps, rows)))
    run_import(RawImporter(visits, RawOptions()), tmp_path / "store")
    warnings = [
        one for one in audit_store(SessionStore.open(tmp_path / "store")).warnings if one.code == "private_data"
    ]
    assert ["1 email" in one.message for one in warnings] == [True]
    assert warnings[0].sessions == ("v1",)


def test_the_name_of_an_element_that_is_not_on_its_page_loses_the_values_of_the_user():
    customers = Customers([{"user_id": "u", "first_name": "Zoltan"}])
    step = Step(page='<a name="home">Home</a>', action=Click(name="hello_zoltan.view"))
    session = Session(session_id="s", user_id="u", source="x", steps=(step,))
    remover = OwnValues(customers.by_user["u"], SharedWords(customers))
    assert without_private_data(session, remover).steps[0].action == Click(name="hello_name.view")
