"""Ways to a better row than the agent deserves, and to what lies on the machine of whoever checks it."""

from pathlib import Path

import pytest

from agents.child_process import Limits
from agents.sandbox import sandbox_works
from benchmarks.leaderboard.__main__ import main
from benchmarks.leaderboard.rerun import Rerun
from benchmarks.leaderboard.verify import verify
from replay_sessions.store import SessionStore
from shop_env.prompts import read_instructions
from tests.agents.prompting.scripted_server import ScriptedServer, completion
from tests.benchmarks.test_verify import each, edit_json, edit_lines


@pytest.fixture
def store(store_path: Path) -> SessionStore:
    return SessionStore.open(store_path)


def rank(store: SessionStore, out: Path, agents: str, *options: str) -> int:
    return main(["--agents", agents, "--store", str(store.path), "--out", str(out), "--sessions", "3", *options])


def rerun(folder: Path, store: SessionStore, *trust: str) -> str:
    found = verify(folder, store, rerun=Rerun(steps=2, trust=trust))
    return "\n".join(line for lines in found.values() for line in lines)


def test_a_server_that_a_stranger_s_file_names_gets_neither_a_key_nor_a_file(
    store: SessionStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_KEY", "secret")
    prompt = tmp_path / "prompt.txt"
    prompt.write_text("Say what a person does next.", encoding="utf-8")
    with ScriptedServer(lambda request, count: completion()) as server:
        spec = f"prompting?base_url={server.base_url}&model=m&key_env=MY_KEY&system_file={prompt}&reuse=false"
        assert rank(store, tmp_path / "out", f"p={spec}") == 0
        run = len(server.heard)
        assert "--trust 'prompting?base_url=" in rerun(tmp_path / "out", store)
        assert len(server.heard) == run
        assert rerun(tmp_path / "out", store, spec) == ""
        prompt.write_text("PRIVATE", encoding="utf-8")
        read_instructions.cache_clear()
        after = len(server.heard)
        assert after > run
        assert "so it was not run again" in rerun(tmp_path / "out", store, spec)
        assert len(server.heard) == after


def test_a_file_that_is_named_within_an_argument_is_not_read(store: SessionStore, tmp_path: Path) -> None:
    folder = tmp_path / "out"
    assert rank(store, folder, "random") == 0
    edit_json(folder / "results.json", lambda log: log["entries"][0]["spec"].update(arguments={"extra": {"a": "/b"}}))
    assert "to run what this folder names, add --trust" in rerun(folder, store)


@pytest.mark.skipif(not sandbox_works(), reason="bubblewrap does not work here")
def test_forged_replies_that_the_agent_reads_from_the_folder_are_found_by_a_rerun_in_the_sandbox(
    store: SessionStore, tmp_path: Path
) -> None:
    out, file = tmp_path / "out", tmp_path / "echo.py"
    source = """\
import glob, json
def act(observation):
    for name in glob.glob(FOLDER + "/agents/echo/replies/*.jsonl"):
        return next(line["reply"] for line in map(json.loads, open(name)) if "reply" in line)
    return "nothing"
"""
    file.write_text(source.replace("FOLDER", repr(str(out))), encoding="utf-8")
    agent = f"echo={file}:act"
    assert rank(store, out, agent) == 0
    (replies,) = (out / "agents" / "echo" / "replies").glob("*.jsonl")
    edit_lines(replies, each(lambda line: {"reply": "the best"} if "reply" in line else {}))
    assert rank(store, out, agent) == 0
    assert "the agent replies 'nothing', and not 'the best'" in rerun(out, store, f"{file}:act")
    open_door = Rerun(steps=2, trust=(f"{file}:act",), limits=Limits(sandbox=False))
    assert not any(verify(out, store, rerun=open_door).values())  # as docs/leaderboards.md says
