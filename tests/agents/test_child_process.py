"""Agents in a process of their own: they reply as in this one, and what goes wrong in them ends no other's run."""

import time
from pathlib import Path
from typing import Any

import pytest

from agents.agent_identity import code_digest, gives_probabilities
from agents.child_process import ForeignAgent, build_agent
from agents.registry import make_agent, parse_spec
from benchmarks.leaderboard.__main__ import main
from replay_sessions.foundation.errors import AgentFailed, UnknownAgent
from replay_sessions.store import SessionStore
from shop_env.evaluation.evaluate import evaluate
from shop_env.evaluation.results_file import read_log
from shop_env.observation import ContextConfig

AGENTS = """
import os, time
from replay_sessions.schema import Terminate
from shop_env.replies import format_reply

LEAVE = format_reply("", Terminate())

class Base:
    def reset(self, *, seed=None): self.seed = seed
    def act(self, observation): return LEAVE

class Keys(Base):
    def act(self, observation):
        names = {"A_API_KEY", "HF_TOKEN", "B_KEY", "KEYMAP"}
        raise ValueError(" ".join(sorted(names & set(os.environ))))

class Exits(Base):
    def act(self, observation):
        if observation["step"] == 2: raise SystemExit(0)
        return LEAVE

class Dies(Base):
    def act(self, observation): os._exit(3)

class DiesOnce(Base):
    def act(self, observation):
        if observation["step"] == 3: os._exit(3)
        return LEAVE

class Hangs(Base):
    def act(self, observation):
        if observation["step"] == 2: time.sleep(60)
        return LEAVE

class Unprintable(Exception):
    def __str__(self): raise ValueError("no text")

class Odd(Base):
    def act(self, observation):
        if observation["step"] == 1: raise ValueError("half a pair: \\ud800")
        if observation["step"] == 2: raise Unprintable
        return "half a pair: \\ud800"

class BadWeights(Base):
    def probabilities(self, observations): return [{Terminate(): None} for _ in observations]

class OddWeights(Base):
    def probabilities(self, observations):
        odd = {1: {Terminate(): float("nan")}, 2: {"terminate": 1.0}}
        return [odd.get(o["step"], {Terminate(): 1.0}) for o in observations]

class Raises(Base):
    def __init__(self): raise RuntimeError("no model here")

class BadConcurrency(Base):
    concurrency = 0

class CrashesInBatch(Base):
    def act_batch(self, observations):
        if any(o["step"] == 3 for o in observations): os._exit(3)
        return [LEAVE for _ in observations]

class Ends(Base):
    def __init__(self): os._exit(3)

class StartsAnother(Base):
    def __init__(self):
        import subprocess
        sleeping = subprocess.Popen(["sleep", "300"])
        open(os.path.join(os.path.dirname(__file__), "pid"), "w").write(str(sleeping.pid))

class Concurrent(Base):
    concurrency = 3
    def act_batch(self, observations):
        (observation,) = observations
        time.sleep(0.02 * (4 - observation["step"]))
        return [format_reply(str(observation["step"]), Terminate())]

class CountsSplits(Base):
    def __init__(self, store): self.count = len(list(store.sessions()))
    def act(self, observation): return format_reply(f"{self.count} {sorted(observation)}", Terminate())

class Forks(Base):
    def act(self, observation):
        if os.fork() == 0: return "of the fork"
        time.sleep(0.1); return LEAVE

class Prints(Base):
    def act(self, observation):
        print("as it should be"); os.write(1, b"loud"); return LEAVE

"""


@pytest.fixture
def agents(tmp_path) -> Path:
    file = tmp_path / "theirs.py"
    file.write_text(AGENTS, encoding="utf-8")
    return file


def build(agents: Path, name: str, limit_s: float = 60.0) -> ForeignAgent:
    agent = build_agent(parse_spec(f"{agents}:{name}"), None, ContextConfig(), limit_s)
    assert isinstance(agent, ForeignAgent)
    return agent


def errors(agents: Path, name: str, store: SessionStore, limit_s: float = 60.0) -> list[str | None]:
    agent = build(agents, name, limit_s)
    try:
        return [record.error for record in evaluate(agent, store, "test")]
    finally:
        agent.close()


@pytest.mark.parametrize("likelihood", [False, True])
def test_records_are_those_of_the_same_agent_in_this_process(demo_store, tmp_path, likelihood):
    for name, module in (("RandomAgent", "rules"), ("Ngram", "fitted")):
        spec = parse_spec(f"agents.baselines.{module}:{name}")
        there = build_agent(spec, demo_store, ContextConfig())
        assert isinstance(there, ForeignAgent)
        options: dict[str, Any] = {"likelihood": likelihood, "sessions": 4}
        here = evaluate(make_agent(spec, store=demo_store), demo_store, "test", **options)
        assert evaluate(there, demo_store, "test", **options) == here
        assert {record.logged_probability is None for record in here} == {not (likelihood and name == "Ngram")}
        there.close()


def test_it_gets_no_keys_but_those_that_the_user_names(agents, planted_store, monkeypatch):
    for name in ("A_API_KEY", "HF_TOKEN", "B_KEY", "KEYMAP"):
        monkeypatch.setenv(name, "x")
    monkeypatch.setenv("SHOP_R1_PASS_ENV", "B_KEY, OTHER")
    assert "B_KEY KEYMAP" in (errors(agents, "Keys", planted_store)[0] or "")


def test_whatever_goes_wrong_is_the_error_of_its_own_steps(agents, planted_store):
    exits = errors(agents, "Exits", planted_store)
    assert [error and error.split(":")[0] for error in exits] == [None, "SystemExit", None, None, "SystemExit"]
    odd = errors(agents, "Odd", planted_store)
    assert odd[0] == "ValueError: half a pair: \\ud800"
    assert odd[1] == "Unprintable: its message cannot be formatted (ValueError)"
    assert odd[2] is None
    assert errors(agents, "Prints", planted_store) == [None] * 5


def test_the_reply_of_a_fork_is_not_taken_for_the_next_step_s(agents, planted_store):
    agent = build(agents, "Forks")
    records = evaluate(agent, planted_store, "test")
    agent.close()
    assert not any(record.reply == "of the fork" for record in records)


def test_probabilities_that_are_none_cost_their_own_step(agents, planted_store):
    agent = build(agents, "OddWeights")
    records = evaluate(agent, planted_store, "test", likelihood=True)
    agent.close()
    assert [record.error is None for record in records] == [False, False, True, False, False]
    assert "it must lie in 0 to 1" in str(records[0].error)


def test_agents_that_cannot_be_made_here_end_no_other_agent_s_run(agents, planted_store, tmp_path):
    call = ["--agents", f"R={agents}:Raises,C={agents}:BadConcurrency,N={agents}:reset,majority,E={agents}:Exits"]
    assert main([*call, "--store", str(planted_store.path), "--out", str(tmp_path / "out")]) == 1
    log = read_log(tmp_path / "out")
    assert {entry.label: entry.row.steps for entry in log.entries} == {"R": 0, "C": 0, "N": 0, "majority": 5, "E": 3}
    assert "concurrency 0" in str(log.entry("C").row.first_error)
    assert "reset" in str(log.entry("N").row.first_error)
    assert main(f"verify {tmp_path}/out --store {planted_store.path}".split()) == 0


def test_a_process_that_ends_is_started_again_but_not_forever(agents, planted_store):
    once = errors(agents, "DiesOnce", planted_store)
    assert once[:2] == [None, None] == once[3:]
    assert once[2] == "AgentFailed: the agent's process ended (exit code 3)"
    always = errors(agents, "Dies", planted_store)
    assert set(always) == {"AgentFailed: the agent's process ended (exit code 3)"}


def test_a_crash_in_a_batch_costs_the_steps_of_the_batch(agents, planted_store):
    ended = "AgentFailed: the agent's process ended (exit code 3)"
    assert errors(agents, "CrashesInBatch", planted_store) == [None, None, ended, None, None]


def test_an_agent_that_hangs_costs_its_own_steps_and_the_run_goes_on(agents, planted_store):
    hung = errors(agents, "Hangs", planted_store, limit_s=0.5)
    assert hung == [None, "AgentFailed: no reply within 0.5 s", None, None, "AgentFailed: no reply within 0.5 s"]


@pytest.mark.parametrize(
    ("name", "reason"),
    [("Raises", "no model here"), ("BadConcurrency", "concurrency 0"), ("Ends", "ended \\(exit code 3\\)")],
)
def test_an_agent_that_cannot_be_made_says_why(agents, name, reason):
    with pytest.raises(AgentFailed, match=reason):
        build(agents, name).act({})


def test_a_process_that_an_agent_started_ends_with_it(agents, planted_store):
    agent = build(agents, "StartsAnother")
    evaluate(agent, planted_store, "test", sessions=1)
    started = int(agents.with_name("pid").read_text(encoding="utf-8"))
    agent.close()
    deadline = time.monotonic() + 10
    while Path(f"/proc/{started}").exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not Path(f"/proc/{started}").exists() or "Z" in Path(f"/proc/{started}/stat").read_text().split()[2]


def test_calls_at_once_are_in_the_order_of_the_steps(agents, planted_store):
    agent = build(agents, "Concurrent")
    records = evaluate(agent, planted_store, "test")
    agent.close()
    assert [record.predicted_rationale for record in records] == [str(record.step_index) for record in records]


def test_it_gets_the_train_split_and_observations(agents, demo_store):
    agent = build_agent(parse_spec(f"{agents}:CountsSplits"), demo_store, ContextConfig())
    record = evaluate(agent, demo_store, "test", sessions=1)[0]
    assert isinstance(agent, ForeignAgent)
    agent.close()
    train = len(demo_store.session_ids("train"))
    assert record.predicted_rationale == f"{train} ['goal', 'history', 'page', 'persona', 'step']"


def test_somebody_else_s_code_is_not_run_to_find_it(tmp_path):
    marker = tmp_path / "was_run"
    file = tmp_path / "loud.py"
    file.write_text(f"open({str(marker)!r}, 'w').close()\nclass A: pass\n", encoding="utf-8")
    assert gives_probabilities(parse_spec(f"{file}:A"))
    assert code_digest(parse_spec(f"{file}:A"))
    assert not marker.exists()
    for absent in (f"{tmp_path / 'nothing.py'}:A", f"{file}:Absent", "no_such_module:A", "no_such_agent"):
        with pytest.raises(UnknownAgent):
            gives_probabilities(parse_spec(absent))
