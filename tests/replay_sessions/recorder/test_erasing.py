"""A person's sessions are erased from recordings and stores, and nothing else is."""

import gzip
import json
import re
from pathlib import Path

import msgspec
import pytest

from replay_sessions import SessionStore, StoreWriter
from replay_sessions.__main__ import main
from replay_sessions.store.work_folder import rewriting
from tests.replay_sessions.recorder.conftest import batches_of_a_visit
from tests.replay_sessions.store.audit.test_audit import walk

pytestmark = pytest.mark.long


@pytest.fixture
def folders(collecting, tmp_path) -> list[str]:
    """Recordings of three people, one of whom came twice and has a visit that cannot be imported, and their store."""
    visits = [("ORD-1", "u1"), ("ORD-2", "u1"), ("s3", "u2"), ("s4", "u3")]
    for number, (session, user) in enumerate(visits):
        for posted in batches_of_a_visit(number + 3, session=session):
            collecting.post({**posted, "user_id": user})
    collecting.post({**batches_of_a_visit(2, session="ORD-5")[1], "user_id": "u1"})
    folders = [str(tmp_path / name) for name in ("store", "recordings")]
    assert main(["import", "rrweb", folders[1], "--workers", "1", "--out", folders[0]]) == 0
    return folders


def held(folders: list[str]) -> str:
    """All that any file says."""
    store, recordings = map(Path, folders)
    sessions = [json.dumps(str(msgspec.to_builtins(session))) for session in SessionStore.open(store).sessions()]
    plain = [path.read_text() for path in (*recordings.glob("*.jsonl"), store / "rejected.jsonl")]
    return "".join([*sessions, *plain, *(path.name for path in recordings.iterdir())])


def test_a_users_sessions_are_erased_from_recordings_and_store(folders, capsys):
    before = held(folders)
    assert all(name in before for name in ("u1", "ORD-1", "ORD-5"))
    with rewriting(Path(folders[0])):  # an import that replaces the store would bring them back
        again = ["import", "rrweb", folders[1], "--overwrite", "--out", folders[0]]
        assert main(["erase", "u1", *folders]) == main(again) == 2
    assert held(folders) == before
    assert f"at work in '{folders[0]}'" in capsys.readouterr().err
    assert main(["erase", "u1", *folders]) == 0
    assert re.findall(r"(\d) sessions erased", capsys.readouterr().out) == ["3", "2"]
    after = held(folders)
    assert not re.search(r"u1|ORD-", after)
    assert "erased on request" in after
    assert SessionStore.open(folders[0]).session_ids() == ["s3", "s4"]
    assert main(["check", folders[0]]) == 0
    assert main(["erase", "u1", *folders]) == 2
    assert "no session is of 'u1'" in capsys.readouterr().err


def test_a_session_is_erased_while_the_collector_writes_on(collecting, folders):
    assert main(["erase", "ORD-2", *folders]) == 0
    assert "ORD-2" not in held(folders)
    assert "ORD-1" in held(folders)
    (later,) = batches_of_a_visit(4, session="ORD-2")[3:]
    assert collecting.post({**later, "user_id": "u1"}) == (200, {"new": True})
    assert main(["erase", "ORD-2", folders[1]]) == 0


def test_a_store_may_be_left_without_sessions(folders):
    for user in ("u1", "u2", "u3"):
        assert main(["erase", user, folders[0]]) == 0
    assert len(SessionStore.open(folders[0])) == 0


IDS = {"kiosk (2)": "u1", "kiosk (Berlin) 17": "u2", "kiosk (Berlin) 17 (2)": "u2", "kiosk (Hof)": "1", "v": "1 (a)"}


@pytest.mark.parametrize("erased", [*IDS, "kiosk", "u2", "1"])
def test_an_id_is_matched_as_it_stands_and_without_the_number_of_an_import(erased, tmp_path, capsys):
    with StoreWriter(tmp_path / "store", source="test") as writer:
        for number, (session_id, user) in enumerate(IDS.items()):
            writer.write(walk(number, session_id=session_id, user_id=user))
            writer.reject(f"log:{number + 10}", f"{session_id!r} has no page")
    (killed := tmp_path / ".store.writing-ab12cd34").mkdir()
    assert main(["erase", erased, str(tmp_path / "store")]) == 0
    assert str(killed) in capsys.readouterr().out
    store = SessionStore.open(tmp_path / "store")
    assert len(store) == (3 if erased in ("kiosk (Berlin) 17", "u2") else 4)
    assert store.manifest.rejected == (2 if erased == "kiosk" else 5)  # those erased beside all that name none of them


def test_packed_recordings_are_searched_and_damaged_ones_named(tmp_path, capsys):
    head = b'{"data": [{"data": {"tag": "shop_r1.session", "payload": {"session_id": "s3", "user_id": "u1"}}}]}\n'
    packed = gzip.compress(head + head.replace(b"u1", b"c17"))  # who has logged in since
    (mine := tmp_path / "s3.jsonl.gz").write_bytes(packed)
    (damaged := tmp_path / "s4.jsonl.gz").write_bytes(packed[:20])
    assert main(f"erase c17 {tmp_path} {tmp_path}/gone".split()) == 2
    assert mine.exists()
    assert main(["erase", "c17", str(tmp_path)]) == 0
    assert not mine.exists()
    assert str(damaged) in capsys.readouterr().out
    assert main(["erase", "", str(tmp_path)]) == 2


def head(session: str, user: str, **more: object) -> str:
    ids = {"session_id": session, "user_id": user}
    return json.dumps({"window_id": "w", **more, "data": [{"data": {"tag": "shop_r1.session", "payload": ids}}]}) + "\n"


def test_ids_posted_by_a_page_erase_nothing_of_other_people(tmp_path):
    (tmp_path / "s1.jsonl").write_text(head("s1", "u1"))
    (tmp_path / "u1.jsonl").write_text(head("u1", "u2"))  # an id that is a session's here and a user's there
    (tmp_path / "s3.jsonl").write_text(head("s3", "u3") + head("s1", "u1", number=0))  # as an earlier collector took it
    with StoreWriter(tmp_path / "store", source="test") as writer:
        for number, (session_id, user) in enumerate({"s1": "u1", "u1": "u2", "s3": "u3"}.items()):
            writer.write(walk(number, session_id=session_id, user_id=user))
    assert main(["erase", "u3", str(tmp_path), str(tmp_path / "store")]) == 0
    assert sorted(path.name for path in tmp_path.glob("*.jsonl")) == ["s1.jsonl", "u1.jsonl"]
    assert SessionStore.open(tmp_path / "store").session_ids() == ["s1", "u1"]


def test_sessions_of_several_users_are_named_and_erased_only_after_a_yes(tmp_path, capsys):
    (tmp_path / "a.jsonl").write_text(head("kiosk", "u1"))
    (tmp_path / "b.jsonl").write_text(head("kiosk", "u2"))
    assert main(["erase", "kiosk", str(tmp_path)]) == 2
    captured = capsys.readouterr()
    assert "2 sessions to erase" in captured.out
    assert "2 users (u1, u2)" in captured.out
    assert "add --yes" in captured.err
    assert len(list(tmp_path.glob("*.jsonl"))) == 2
    assert main(["erase", "kiosk", str(tmp_path), "--yes"]) == 0
    assert list(tmp_path.glob("*.jsonl")) == []
