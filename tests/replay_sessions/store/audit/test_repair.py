import json
from collections.abc import Callable
from pathlib import Path

import pytest

from replay_sessions import SessionStore, StoreWriter
from replay_sessions.__main__ import main
from replay_sessions.foundation.errors import BadSession
from replay_sessions.store.audit.judge import audit_store
from replay_sessions.store.manifest import SplitPlan
from tests.replay_sessions.store.audit.test_audit import walk

MakeStore = Callable[..., SessionStore]


def rejected(store: Path) -> dict[str, str]:
    lines = (store / "set_aside.jsonl").read_text().splitlines()
    return {record["where"]: record["reason"] for record in map(json.loads, lines)}


def test_sessions_at_fault_are_rejected_and_the_rest_is_kept(
    make_store: MakeStore, capsys: pytest.CaptureFixture[str]
) -> None:
    lost = [walk(i, shift=7) for i in range(100, 140)]
    copy = walk(3, session_id="copy")
    store = make_store([*(walk(i) for i in range(60)), *lost, copy], splits=SplitPlan(by="session"))
    assert main(["check", str(store.path)]) == 1
    assert main(["check", str(store.path), "--repair"]) == 0
    assert "rejected 41 of 101 sessions" in capsys.readouterr().out
    repaired = SessionStore.open(store.path)
    assert repaired.session_ids() == [f"walk-{i}" for i in range(60)]
    assert repaired.manifest.split_plan == SplitPlan(by="session")
    reasons = rejected(store.path)
    assert reasons["copy"] == "repeats another session exactly"
    assert reasons["walk-100"] == "too few of its targets stand on the page shown"
    assert main(["check", str(store.path), "--repair"]) == 0  # nothing is left to repair
    assert SessionStore.open(store.path).fingerprint == repaired.fingerprint


def test_what_can_be_read_of_a_truncated_store_is_kept(
    make_store: MakeStore, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("replay_sessions.store.writer._SHARD_SESSIONS", 20)
    store = make_store([walk(i) for i in range(60)])
    shard = store.path / store.manifest.shards[1].file
    shard.write_bytes(shard.read_bytes()[:-100])
    with pytest.raises(BadSession, match="--repair` keeps what can be read"):
        SessionStore.open(store.path)
    assert main(["check", str(store.path)]) == 2
    assert main(["check", str(store.path), "--repair"]) == 0
    capsys.readouterr()
    repaired = SessionStore.open(store.path)
    assert list(repaired.sessions()) == [walk(i) for i in (*range(20), *range(40, 60))]
    assert set(rejected(store.path).values()) == {"cannot be read as it was written"}
    assert audit_store(repaired).rejected == 20


def test_shifted_pages_cannot_be_repaired(make_store: MakeStore, capsys: pytest.CaptureFixture[str]) -> None:
    store = make_store([walk(i, shift=1) for i in range(40)])
    assert main(["check", str(store.path), "--repair"]) == 2
    assert "cannot be repaired by leaving sessions out: pages look shifted" in capsys.readouterr().err
    assert SessionStore.open(store.path).fingerprint == store.fingerprint


@pytest.fixture
def incomplete(make_store: MakeStore) -> Path:
    """A store with a list of what was rejected."""
    path = make_store([walk(i) for i in range(20)]).path
    with StoreWriter(path, source="test", options={"seed": "3"}, overwrite=True) as writer:
        for i in range(20):
            writer.write(walk(i))
        writer.reject("log:17", "no page")
        writer.leave_out("scroll", 5)
    return path


@pytest.mark.parametrize("damage", ["another reason", "a line less", "nothing"])
def test_damage_to_the_list_of_what_was_rejected_is_found_and_mended(incomplete: Path, damage: str) -> None:
    assert main(["check", str(incomplete)]) == 0
    listed = incomplete / "set_aside.jsonl"
    if damage == "nothing":
        listed.unlink()
    else:
        listed.write_text(listed.read_text().replace("no page", "no paGe") if damage == "another reason" else "")
    (fault,) = audit_store(SessionStore.open(incomplete)).faults
    assert "1 file not as written, byte for byte, such as set_aside.jsonl" in fault.message
    assert main(["check", str(incomplete), "--repair"]) == 0
    assert rejected(incomplete)["set_aside.jsonl"] == "was not as written when the store was repaired"
    assert ("log:17" in rejected(incomplete)) == (damage == "another reason")
    store = SessionStore.open(incomplete)
    assert len(store) == 20
    assert store.manifest.rejected == len(listed.read_text().splitlines())


@pytest.mark.parametrize("field", ["options", "steps", "left_out_steps", "set_aside", "action_counts", "source"])
def test_damage_to_counts_and_options_in_the_manifest_is_found(incomplete: Path, field: str) -> None:
    manifest = incomplete / "manifest.json"
    written = json.loads(manifest.read_bytes())
    value = written[field]
    written[field] = (
        {**value, next(iter(value)): "7"}
        if field == "options"
        else value + type(value)(1)
        if (isinstance(value, int))
        else "other"
        if isinstance(value, str)
        else {**value, next(iter(value)): 7}
    )
    manifest.write_text(json.dumps(written))
    report = audit_store(SessionStore.open(incomplete))
    assert [fault.code for fault in report.faults] == ["altered"]
    assert "such as manifest.json" in report.faults[0].message


def test_a_store_of_an_earlier_version_has_no_digests_and_no_fault(incomplete: Path) -> None:
    manifest = incomplete / "manifest.json"
    written = json.loads(manifest.read_bytes())
    del written["digest"], written["rejected_digest"]
    manifest.write_text(json.dumps(written))
    assert main(["check", str(incomplete)]) == 0
