"""The command as it is called: what it acknowledged outlives it."""

import http.client
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from agents.human.__main__ import main
from agents.human.recording import Recording
from replay_sessions.store import SessionStore

pytestmark = pytest.mark.long

ROOT = Path(__file__).resolve().parents[3]


def start(
    store: SessionStore, out: Path, *more: str, is_introduced: bool = True
) -> tuple["subprocess.Popen[str]", str]:
    """The running command and the address that it prints, with consent given and practice done."""
    words = ["-m", "agents.human", "--store", str(store.path), "--out", str(out), "--person", "ada", *more]
    process = subprocess.Popen([sys.executable, *words], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    address = process.stdout.readline().split()[-1]
    if is_introduced and "consent" in ask(address, "step"):
        ask(address, "consent", {"agrees": True})
        for number in (-2, -1):
            ask(address, "prediction", {"number": number, "action": {"type": "terminate"}})
    return process, address


def ask(address: str, path: str, body: Any = None) -> Any:
    parts = urlsplit(address)
    connection = http.client.HTTPConnection(parts.netloc, timeout=60)
    if body is None:
        connection.request("GET", parts.path + path)
    else:
        connection.request("POST", parts.path + path, json.dumps(body), {"Content-Type": "application/json"})
    response = connection.getresponse()
    assert response.status == 200, response.read()
    answer = json.loads(response.read())
    connection.close()
    return answer


def test_kill_9_after_an_acknowledgement_loses_nothing_and_each_run_has_a_token_of_its_own(
    shop_store: SessionStore, tmp_path: Path
) -> None:
    tokens = set()
    for number in range(2):
        process, address = start(shop_store, tmp_path / "people")
        assert ask(address, "step")["number"] == number
        ask(address, "prediction", {"number": number, "action": {"type": "terminate"}, "rationale": f"reason {number}"})
        process.kill()
        process.communicate(timeout=60)
        assert process.returncode == -signal.SIGKILL
        if number == 0:  # and a kill in the middle of a line
            with (tmp_path / "people/people/ada.jsonl").open("ab") as file:
                file.write(b'{"session_id": "x", "step_in')
        assert urlsplit(address).hostname == "127.0.0.1"
        tokens.add(urlsplit(address).path.strip("/"))
    recording = Recording.open(tmp_path / "people")
    kept = recording.replies_of("ada")
    replies = [kept.reply(step.key) for step in recording.steps]
    assert [json.loads(reply)["rationale"] for reply in replies[:2] if reply] == ["reason 0", "reason 1"]
    assert set(replies[2:]) == {None}
    assert sorted(map(len, tokens)) == [32, 32]
    everything = b"".join(path.read_bytes() for path in (tmp_path / "people").rglob("*") if path.is_file())
    assert not any(token.encode() in everything for token in tokens)


def test_ctrl_c_ends_with_one_line_and_the_last_answer_ends_it_too(shop_store: SessionStore, tmp_path: Path) -> None:
    out = tmp_path / "people"
    process, address = start(shop_store, out, "--sessions", "1")
    ask(address, "prediction", {"number": 0, "action": {"type": "terminate"}})
    process.send_signal(signal.SIGINT)
    told, _ = process.communicate(timeout=60)
    assert process.returncode == 130
    assert told.splitlines()[-1] == f"ada: 1 step answered, in {out}"
    process, address = start(shop_store, out, "--sessions", "1")
    steps = len(Recording.open(out).steps)
    for number in range(1, steps):
        ask(address, "prediction", {"number": number, "action": {"type": "terminate"}})
    assert ask(address, "step")["done"]
    told, _ = process.communicate(timeout=60)
    assert process.returncode == 0
    assert told.splitlines()[-1] == f"ada: all {steps} steps answered, in {out}"


def test_a_person_who_does_not_agree_ends_the_program(shop_store: SessionStore, tmp_path: Path) -> None:
    process, address = start(shop_store, tmp_path / "people", is_introduced=False)
    ask(address, "consent", {"agrees": False})
    told, _ = process.communicate(timeout=60)
    assert process.returncode == 0
    assert told.splitlines()[-1] == "ada does not take part; no answer was recorded"


def test_a_recording_that_is_damaged_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "asked.json").write_bytes(b'{"store": "\xff')
    (tmp_path / "steps.jsonl").write_bytes(b"")
    assert main(["agreement", str(tmp_path)]) == 2
    assert "cannot be read" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--out", "x", "--sessions", "0"], "--sessions is 0"),
        (["--out", "x", "--port", "70000"], "--port is 70000"),
        (["--out", "x", "--consent", "no/such"], "--consent no/such cannot be read"),
        (["agreement", "no/such"], "No recorded predictions in 'no/such'"),
    ],
)
def test_a_wrong_value_is_one_line(words: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words) == 2
    error = capsys.readouterr().err
    assert error.startswith("error: ") and message in error
    assert error.count("\n") == 1


@pytest.mark.parametrize(("words", "flag"), [(["--persn", "ada", "--out", "x"], "--person"), ([], "--out")])
def test_a_wrong_or_missing_flag_is_named(words: list[str], flag: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words) == 2
    error = capsys.readouterr().err  # tyro's own explanation, in several lines
    assert flag in error and "Traceback" not in error


def test_a_port_that_is_taken_is_told(
    shop_store: SessionStore, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    process, address = start(shop_store, tmp_path / "people")
    try:
        port = str(urlsplit(address).port)
        words = ["--store", str(shop_store.path), "--out", str(tmp_path / "others"), "--port", port]
        assert main(words) == 2
        assert f"--port {port} of 127.0.0.1 is not available" in capsys.readouterr().err
        assert main(["--store", str(shop_store.path), "--out", str(tmp_path / "people"), "--person", "ada"]) == 2
        assert "choose another --person than 'ada'" in capsys.readouterr().err
    finally:
        os.kill(process.pid, signal.SIGKILL)
        process.communicate()
