"""Tests that the importer builds a store from a log, and rejects lines that are no visit."""

import json
from pathlib import Path

import pytest

from replay_sessions import Click, SessionStore
from replay_sessions.__main__ import main

IMPORTER = f"{Path(__file__).with_name('own_importer.py')}:OwnImporter"
VISIT = {"visit": "v1", "user": "u1", "steps": [{"page": '<button name="cart">Cart</button>', "click": "cart"}]}


@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_visit_becomes_a_session(workers: str, tmp_path: Path) -> None:
    log = tmp_path / "visits.jsonl"
    log.write_text(json.dumps(VISIT) + "\n{}\n", encoding="utf-8")
    assert main(["import", IMPORTER, str(log), "--out", str(tmp_path / "store"), "--workers", workers]) == 0
    store = SessionStore.open(tmp_path / "store")
    assert store.manifest.rejected == 1
    assert store.session("v1").steps[0].action == Click(name="cart")
