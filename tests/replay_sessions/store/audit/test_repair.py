from collections.abc import Callable

from replay_sessions import SessionStore, StoreWriter
from replay_sessions.__main__ import main
from replay_sessions.store.audit.repair import open_alone
from replay_sessions.store.splits import SplitPlan
from tests.replay_sessions.store.audit.test_audit import walk
from tests.stores import read_rejected

MakeStore = Callable[..., SessionStore]


def test_sessions_at_fault_are_rejected_and_the_rest_is_kept(make_store, capsys):
    lost = [walk(i, shift=7) for i in range(100, 140)]
    copy = walk(3, session_id="copy")
    store = make_store([*(walk(i) for i in range(60)), *lost, copy], splits=SplitPlan(by="session"))
    assert main(["check", str(store.path)]) == 1
    assert main(["check", str(store.path), "--repair"]) == 0
    assert "rejected 41 of 101 sessions" in capsys.readouterr().out
    repaired = SessionStore.open(store.path)
    assert repaired.session_ids() == [f"walk-{i}" for i in range(60)]
    assert repaired.manifest.split_plan == SplitPlan(by="session")
    reasons = read_rejected(store.path)
    assert reasons["copy"] == "repeats another session exactly"
    assert reasons["walk-100"] == "too few of its targets stand on the page shown"
    assert main(["check", str(store.path), "--repair"]) == 0  # nothing is left to repair
    assert SessionStore.open(store.path).fingerprint == repaired.fingerprint


def test_shifted_pages_cannot_be_repaired(make_store, capsys):
    store = make_store([walk(i, shift=1) for i in range(40)])
    assert main(["check", str(store.path), "--repair"]) == 2
    assert "cannot be repaired by leaving sessions out: pages look shifted" in capsys.readouterr().err
    assert SessionStore.open(store.path).fingerprint == store.fingerprint


def test_a_repaired_store_lists_earlier_rejections(make_store):
    path = make_store([walk(i) for i in range(20)]).path
    with StoreWriter(path, source="test", options={"seed": "3"}, overwrite=True) as writer:
        for i in range(20):
            writer.write(walk(i))
        writer.write(walk(3, session_id="copy"))
        writer.reject("log:17", "no page")
        writer.leave_out("scroll", 5)
    assert main(["check", str(path), "--repair"]) == 0
    manifest = SessionStore.open(path).manifest
    assert (manifest.sessions, manifest.rejected, manifest.left_out_steps) == (20, 2, {"scroll": 5})
    assert read_rejected(path) == {"log:17": "no page", "copy": "repeats another session exactly"}


def test_a_store_is_rewritten_by_one_process_at_a_time(make_store):
    path = make_store([*(walk(i) for i in range(20)), walk(3, session_id="copy")]).path
    with open_alone(path):
        assert main(["check", str(path), "--repair"]) == 2
    assert len(SessionStore.open(path)) == 21
