"""The leaderboard through its command line: what it writes, what it runs again, what it says of bad calls."""

import shlex
import shutil
from pathlib import Path
from typing import Any

import pytest

from benchmarks.leaderboard.__main__ import main
from benchmarks.leaderboard.verify import verify
from replay_sessions.store import SessionStore
from shop_env.evaluation.results_file import read_log, read_records
from shop_env.metrics import step_metrics
from tests.agents.conftest import planted_store as planted_store
from tests.json_files import read_json, read_json_lines
from tests.processes import run_python

# Ten lines, as somebody would write them who has never seen the project's code.
TEN_LINES = """\
from shop_env.replies import format_reply
from replay_sessions.schema import Click, Terminate
from replay_sessions.elements import find_elements

class FirstLink:
    def reset(self, *, seed=None):
        pass
    def act(self, observation):
        links = [e for e in find_elements(observation["page"]) if e.accepts == "click"]
        return format_reply("The first one.", Click(name=links[0].name) if links else Terminate())
"""
FLAKY = """\
import pathlib
from replay_sessions.foundation.errors import AgentFailed
from shop_env.replies import format_reply
CALLS = pathlib.Path(__file__).with_name("calls.txt")

class Flaky:
    '''Fails from its fifth step on, as long as the file "down" is there.'''
    def reset(self, *, seed=None):
        pass
    def act(self, observation):
        calls = int(CALLS.read_text()) if CALLS.exists() else 0
        CALLS.write_text(str(calls + 1))
        if calls >= 4 and CALLS.with_name("down").exists():
            raise AgentFailed("connection refused")
        return format_reply("done", {"type": "terminate"})
"""

WHOLE = """\
from replay_sessions.schema import Terminate
from shop_env.evaluation.answering import Answer, AnsweringAgent
from shop_env.replies import format_reply

class Counts(AnsweringAgent):
    reads_whole_sessions = True
    def answer(self, observations, seeds, probabilities):
        return [Answer(format_reply(str(len(observations)), Terminate()))] * len(observations)
"""


@pytest.fixture
def flaky(tmp_path) -> str:
    (tmp_path / "flaky.py").write_text(FLAKY, encoding="utf-8")
    (tmp_path / "down").touch()
    return f"flaky={tmp_path}/flaky.py:Flaky"


def run_main(*arguments: str | Path) -> int:
    return main([str(argument) for argument in arguments])


def test_a_user_s_agent_reads_whole_sessions_only_if_trusted_and_a_note_says_so(planted_store, tmp_path):
    (tmp_path / "whole.py").write_text(WHOLE, encoding="utf-8")
    agent, board = f"{tmp_path}/whole.py:Counts", tmp_path / "board"
    call = ["--agents", f"mine={agent}", "--store", planted_store.path, "--out", board]

    def sizes_and_table(*more: str) -> tuple[list[str | None], str]:
        assert run_main(*call, *more) == 0
        log = read_log(board)
        sizes = [record.predicted_rationale for record in read_records(board, log, log.entry("mine"))]
        assert run_main("verify", board, "--store", planted_store.path) == 0
        return sizes, (board / "leaderboard.md").read_text(encoding="utf-8")

    sizes, table = sizes_and_table()
    assert sizes == ["2", "2", "1", "2", "2"]
    assert "mine: it computed each page of a session again; with --trust" in table
    for _ in range(2):  # the second call has nothing to run, and the note stays
        sizes, table = sizes_and_table("--trust", agent)
        assert sizes == ["5"] * 5
        assert "mine: trusted to read all steps of a session together" in table
    assert run_main(*call, "--trust", "random") == 2


def results_of(folder: Path) -> Any:
    return read_json(folder / "results.json")


def by_label(folder: Path) -> dict[str, dict[str, Any]]:
    return {entry["spec"]["label"]: entry for entry in results_of(folder)["entries"]}


@pytest.fixture(scope="module")
def finished(store_path, tmp_path_factory) -> Path:
    """A finished run; tests that change it take a copy."""
    out = tmp_path_factory.mktemp("runs") / "finished"
    agents = "random,majority,copy_match,oracle"
    assert run_main("--agents", agents, "--store", store_path, "--split", "all", "--out", out) == 0
    return out


def test_a_third_party_agent_of_ten_lines_runs_through_the_real_command_line(store_path, tmp_path):
    (tmp_path / "my_agent.py").write_text(TEN_LINES, encoding="utf-8")
    call = ["--agents", "random,my_agent.py:FirstLink", "as module=my_agent:FirstLink"]
    call += f"--store {store_path} --out out".split()
    # From the author's own folder: as a file, and as a module of the current folder.
    done = run_python("-m", "benchmarks.leaderboard", *call, folder=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    entries = by_label(tmp_path / "out")
    assert entries["my_agent.py:FirstLink"]["row"]["figures"] == entries["as module"]["row"]["figures"]
    assert "as module" in done.stdout


def test_the_oracle_stands_above_the_rest_and_near_its_ceiling(finished):
    results = results_of(finished)
    exact = {entry["spec"]["label"]: entry["row"]["figures"]["exact_accuracy"] for entry in results["entries"]}
    assert max(exact, key=lambda label: exact[label]["value"]) == "oracle"
    (best, sampled) = results["ceilings"]
    assert sampled["figures"]["exact_accuracy"]["value"] < best["figures"]["exact_accuracy"]["value"]
    assert exact["oracle"]["low"] <= best["figures"]["exact_accuracy"]["value"] <= exact["oracle"]["high"]


def test_metrics_take_single_choices_behind_the_preset(copied, store_path):
    call = ["--agents", "majority,copy_match", "--store", store_path, "--split", "all", "--out", copied]
    choices = "customer_r1,text=similar,mean=sessions,invalid=class,mix=690:677:512"
    before = by_label(copied)
    assert run_main(*call, "--metrics", choices) == 0
    log = read_log(copied)
    assert log.config.metrics == choices
    for entry in log.entries:
        expected = step_metrics(read_records(copied, log, entry, SessionStore.open(store_path)), log.config.metrics)
        assert entry.new_steps == 0
        assert entry.row.figures["exact_accuracy"].value == pytest.approx(expected["exact_accuracy"])
        assert expected["exact_accuracy"] != before[entry.label]["row"]["figures"]["exact_accuracy"]["value"]
    assert not any(verify(copied, SessionStore.open(store_path)).values())
    assert run_main(*call, "--metrics", "text=same") == 2
    assert run_main(*call, "--metrics", "mix=1:2") == 2


def test_results_name_versions_and_configuration(finished, store_path):
    results = results_of(finished)
    made = results["provenance"]
    manifest = read_json(store_path / "manifest.json")
    assert made["store"]["fingerprint"] == manifest["fingerprint"]
    assert made["config"]["split"] == "all"
    assert made["seed"] == 0
    assert {"commit", "dirty", "python", "packages", "machine", "time"} <= made.keys()
    assert {entry["identity"]["store"] for entry in results["entries"]} == {manifest["fingerprint"]}
    table = (finished / "leaderboard.md").read_text(encoding="utf-8")
    assert "| agent | exact | type | macro-F1 |" in table
    assert manifest["fingerprint"] in table


def test_answered_steps_are_not_run_again(copied, store_path, capsys):
    call = ("--agents", "random,oracle", "--store", store_path, "--out", copied)
    assert run_main(*call) == 0
    assert "all steps were there: random, oracle" in capsys.readouterr().out
    assert {entry["new_steps"] for entry in by_label(copied).values()} == {0}
    assert run_main(*call, "--fresh") == 0
    assert all(entry["new_steps"] == entry["row"]["steps"] for entry in by_label(copied).values())


def test_agents_with_one_type_of_action_or_no_readable_reply_are_remarked(store_path, tmp_path, capsys):
    (tmp_path / "my.py").write_text("def talk(observation):\n    return 'I leave.'\n", encoding="utf-8")
    call = ("--agents", f"majority,oracle,talk={tmp_path}/my.py:talk", "--store", store_path, "--out", tmp_path)
    assert run_main(*call) == 0
    told = capsys.readouterr().out
    assert "majority: mostly one answer: terminate in 100% of its replies" in told
    assert "oracle: mostly" not in told
    assert "talk: no reply can be read" in told and told.count("shop-r1 agents check") == 1
    assert "intervals over users" not in told  # there are three
    assert run_main(*call, "--split", "all") == 0
    assert "intervals over users" in capsys.readouterr().out


@pytest.mark.parametrize(
    "change",
    [("--seed", "1"), ("--split", "train", "--seed", "1"), ("--context.scope", "latest_step"), ("--first-action",)],
)
def test_steps_under_other_options_are_run(change, copied, store_path):
    call = ("--agents", "random", "--store", store_path, "--out", copied)
    split = () if "--split" in change else ("--split", "all")
    assert run_main(*call, *split, *change) == 0
    assert by_label(copied)["random"]["new_steps"] > 0


def test_failed_steps_are_counted_and_they_alone_asked_again(flaky, store_path, tmp_path, capsys):
    call = ("--agents", flaky, "--store", store_path, "--out", tmp_path / "out")
    assert run_main(*call) == 0
    assert "the first: AgentFailed: connection refused" in capsys.readouterr().out
    row = by_label(tmp_path / "out")["flaky"]["row"]
    steps = row["steps"] + row["errors"]
    assert row["steps"] == 4
    assert "flaky (not ranked)" in (tmp_path / "out" / "leaderboard.md").read_text(encoding="utf-8")
    (tmp_path / "down").unlink()
    (tmp_path / "calls.txt").unlink()
    assert run_main(*call) == 0
    entry = by_label(tmp_path / "out")["flaky"]
    assert (entry["row"]["steps"], entry["row"]["errors"]) == (steps, 0)
    assert int((tmp_path / "calls.txt").read_text()) == steps - 4


def test_a_run_of_errors_alone_is_no_success(flaky, store_path, tmp_path, capsys):
    (tmp_path / "calls.txt").write_text("4", encoding="utf-8")
    assert run_main("--agents", f"{flaky},majority", "--store", store_path, "--out", tmp_path / "out") == 1
    assert "flaky: no reply at all of" in capsys.readouterr().out


def test_a_ceiling_is_given_only_where_it_is_known(store_path, tmp_path):
    """With another's persona the shown policy is not the shopper's, and what the history tells of it is not counted.

    Nor does it say what is best where steps or typed texts count otherwise; calibration is not weighed either.
    """
    for flags, labels, calibrated in (
        ((), ["ceiling", "ceiling at T = 0.6"], True),
        (("--context.persona", "shuffled"), [], True),
        (("--context.budget", "400"), [], True),
        (("--metrics", "mix=10:10:80"), [], False),
        (("--metrics", "lu_2025"), [], False),
        (("--metrics", "text=similar"), [], True),
    ):
        out = tmp_path / "_".join(("run", *flags)).replace(":", "_")
        assert run_main("--agents", "page_counts", "--likelihood", "--store", store_path, "--out", out, *flags) == 0
        assert [row["label"] for row in results_of(out)["ceilings"]] == labels
        assert ("brier" in by_label(out)["page_counts"]["row"]["figures"]) == calibrated


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("--agents radnom --store {store}", "Unknown agent 'radnom'. Did you mean 'random'?"),
        ("--agents random --store no/such/store", "no/such/store"),
        ("--agents random --store {store} --reward shop_r2", "Did you mean 'shop_r1'?"),
        ("--agents random --store {store} --metrics oprea", "Did you mean 'opera'?"),
        ("--agents random --store {store} --metrics 'opera, text=smilar'", "Did you mean 'similar'?"),
        ("--agents random,random --store {store}", "'random' twice"),
        ("--agents repeat_last?speed=1 --store {store}", "it takes these arguments: none"),
        ("verify no/such/run", "no/such/run"),
        ("verify {run} --rerun -1", "--rerun is -1"),
        ("verfy no/such/run", "Did you mean 'verify'?"),
        ("compare {run} oracel random", "Did you mean 'oracle'?"),
    ],
)
def test_a_bad_call_is_one_line_and_exit_code_two(
    arguments,
    said,
    store_path,
    finished,
    tmp_path,
    capsys,
):
    call = shlex.split(arguments.format(store=store_path, run=finished))
    if call[0] == "--agents":
        call += ["--out", str(tmp_path / "out")]
    assert main(call) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert said in error


def test_a_truncated_store_is_one_line_and_exit_code_two(store_path, tmp_path, capsys):
    store = shutil.copytree(store_path, tmp_path / "cut")
    shard = next(store.rglob("shards/*.parquet"))
    shard.write_bytes(shard.read_bytes()[:-1000])
    assert run_main("--agents", "random", "--store", store, "--out", tmp_path / "out") == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert shard.name in error


def test_records_that_were_cut_off_are_one_line_and_exit_code_two(copied, store_path, capsys):
    records = copied / "agents" / "random" / "steps.jsonl"
    records.write_bytes(records.read_bytes()[:-20])
    assert run_main("compare", copied, "random", "oracle", "--store", store_path) == 2
    assert capsys.readouterr().err.count("\n") == 1
    assert run_main("verify", copied, "--store", store_path) == 1


def test_arguments_may_hold_escaped_commas_and_be_long(store_path, tmp_path):
    (tmp_path / "said.py").write_text(
        "class Said:\n"
        "    def __init__(self, words, more=''): self.reply = ' '.join(words) + more\n"
        "    def reset(self, *, seed=None): pass\n"
        "    def act(self, observation): return self.reply\n",
        encoding="utf-8",
    )
    long = "x" * 300
    agents = f'random,{tmp_path}/said.py:Said?words=["a%2Cb"%2C"c"]&more={long},majority'
    assert run_main("--agents", agents, "--store", store_path, "--out", tmp_path / "out") == 0
    _, said, _ = by_label(tmp_path / "out").values()
    assert said["spec"]["target"] == f"{tmp_path}/said.py:Said"
    lines = read_json_lines(tmp_path / "out" / said["steps"])[1:]
    assert {line["reply"] for line in lines} == {f"a,b c{long}"}


def test_flags_that_do_not_fit_and_a_training_s_folder_are_exit_code_two(tmp_path):
    (tmp_path / "run.json").write_text("{}")
    for flags in (
        "--sessions 0",
        "--context.scope half",
        "--splt test",
        "--step-time-limit-s nan",
        f"--out {tmp_path}",
    ):
        assert run_main("--agents", "random", "--out", tmp_path / "out", *flags.split()) == 2


def test_a_label_is_no_markup_and_no_second_line(store_path, tmp_path, capsys):
    label = "<img src=x onerror=alert(1)>|\n# Heading \x1b[31m [bold]"
    assert run_main("--agents", f"{label}=majority", "--store", store_path, "--out", tmp_path) == 0
    text = (tmp_path / "leaderboard.md").read_text(encoding="utf-8")
    assert "<img" not in text and "\n# Heading" not in text and "\x1b" not in text
    assert run_main("verify", tmp_path, "--store", store_path) == 0
    assert "\x1b" not in capsys.readouterr().out
    assert run_main("compare", tmp_path, "\x1b[31m", "majority") == 2
    assert "\x1b" not in capsys.readouterr().err
