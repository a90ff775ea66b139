"""Agents in a process of their own: what they cannot reach, and what they cannot break (FINDINGS A1, A5, A8, A9)."""

import shutil
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace

from agents.agent_code import code_digest, gives_probabilities
from agents.agent_process import AgentProcess, make_foreign_agent
from agents.child_process import Limits
from agents.registry import make_agent, parse_spec
from agents.sandbox import sandbox_works
from benchmarks.leaderboard.__main__ import main
from benchmarks.leaderboard.ranking import LeaderboardConfig, run_leaderboard
from replay_sessions.foundation.errors import AgentFailed, BadConfig, UnknownAgent
from replay_sessions.store import SessionStore
from shop_env.evaluation.entries import remarks_of
from shop_env.evaluation.evaluate import evaluate
from shop_env.evaluation.generate import step_seed
from shop_env.evaluation.log import read_log
from shop_env.evaluation.scored_steps import scored_steps
from shop_env.observation import Observation
from tests.demo_stores import demo_store_at

AGENTS = '''
import ctypes, gc, inspect, json, os, sys, threading, time
from collections import Counter
from replay_sessions.elements import find_elements
from replay_sessions.schema import Click, Terminate
from shop_env.replies import format_reply

LEAVE = format_reply("", Terminate())

class Base:
    def reset(self, *, seed=None): self.seed = seed
    def act(self, observation): return LEAVE

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

class ForgesItsStart(Base):
    """Says by itself, on the socket of its process, how many calls it takes at once."""
    def __init__(self):
        import msgspec, agents.agent_worker as worker
        content = msgspec.msgpack.encode(worker.Started(concurrency=0, replies_in_batches=True))
        os.write(int(sys.argv[1]), len(content).to_bytes(4, "big") + content)
        time.sleep(1)

class LeavesAnother(Base):
    """Ends while a process that it started holds its socket open."""
    def __init__(self):
        if os.fork() == 0: time.sleep(300)
        os._exit(3)

class Prints(Base):
    def act(self, observation):
        print("as it should be"); os.write(1, b"loud"); return LEAVE

class CoClick(Base):
    """Clicks what others in this batch clicked."""
    def act_batch(self, observations):
        clicked = Counter(h["action"] for o in observations for h in o["history"] if h["action"])
        def reply(observation):
            names = {e.name for e in find_elements(observation["page"])}
            for action, _ in clicked.most_common():
                if json.loads(action).get("name") in names:
                    return json.dumps({"rationale": "", "action": json.loads(action)})
            return LEAVE
        return [reply(observation) for observation in observations]

class ReadsEnvironment(Base):
    def act(self, observation): return format_reply(str(dict(os.environ)), Terminate())

class ReadsIds(Base):
    def __init__(self, store): self.ids = [(s.session_id, s.user_id, store.name) for s in store.sessions()]
    def act(self, observation): return format_reply(str(self.ids), Terminate())

class LooksAround(Base):
    def act(self, observation):
        from helper import WORD
        here = os.path.dirname(__file__)
        others = sorted(os.path.join(a, f) for a, _, names in os.walk(here) for f in names if f.endswith(".py"))
        parents = [open(f"/proc/{p}/cmdline").read() for p in os.listdir("/proc") if p.isdigit()]
        files = [os.path.relpath(f, here) for f in others]
        import agents
        results = [f for f in os.listdir(os.path.dirname(os.path.dirname(agents.__file__))) if "benchmarks" in f]
        return format_reply(f"{WORD} {files} {results} {parents}", Terminate())

class Lists(Base):
    def __init__(self, folder): self.folder = folder
    def act(self, observation):
        names = [f for f in os.listdir(self.folder) if f != "store"] + ["store"]
        return format_reply(str(names + os.listdir(os.path.join(self.folder, "store"))), Terminate())

class ReadsStack(Base):
    """Looks for the logged action in all frames and objects of the process, and for the store behind its view."""
    def __init__(self, store):
        self.store = store
        self.splits = {s: len(list(store._store.session_ids(s))) for s in ("train", "validation", "test")}
    def act(self, observation):
        if observation["step"] > 1: return LEAVE
        found = [f for f in inspect.stack() if "logged" in f.frame.f_locals or "records" in f.frame.f_locals]
        steps = [o for o in gc.get_objects() if type(o).__name__ == "ScoredStep"]
        where = [os.getcwd(), os.listdir("."), sys.argv]
        return format_reply(str([len(found), len(steps), self.splits, where]), Terminate())
'''


@pytest.fixture
def agents(tmp_path: Path) -> Path:
    file = tmp_path / "theirs.py"
    file.write_text(AGENTS, encoding="utf-8")
    return file


def process(agents: Path, name: str, store: SessionStore | None = None, limit_s: float = 60.0) -> AgentProcess:
    return AgentProcess(parse_spec(f"{agents}:{name}"), store, Limits(step_time_s=limit_s))


def errors(agents: Path, name: str, store: SessionStore, limit_s: float = 60.0) -> list[str | None]:
    agent = process(agents, name, store, limit_s)
    try:
        return [record.error for record in evaluate(agent, store, "test")]
    finally:
        agent.close()


def test_replies_and_probabilities_are_those_of_the_same_agent_in_this_process(demo_store: SessionStore) -> None:
    steps = list(scored_steps(demo_store, "test"))[:40]
    observations: list[Observation] = [step.observation for step in steps]
    seeds = [step_seed(0, *step.key) for step in steps]
    for name in ("random", "ngram"):
        here, there = make_agent(name, store=demo_store), AgentProcess(parse_spec(name), demo_store)
        replies = []
        for observation, seed in zip(observations, seeds, strict=True):
            here.reset(seed=seed)
            replies.append(here.act(observation))
        assert there.act_batch(observations, seeds=seeds) == replies
        if name == "ngram":
            assert there.probabilities(observations, seeds=seeds) == here.probabilities(observations)  # type: ignore[attr-defined]
        there.close()


def test_whatever_goes_wrong_is_the_error_of_its_own_steps(agents: Path, planted_store: SessionStore) -> None:
    exits = errors(agents, "Exits", planted_store)
    assert [error and error.split(":")[0] for error in exits] == [None, "SystemExit", None, None, "SystemExit"]
    odd = errors(agents, "Odd", planted_store)
    assert odd[0] == "ValueError: half a pair: \\ud800"
    assert odd[1] == "Unprintable: its message cannot be formatted (ValueError)"
    assert odd[2] is None
    assert errors(agents, "Prints", planted_store) == [None] * 5


def test_probabilities_that_are_none_cost_their_own_step(agents: Path, planted_store: SessionStore) -> None:
    agent = process(agents, "OddWeights")
    records = evaluate(agent, planted_store, "test", likelihood=True)
    agent.close()
    assert [record.error is None for record in records] == [False, False, True, False, False]
    assert "it must lie in 0 to 1" in str(records[0].error)


def test_agents_that_cannot_be_made_here_end_no_other_agent_s_run(
    agents: Path, planted_store: SessionStore, tmp_path: Path
) -> None:
    """FINDINGS A9: a constructor that raises and a bad `concurrency` were tracebacks that ended all runs."""
    call = ["--agents", f"R={agents}:Raises,C={agents}:BadConcurrency,majority,E={agents}:Exits"]
    assert main([*call, "--in-process", "--store", str(planted_store.path), "--out", str(tmp_path / "out")]) == 1
    log = read_log(tmp_path / "out")
    assert {entry.label: entry.row.steps for entry in log.entries} == {"R": 0, "C": 0, "majority": 5, "E": 3}
    assert "concurrency 0" in str(log.entry("C").row.first_error)
    assert "E: ran in the evaluator's process, where code can read the logged actions" in remarks_of(log)


def test_a_process_that_ends_is_started_again_but_not_forever(agents: Path, planted_store: SessionStore) -> None:
    once = errors(agents, "DiesOnce", planted_store)
    assert once[:2] == [None, None] == once[3:]
    assert once[2] == "AgentFailed: the agent's process ended (exit code 3)"
    always = errors(agents, "Dies", planted_store)
    assert all(error and "the agent's process ended (exit code 3)" in error for error in always)


def test_a_crash_in_a_batch_costs_its_own_step(agents: Path, planted_store: SessionStore) -> None:
    crashed = errors(agents, "CrashesInBatch", planted_store)
    assert crashed == [None, None, "AgentFailed: the agent's process ended (exit code 3)", None, None]


def test_an_agent_that_hangs_costs_its_own_steps_and_the_run_goes_on(agents: Path, planted_store: SessionStore) -> None:
    hung = errors(agents, "Hangs", planted_store, limit_s=0.5)
    assert hung == [None, "AgentFailed: no reply within 0.5 s", None, None, "AgentFailed: no reply within 0.5 s"]


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("Raises", "no model here"),
        ("BadConcurrency", "concurrency 0"),
        ("ForgesItsStart", "Expected `int` >= 1"),
        ("LeavesAnother", "ended its process as it was made"),
    ],
)
def test_an_agent_that_cannot_be_made_says_why(agents: Path, name: str, reason: str) -> None:
    for sandbox in (True, False):
        with pytest.raises(BadConfig, match=reason):
            AgentProcess(parse_spec(f"{agents}:{name}"), None, Limits(sandbox=sandbox))
    agent = make_foreign_agent(parse_spec(f"{agents}:{name}"), None, Limits(step_time_s=9))
    with pytest.raises(AgentFailed, match=reason):
        agent.act({})  # type: ignore[typeddict-item]


def test_it_holds_neither_the_logged_actions_nor_the_store_nor_its_path(agents: Path, demo_store: SessionStore) -> None:
    agent = process(agents, "ReadsStack", demo_store)
    records = [record for record in evaluate(agent, demo_store, "test") if record.step_index == 1]
    agent.close()
    assert records
    for record in records:
        assert record.predicted_rationale is not None
        assert record.predicted_rationale.startswith("[0, 0, {'train': ")
        assert "'validation': 0, 'test': 0}" in record.predicted_rationale
        assert str(demo_store.path.parent) not in record.predicted_rationale


@pytest.mark.long
def test_a_leaderboard_survives_each_of_them_and_ranks_none_that_depends_on_more_than_the_observation(
    agents: Path, tmp_path: Path, demo_store: SessionStore, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = {}
    for batch_size, names in ((1, ("CoClick", "Raises")), (64, ("Exits", "Raises", "BadWeights", "CoClick", "Base"))):
        out = tmp_path / str(batch_size)
        call = ["--agents", ",".join(["majority", *(f"{name}={agents}:{name}" for name in names)])]
        call += ["--store", str(demo_store.path), "--out", str(out), "--likelihood", "--batch-size", str(batch_size)]
        assert main(call) == 1  # Raises has no row
        log = read_log(out)
        rows[batch_size] = {entry.label: entry.row for entry in log.entries}
        checks = {entry.label: entry.order_check for entry in log.entries}
        assert main(["verify", str(out), "--store", str(demo_store.path)]) == 0
    # The check draws its steps anew, and counts other ones.
    assert all(replace(row, caveat=None) == replace(rows[64][label], caveat=None) for label, row in rows[1].items())
    assert {label for label, row in rows[64].items() if row.ranked} == {"majority", "Base"}
    assert "no model here" in str(rows[1]["Raises"].first_error)
    assert "depends on more than the observation" in str(rows[1]["CoClick"].caveat)
    assert checks["majority"] is None
    base = checks["Base"]
    assert base is not None and base.steps > 5 and base.different == 0
    capsys.readouterr()


def test_somebody_else_s_code_is_not_run_to_find_it(tmp_path: Path) -> None:
    marker = tmp_path / "was_run"
    file = tmp_path / "loud.py"
    file.write_text(f"open({str(marker)!r}, 'w').close()\nclass A: pass\n", encoding="utf-8")
    with pytest.raises(UnknownAgent, match=r"No class 'B' .* Known: A"):
        gives_probabilities(parse_spec(f"{file}:B"))
    assert gives_probabilities(parse_spec(f"{file}:A"))
    assert code_digest(parse_spec(f"{file}:A"))
    assert not marker.exists()


needs_sandbox = pytest.mark.skipif(not sandbox_works(), reason="bubblewrap does not work here")


@pytest.fixture(params=[True, False], ids=["sandboxed", "not sandboxed"])
def limits(request: pytest.FixtureRequest) -> Limits:
    if request.param and not sandbox_works():
        pytest.skip("bubblewrap does not work here")
    return Limits(sandbox=request.param)


def rationales(agents: Path, name: str, store: SessionStore, limits: Limits) -> str:
    agent = AgentProcess(parse_spec(f"{agents}:{name}"), store, limits)
    records = evaluate(agent, store, "test")
    agent.close()
    assert {record.error for record in records} == {None}
    return str(records[0].predicted_rationale)


def test_the_variables_of_the_evaluation_stay_there_but_for_those_that_are_named(
    agents: Path, planted_store: SessionStore, limits: Limits, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOME_KEY", "secret")
    assert "secret" not in rationales(agents, "ReadsEnvironment", planted_store, limits)
    passed = msgspec.structs.replace(limits, environment=("SOME_KEY",))
    assert "secret" in rationales(agents, "ReadsEnvironment", planted_store, passed)


def test_the_copy_of_the_train_split_does_not_tell_the_seed_of_a_demo_store(agents: Path, tmp_path: Path) -> None:
    store = tmp_path / "demo-7654321"
    demo_store_at(store, 60, seed=7654321)
    opened = SessionStore.open(store)
    assert "7654321" in opened.session_ids("train")[0]
    agent = AgentProcess(parse_spec(f"{agents}:ReadsIds"), opened)
    record = evaluate(agent, opened, "test", max_sessions=1)[0]
    agent.close()
    assert "('session-0', 'user-0', 'store')" in str(record.predicted_rationale)
    assert "7654321" not in str(record.predicted_rationale)


@needs_sandbox
def test_in_the_sandbox_neither_the_parent_nor_what_lies_beside_the_agent_can_be_seen(
    agents: Path, planted_store: SessionStore, tmp_path: Path
) -> None:
    """The agent's folder holds stores, as projects do: it is not among what the agent sees."""
    shutil.copytree(planted_store.path, tmp_path / "stores" / "mine")
    (tmp_path / "notes.json").write_text("{}", encoding="utf-8")
    (tmp_path / "helper.py").write_text("WORD = 'helped'", encoding="utf-8")
    seen = rationales(agents, "LooksAround", planted_store, Limits(hidden=(planted_store.path,)))
    assert seen.startswith("helped ['helper.py', 'theirs.py'] [] ")
    assert str(planted_store.path) not in seen


@needs_sandbox
def test_a_store_within_what_an_argument_names_is_empty_in_the_sandbox(agents: Path, tmp_path: Path) -> None:
    store = tmp_path / "data" / "store"
    demo_store_at(store, 60, seed=4)
    opened = SessionStore.open(store)
    agent = AgentProcess(parse_spec(f"{agents}:Lists?folder={tmp_path / 'data'}"), opened, Limits(hidden=(store,)))
    record = evaluate(agent, opened, "test")[0]
    agent.close()
    assert record.predicted_rationale == "['store']"


@pytest.mark.long
def test_rows_say_in_whose_process_they_ran_and_replies_of_one_are_not_those_of_another(
    agents: Path, tmp_path: Path, demo_store: SessionStore
) -> None:
    config = LeaderboardConfig(agents=(f"a={agents}:Base",), out=str(tmp_path / "out"), store=str(demo_store.path))
    kinds = {"in_process": "evaluator's", "sandbox": "own, not sandboxed"}
    kinds |= {"fresh": "own, sandboxed"} if sandbox_works() else {}
    for name, process in kinds.items():
        log = run_leaderboard(msgspec.structs.replace(config, sessions=3, **{name: name != "sandbox"}))
        assert log.entries[0].process == process
        assert log.entries[0].new_steps > 0
        assert f"| {process} |" in (tmp_path / "out" / "leaderboard.md").read_text(encoding="utf-8")
