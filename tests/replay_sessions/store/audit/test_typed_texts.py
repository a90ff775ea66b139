"""Typed texts of few users are counted by `check` and `export`, and blanked by `import --rare-texts`."""

import json
from pathlib import Path

import pytest

from replay_sessions import SessionStore
from replay_sessions.__main__ import main
from replay_sessions.store.audit.judge import audit_store

PAGE = '<input name="q" value="{}"><p>Results</p>'


@pytest.fixture
def log(tmp_path) -> Path:
    """Five users type `Red kettle`, in one way or another, and one of them a text that nobody else typed."""
    lines = []
    for number in range(5):
        texts = ["Red  kettle" if number else "red kettle"] + ["anna müller berlin"] * (number == 4)
        steps = [
            {
                "page": PAGE.format(text),
                "action": {"type": "type_and_submit", "name": "q", "text": text},
                "url": f"https://shop.example/s?q={text.replace(' ', '+')}&page=2",
            }
            for text in texts
        ]
        lines.append({"session_id": f"s{number}", "user_id": f"u{number}", "source": "x", "steps": steps})
    (tmp_path / "log.jsonl").write_text("\n".join(map(json.dumps, lines)))
    return tmp_path / "log.jsonl"


def test_check_and_export_say_how_many_texts_few_users_typed(log, capsys):
    store = log.parent / "store"
    assert main(["import", "jsonl", str(log), "--out", str(store)]) == 0
    report = audit_store(SessionStore.open(store))
    assert (report.rare_texts, report.typed_texts) == (1, 2)
    capsys.readouterr()
    main(["check", str(store)])
    assert main(["export", "hub", str(store), "--out", str(log.parent / "hub")]) == 0
    lines = [line for line in capsys.readouterr().out.splitlines() if "typed texts" in line]
    assert len(lines) == 2
    assert all("1 of 2 distinct ones are of fewer than 5 users" in line for line in lines)


def test_rare_texts_are_blanked_in_actions_addresses_and_fields(log):
    store = log.parent / "store"
    assert main(["import", "jsonl", str(log), "--out", str(store), "--rare-texts", "5"]) == 0
    common, rare = SessionStore.open(store).session("s4").steps
    assert getattr(common.action, "text", "") == "Red  kettle"
    assert 'value="Red  kettle"' in common.page
    assert getattr(rare.action, "text", None) == ""
    assert rare.url == "https://shop.example/s?q=[text]&page=2"
    assert 'name="q" value=""' in rare.page
    manifest = SessionStore.open(store).manifest
    assert manifest.options["rare_texts"] == "of fewer than 5 users are blank (1)"
    assert main(["check", str(store)]) in (0, 1)


def test_fewer_than_two_users_is_refused(log, capsys):
    assert main(["import", "jsonl", str(log), "--out", str(log.parent / "s"), "--rare-texts", "1"]) == 2
    assert "--rare-texts is 1" in capsys.readouterr().err
