"""A log that `show` and `check` print cannot move a terminal's cursor or change its colors."""

import pytest

from replay_sessions import Click, Session, Step, StoreWriter
from replay_sessions.__main__ import main

ESCAPES = "\x1b[31m\x07\x9b2J"


@pytest.mark.parametrize("words", ["show {}", "show {} --session {}", "show {} --session {} --step 0", "check {}"])
def test_escape_sequences_of_a_log_are_replaced(words, tmp_path, capsys):
    session_id = f"s{ESCAPES}"
    page = f'<a name="x">{ESCAPES} text</a>'
    steps = (Step(page=page, action=Click(name=f"n{ESCAPES}"), rationale=ESCAPES),) * 2
    with StoreWriter(tmp_path / "store", source=f"log{ESCAPES}") as writer:
        for number in range(2):
            writer.write(
                Session(session_id=f"{session_id}{number or ''}", user_id=f"u{ESCAPES}", steps=steps, source="x")
            )
    arguments = [
        word.format(tmp_path / "store") if n == 1 else word.format(session_id) for n, word in enumerate(words.split())
    ]
    assert main(arguments) in (0, 1)
    out = capsys.readouterr().out
    assert "�[31m" in out
    assert not any(sign in out for sign in "\x1b\x07\x9b")
