import re
from pathlib import Path

import msgspec
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from replay_sessions import Session, SessionStore, StoreWriter
from replay_sessions.__main__ import main
from replay_sessions.demo_shop import generate_sessions
from replay_sessions.exporters.hub import COLUMNS, export_for_hub, rows_of
from replay_sessions.importers.hub.importer import HubImporter, HubImportOptions, session_of
from replay_sessions.importers.running.run_import import run_import
from replay_sessions.store.splits import SplitPlan
from tests.replay_sessions.conftest import make_session, sessions


@pytest.fixture
def store(tmp_path) -> SessionStore:
    """Twenty-four sessions in all three splits."""
    with StoreWriter(tmp_path / "kettles", source="demo_shop", splits=SplitPlan(by="session")) as writer:
        for session in generate_sessions(24, seed=0):
            writer.write(session)
        writer.leave_out("scroll", 3)
    return SessionStore.open(tmp_path / "kettles")


def again(folder: Path) -> SessionStore:
    run_import(HubImporter(folder), folder.parent / "again", splits=SplitPlan(by="official"))
    return SessionStore.open(folder.parent / "again")


def without_split(session: Session) -> Session:
    return msgspec.structs.replace(session, official_split=None)


@settings(max_examples=50, deadline=None)
@given(sessions, st.sampled_from([None, "train", "validation", "test"]))
def test_any_session_comes_back_from_its_rows(session, split):
    rows = list(rows_of(session))
    assert all(row.keys() == COLUMNS.keys() for row in rows)
    assert session_of(rows[::-1], split) == msgspec.structs.replace(session, official_split=split)


def test_exported_stores_come_back_with_their_splits(store, tmp_path, monkeypatch):
    monkeypatch.setattr("replay_sessions.exporters.hub._FILE_CHARACTERS", 5_000)
    export_for_hub(store, tmp_path / "out")
    files = sorted(path.name for path in (tmp_path / "out" / "data").iterdir())
    assert len(files) > 3
    assert all(re.fullmatch(r"(train|validation|test)-\d{5}\.parquet", name) for name in files)
    returned = again(tmp_path / "out")
    before = {session.session_id: session for session in store.sessions()}
    assert {session.session_id: without_split(session) for session in returned.sessions()} == before
    assert {name: returned.split_of(name) for name in before} == {name: store.split_of(name) for name in before}


def test_the_card_is_read_by_the_hub_and_by_people(store, tmp_path):
    export_for_hub(store, tmp_path / "out", licence="cc-by-4.0")
    card = (tmp_path / "out" / "README.md").read_text()
    head = card.split("---\n")[1]
    assert "license: cc-by-4.0" in head
    for split in ("train", "validation", "test"):
        assert f"  - split: {split}\n    path: data/{split}-*.parquet" in head
    assert f"24 sessions of {store.manifest.users} users, {store.manifest.steps} steps" in card
    assert "no action of the store: 3 scroll." in card
    table = pq.read_table(next((tmp_path / "out" / "data").glob("train-*")))
    for name in table.column_names:
        assert f"| `{name}` | {table.schema.field(name).type} |" in card


def test_rows_that_are_no_whole_session_are_rejected(tmp_path):
    with StoreWriter(tmp_path / "s", source="test", splits=SplitPlan(validation=0, test=0)) as writer:
        for number in range(3):
            writer.write(make_session(number, steps=3))
    export_for_hub(SessionStore.open(tmp_path / "s"), tmp_path / "out")
    file = tmp_path / "out/data/train-00000.parquet"
    rows = pq.read_table(file)
    broken = rows.to_pylist()
    del broken[1]
    broken[3]["action_type"] = "hover"
    broken[5]["page"] = None
    pq.write_table(rows.from_pylist(broken, schema=rows.schema), file)
    with pytest.raises(Exception, match="no session could be imported"):
        again(tmp_path / "out")
    reads = HubImporter(tmp_path / "out").read(file, HubImportOptions())
    reasons = [rejected.reason for read in reads for rejected in read.rejected]
    assert "[0, 2]" in reasons[0]
    assert "'hover'" in reasons[1]
    assert "Expected `str`, got `null`" in reasons[2]


class TestCommand:
    def test_export_and_import(self, store, tmp_path, capsys):
        out = str(tmp_path / "out")
        assert main(["export", "hub", str(store.path), "--out", out]) == 0
        assert main(["export", "hub", str(store.path), "--out", out]) == 2
        assert main(["export", "hub", str(store.path), "--out", out, "--overwrite"]) == 0
        assert main(f"export hub {store.path} --out {tmp_path} --overwrite".split()) == 2
        told = capsys.readouterr()
        assert "24 sessions" in told.out
        assert "there is a folder with a shop_r1.json" in told.err
        assert "will not be replaced" in told.err
        assert main(["import", "hub", out, "--split-by", "official", "--out", str(tmp_path / "again")]) == 0
        assert len(SessionStore.open(tmp_path / "again")) == 24

    def test_wrong_calls_are_one_line(self, tmp_path, capsys):
        assert main(f"export hub {tmp_path}/nowhere --out {tmp_path}/out".split()) == 2
        assert main(["export", "hubb", str(tmp_path)]) == 2
        assert main(f"import hub {tmp_path} --out {tmp_path}/again".split()) == 2
        told = capsys.readouterr().err.splitlines()
        assert [line[:7] for line in told] == ["error: "] * 3
        assert "there is no file or folder" in told[2]
        assert not (tmp_path / "out").exists()
