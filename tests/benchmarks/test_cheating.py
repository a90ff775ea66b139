"""Ways to a better row than the agent deserves, and to what lies on the machine of whoever checks it."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from agents.child_process import Limits
from agents.sandbox import sandbox_works
from benchmarks.leaderboard.__main__ import main
from benchmarks.leaderboard.ranking import markdown
from benchmarks.leaderboard.rerun import Rerun
from benchmarks.leaderboard.verify import verify
from benchmarks.report.__main__ import main as report
from benchmarks.series.__main__ import main as series
from replay_sessions.store import SessionStore
from shop_env.evaluation.comparing import Comparison
from shop_env.evaluation.log import read_log
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
        spec = f"prompting?base_url={server.base_url}&model=m&key_env=MY_KEY&system_file={prompt}"
        assert rank(store, tmp_path / "out", f"p={spec}") == 0
        run = len(server.received)
        assert "--trust 'prompting?base_url=" in rerun(tmp_path / "out", store)
        assert len(server.received) == run
        assert rerun(tmp_path / "out", store, spec) == ""
        prompt.write_text("PRIVATE", encoding="utf-8")
        read_instructions.cache_clear()
        after = len(server.received)
        assert after > run
        assert "so it was not run again" in rerun(tmp_path / "out", store, spec)
        assert len(server.received) == after


def test_a_file_that_is_named_within_an_argument_is_not_read(store: SessionStore, tmp_path: Path) -> None:
    folder = tmp_path / "out"
    assert rank(store, folder, "random") == 0
    edit_json(folder / "results.json", lambda log: log["entries"][0]["spec"].update(arguments={"extra": {"a": "/b"}}))
    assert "to run what this folder names, add --trust" in rerun(folder, store)


@pytest.mark.long
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
    (out / "results.json").unlink()
    assert rank(store, out, agent) == 0
    assert "the agent replies 'nothing', and not 'the best'" in rerun(out, store, f"{file}:act")
    open_door = Rerun(steps=2, trust=(f"{file}:act",), limits=Limits(sandbox=False))
    assert not any(verify(out, store, rerun=open_door).values())  # as docs/leaderboards.md says


def write_agent(folder: Path, source: str) -> str:
    """An agent that replies with the value of `reply(observation)`."""
    file = folder / "theirs.py"
    leave = 'LEAVE = \'{"rationale": "", "action": {"type": "terminate"}}\'\n'
    file.write_text(f"import os\n{leave}{source}\n", encoding="utf-8")
    return f"theirs={file}:act"


@pytest.mark.long
def test_replies_of_a_run_after_a_failed_one_are_marked_unless_no_notes_could_be_kept(
    store: SessionStore, tmp_path: Path
) -> None:
    notes = tmp_path / "notes"
    source = f"def act(observation):\n    if os.path.exists({str(notes)!r}): return LEAVE\n    raise OSError"
    for options in ([], ["--no-sandbox"]):
        assert rank(store, tmp_path / "out", write_agent(tmp_path, source), *options) == 1
    notes.touch()
    assert rank(store, tmp_path / "out", write_agent(tmp_path, source), "--no-sandbox") == 0
    table = (tmp_path / "out" / "leaderboard.md").read_text(encoding="utf-8")
    assert "theirs: after failures: 13 replies came when their steps, or others with them, were run again" in table
    assert not any(verify(tmp_path / "out", store).values())


def test_a_row_above_the_ceiling_says_so_in_the_table_also_without_an_interval(
    store: SessionStore, tmp_path: Path
) -> None:
    """The demo shop's test split can be generated by anybody who knows its seed."""
    source = """
from replay_sessions.demo_shop import generate_sessions
from replay_sessions.schema import reply_action
from shop_env.observation import observe_session
from shop_env.replies import format_reply
known = {
    (seen["goal"], seen["page"], len(seen["history"])): step.action
    for session in generate_sessions(60, seed=4)
    for seen, step in zip(observe_session(session), session.steps)
}
class Knows:
    def reset(self, *, seed=None): pass
    def action(self, o): return known[o["goal"], o["page"], len(o["history"])]
    def act(self, o): return format_reply("", self.action(o))
    def probabilities(self, observations): return [{self.action(o): 1.0} for o in observations]
"""
    agent = write_agent(tmp_path, source).replace(":act", ":Knows")
    assert rank(store, tmp_path / "out", f"{agent},majority", "--likelihood") == 0
    table = (tmp_path / "out" / "leaderboard.md").read_text(encoding="utf-8")
    [remark] = [line for line in table.splitlines() if line.startswith("theirs: beyond the ceiling")]
    assert all(f"{name} " in remark for name in ("exact_accuracy", "top1_accuracy", "nll"))
    assert "majority: beyond" not in table


STATEFUL = "count = 0\ndef act(observation):\n    global count\n    count += 1\n    return LEAVE + ' ' * count"


@pytest.mark.long
def test_an_agent_with_a_state_is_ranked_nowhere_and_says_why(
    store: SessionStore, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out, agent = tmp_path / "out", write_agent(tmp_path, STATEFUL)
    sentence = "depends on more than the observation"
    assert rank(store, out, f"{agent},majority") == 0
    assert sentence in capsys.readouterr().out
    assert main(["compare", str(out), "theirs", "majority"]) == 0
    assert sentence in capsys.readouterr().out
    assert sentence in (out / "leaderboard.md").read_text(encoding="utf-8")
    assert report([str(out)]) == 0
    assert sentence in (out / "report.html").read_text(encoding="utf-8")
    file = tmp_path / "series.toml"
    runs = f'[[runs]]\nagents = ["{agent}", "majority"]\nstores = ["{store.path}"]\n'
    file.write_text(f'out = "{tmp_path}/series"\n[settings]\nsessions = 3\n{runs}', encoding="utf-8")
    assert series([str(file)]) == 0
    assert f"theirs (not ranked: {sentence}" in (tmp_path / "series" / "series.md").read_text(encoding="utf-8")


@pytest.mark.long
def test_a_forged_check_of_the_order_is_found_by_a_rerun_and_made_anew_by_a_fresh_run(
    store: SessionStore, tmp_path: Path
) -> None:
    out, agent = tmp_path / "out", write_agent(tmp_path, STATEFUL)
    assert rank(store, out, agent) == 0
    first = read_log(out).entries[0].order_check
    assert first is not None and first.different > 0 and first.seed is not None

    def forge(log: dict[str, Any]) -> None:
        log["entries"][0]["order_check"]["different"] = 0
        log["entries"][0]["row"]["caveat"] = None

    edit_json(out / "results.json", forge)
    (out / "leaderboard.md").write_text(markdown(read_log(out)), encoding="utf-8")
    assert not any(verify(out, store).values())
    assert "run again, the agent replies" in rerun(out, store, agent)
    assert rank(store, out, agent, "--fresh") == 0
    again = read_log(out).entries[0].order_check
    assert again is not None and again.different > 0 and again.seed != first.seed


def test_steps_are_run_again_in_another_order_for_a_rerun(store: SessionStore, tmp_path: Path) -> None:
    """Its replies are those of the run as long as it gets the same steps in the same order."""
    source = STATEFUL + " if observation['step'] > 2 and count < 9 else LEAVE"
    out, agent = tmp_path / "out", write_agent(tmp_path, source)
    assert rank(store, out, agent, "--order-check", "0") == 0
    every = Rerun(steps=13, trust=(agent,))
    assert any(any(verify(out, store, rerun=every).values()) for _ in range(5))


@pytest.mark.parametrize(
    ("agents", "why"),
    [
        ("results.json and its table=random", "means something else in tables"),
        ("ceiling at T = 0=random", "means something else in tables"),
        ("best (not ranked)=random", "means something else in tables"),
        ("nearest=random", "means something else in tables"),
        ("a b=majority,a_b-fbd987=random", "'a b', which is too like it"),
        ("\u00e9=majority,e\u0301=random", "'\u00e9', which is too like it"),
    ],
)
def test_a_label_cannot_stand_for_something_else(
    agents: str, why: str, store: SessionStore, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert rank(store, tmp_path / "out", agents) == 2
    assert why in capsys.readouterr().err


def test_the_table_says_what_stands_behind_a_label(store: SessionStore, tmp_path: Path) -> None:
    assert rank(store, tmp_path / "out", "best=random,oracle?temperature=0,majority") == 0
    table = (tmp_path / "out" / "leaderboard.md").read_text(encoding="utf-8")
    assert "\nbest is random\n" in table
    assert "majority is" not in table and "oracle" in table


def test_verify_takes_a_store_that_only_the_folder_names_from_nobody(
    store: SessionStore, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "out"
    assert rank(store, folder, "random") == 0
    assert main(["verify", str(folder)]) == 2
    assert f"say --store {store.path}" in capsys.readouterr().err
    assert main(["verify", str(folder), "--store", str(store.path)]) == 0
    assert f"fingerprint {store.fingerprint}" in capsys.readouterr().out
    assert main(["submit", str(folder), "name", "--results", str(tmp_path / "results")]) == 2


@pytest.mark.parametrize("metric", ["nll", "invalid_rate", "stop_brier", "stop_too_early", "stop_too_late"])
def test_more_of_what_is_bad_is_no_improvement(metric: str) -> None:
    more = Comparison(first="a", second="b", metric=metric, difference=0.1, p_value=0.001, clusters=20, steps=200)
    assert more.verdict == "significantly worse"


@pytest.mark.parametrize("field", ["reply", "reward", "logged_probability"])
def test_records_that_were_forged_with_their_digest_are_compared_with_the_replies(
    field: str, store: SessionStore, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    assert rank(store, out, "oracle,majority", "--likelihood") == 0
    files = read_log(out).entry("oracle").files(out)

    def forge(record: dict[str, Any]) -> dict[str, Any]:
        reply = {"rationale": "", "action": record["logged"]}
        right = {"reply": json.dumps(reply), "predicted": record["logged"], "predicted_rationale": ""}
        return right if field == "reply" else {field: 1.0}

    edit_lines(files.steps, each(forge))
    edit_json(out / "results.json", lambda log: log["entries"][0].update(records_digest=files.digest()))
    for command in (lambda: main(["compare", str(out), "oracle", "majority"]), lambda: report([str(out)])):
        assert command() == 2
        assert "or not what the replies earn" in capsys.readouterr().err


def test_edited_replies_are_noticed_by_the_next_run(
    store: SessionStore, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    assert rank(store, out, "majority,random") == 0
    [replies] = out.glob("agents/random/replies/*.jsonl")
    edit_lines(replies, lambda lines: [*lines, {**lines[-1], "reply": "broken"}])
    assert rank(store, out, "majority,random") == 2
    assert "1 replies of 'random'" in capsys.readouterr().err
    assert rank(store, out, "majority,random", "--fresh") == 0


def test_merged_replies_are_marked(store: SessionStore, tmp_path: Path) -> None:
    assert rank(store, tmp_path / "other", "random") == 0
    for _ in range(2):
        assert main(["merge", str(tmp_path / "out"), str(tmp_path / "other")]) == 0
    assert rank(store, tmp_path / "out", "random") == 0
    table = (tmp_path / "out" / "leaderboard.md").read_text(encoding="utf-8")
    assert "random: some of its replies were merged from another machine" in table
    assert not any(verify(tmp_path / "out", store).values())


@pytest.mark.parametrize("name", ["results.json", "agents/random/steps.jsonl", "agents/random/replies/*.jsonl"])
@pytest.mark.parametrize("kind", ["pipe", "deep"])
def test_a_file_that_never_ends_or_is_too_deep_is_an_error(
    name: str, kind: str, store: SessionStore, tmp_path: Path
) -> None:
    assert rank(store, tmp_path, "random") == 0
    [file] = tmp_path.glob(name)
    file.unlink()
    if kind == "pipe":
        os.mkfifo(file)
    else:
        file.write_text("[" * 200_000 + "\n", encoding="utf-8")
    assert main(["verify", str(tmp_path), "--store", str(store.path)]) in (1, 2)


def test_a_source_of_any_depth_ends_no_other_agent_s_run(store: SessionStore, tmp_path: Path) -> None:
    agent = write_agent(tmp_path, "x = " + "-" * 200_000 + "1\ndef act(observation): return LEAVE")
    assert rank(store, tmp_path / "out", f"{agent},majority") == 1
    assert read_log(tmp_path / "out").entry("majority").row.ranked


def test_modules_in_a_folder_that_was_sent_are_not_those_that_verify_loads(tmp_path: Path) -> None:
    for name in ("msgspec", "json", "tyro"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('loaded from the folder')", encoding="utf-8")
    words = [sys.executable, "-m", "benchmarks.leaderboard", "verify", "."]
    ended = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert ended.returncode == 2 and "loaded from the folder" not in ended.stderr
