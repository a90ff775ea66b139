"""What one page of a session tells of a shopper goes from all of its pages, whatever it was imported from."""

import gzip
import json
import re
from pathlib import Path

import msgspec
import pytest

from replay_sessions import Click, Session, SessionStore
from replay_sessions.__main__ import main
from replay_sessions.importers.raw.importer import RawImporter, RawOptions
from replay_sessions.importers.running.run_import import run_import
from replay_sessions.store.audit.judge import audit_store
from tests.replay_sessions.importers.rrweb.made_recordings import Recorded
from tests.replay_sessions.importers.rrweb.made_recordings import imported as imported_recording

BEFORE = '<a id="lists" href="/lists">Lists of Anneliese</a><p>Anneliese L.</p><p>Parcel shop Lindqvist</p>'
GREETING = '<p>Hello, Anneliese Lindqvist</p><a id="lamp" href="/lamp">Lamp</a>'
TOKEN = "https://shop.example/?access_token=8f3a9c"


def from_raw_pages(folder: Path) -> SessionStore:
    visits = folder / "visits"
    visits.mkdir()
    rows = []
    for name, page, target in (("first", BEFORE, "lists"), ("last", GREETING, "lamp")):
        (visits / f"{name}.html.gz").write_bytes(gzip.compress(page.encode()))
        rows.append(
            {"session_id": "visit", "page": f"{name}.html.gz", "type": "click", "element_id": target, "url": TOKEN}
        )
    (visits / "actions.jsonl").write_text("\n".join(map(json.dumps, rows)))
    run_import(RawImporter(visits, RawOptions()), folder / "store")
    return SessionStore.open(folder / "store")


def from_simplified_pages(folder: Path) -> SessionStore:
    before = BEFORE.replace('id="lists"', 'name="lists_of_anneliese"')
    steps = [
        {"page": before, "action": {"type": "click", "name": "lists_of_anneliese"}, "url": TOKEN},
        {"page": GREETING.replace('id="lamp"', 'name="lamp"'), "action": {"type": "click", "name": "lamp"}},
    ]
    line = {"session_id": "visit", "user_id": "u1", "source": "x", "steps": steps}
    (folder / "log.jsonl").write_text(json.dumps(line) + "\n")
    log, store = str(folder / "log.jsonl"), folder / "store"
    assert main(["import", "jsonl", log, "--private-data", "remove", "--out", str(store)]) == 0
    return SessionStore.open(store)


def from_recording(folder: Path) -> SessionStore:
    recorded = Recorded()
    recorded.tab(BEFORE, TOKEN).click("lists")
    return imported_recording(recorded.tab(GREETING, "https://shop.example/2").click("lamp"), folder)


@pytest.mark.parametrize("make", [from_raw_pages, from_simplified_pages, from_recording])
def test_a_name_on_a_later_page_goes_from_the_earlier_ones_and_from_names_of_elements(make, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    session: Session = make(tmp_path).session("visit")
    assert len(session.steps) == 2
    assert not re.search("anneliese|lindqvist", str(msgspec.to_builtins(session)), re.IGNORECASE)
    assert session.steps[0].action == Click(name="lists_of_name")
    assert 'name="lists_of_name"' in session.steps[0].page
    assert session.steps[0].url == "https://shop.example/?access_token=[secret]"


def test_credentials_go_even_where_private_data_is_kept(tmp_path: Path) -> None:
    visits = tmp_path / "visits"
    visits.mkdir()
    (visits / "p.html").write_text(BEFORE)
    row = {"session_id": "v", "page": "p.html", "type": "terminate", "url": TOKEN}
    (visits / "actions.jsonl").write_text(json.dumps(row))
    run_import(RawImporter(visits, RawOptions(keep_private_data=True)), tmp_path / "store")
    step = SessionStore.open(tmp_path / "store").session("v").steps[0]
    assert step.url == "https://shop.example/?access_token=[secret]"
    assert "Lindqvist" in step.page


def test_credentials_go_from_sessions_in_our_own_form_whose_private_data_is_kept(tmp_path: Path) -> None:
    step = {"page": GREETING, "action": {"type": "terminate"}, "url": TOKEN}
    line = {"session_id": "v", "user_id": "u1", "source": "x", "steps": [step]}
    (tmp_path / "log.jsonl").write_text(json.dumps(line) + "\n")
    assert main(["import", "jsonl", str(tmp_path / "log.jsonl"), "--out", str(tmp_path / "store")]) == 0
    imported = SessionStore.open(tmp_path / "store").session("v").steps[0]
    assert imported.url == "https://shop.example/?access_token=[secret]"
    assert "Lindqvist" in imported.page


def test_the_check_warns_of_users_whose_id_is_an_email_address(tmp_path: Path) -> None:
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
