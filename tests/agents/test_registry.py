"""From what a user types to an agent."""

import inspect
from pathlib import Path

import pytest

from agents.catalogue import AGENTS
from agents.registry import CHECKPOINT_MARKER, agent_class, installed_agents, make_agent, parse_spec
from replay_sessions.foundation.errors import BadConfig, MissingExtra, UnknownAgent
from train.checkpoints import CHECKPOINT_FILE, read_info

AGENT = """
class Fixed:
    def __init__(self, reply="x", times=1):
        self.reply = reply * times
    def reset(self, *, seed=None):
        pass
    def act(self, observation):
        return self.reply
"""


@pytest.fixture
def agent_file(tmp_path) -> Path:
    file = tmp_path / "my_agent.py"
    file.write_text(AGENT, encoding="utf-8")
    return file


def test_every_registered_name_leads_to_a_class():
    for name in (*AGENTS, *installed_agents()):
        assert callable(agent_class(parse_spec(name))[0])


def test_packaged_policies_are_labelled_by_the_contexts_of_their_training():
    sft, after_rl = (AGENTS[name] for name in ("demo_sft", "demo_shop_r1"))
    assert sft.checkpoint and after_rl.checkpoint
    contexts = [read_info(folder)[0].context.rationales for folder in (sft.checkpoint, after_rl.checkpoint)]
    labels = {
        (True, True): ("SFT", "GRPO, past rationales shown"),
        (True, False): ("SFT", "Shop-R1"),
        (False, False): ("SFT without past rationales", "Shop-R1, SFT without past rationales"),
    }
    for entry, label in zip((sft, after_rl), labels[contexts[0], contexts[1]], strict=True):
        assert entry.summary == f"A tiny policy of the demo shop: {label}."


def test_a_class_in_a_file_is_an_agent(agent_file):
    assert make_agent(f"{agent_file}:Fixed").act({}) == "x"


def test_arguments_in_a_spec_are_json_where_they_parse(agent_file):
    assert make_agent(f"{agent_file}:Fixed?reply=ab&times=2").act({}) == "abab"
    assert parse_spec("random?a=1&b=0.5&c=true&d=word&e=%2C").arguments == {
        "a": 1,
        "b": 0.5,
        "c": True,
        "d": "word",
        "e": ",",
    }


def test_a_label_stands_before_the_agent(agent_file):
    spec = parse_spec("SFT greedy=runs/demo/sft?temperature=0")
    assert (spec.label, spec.target, spec.arguments) == ("SFT greedy", "runs/demo/sft", {"temperature": 0})
    spec = parse_spec("T=0.6=runs/lr=0.1/sft")
    assert (spec.label, spec.target) == ("T=0.6", "runs/lr=0.1/sft")
    assert parse_spec("runs/demo/sft?temperature=0").label == "runs/demo/sft?temperature=0"


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ("no_such_module_anywhere:Agent", "No module 'no_such_module_anywhere'"),
        ("missing.py:Agent", "No file 'missing.py'"),
        ("runs/not/there", "No checkpoint folder"),
        ("agents.baselines.rules:RandomAgnet", "Did you mean 'RandomAgent'"),
    ],
)
def test_missing_agents_are_unknown(spec, said):
    with pytest.raises(UnknownAgent, match=said):
        make_agent(spec)


@pytest.mark.parametrize("spec", ["a" * 300, "a" * 300 + "/b", "a" * 300 + ".py:Agent", "nul\0byte"])
def test_impossible_paths_are_unknown_agents(spec):
    with pytest.raises(UnknownAgent):
        make_agent(spec)


def test_a_number_is_an_unknown_agent(agent_file):
    agent_file.write_text(AGENT + "NUMBER = 3\n", encoding="utf-8")
    with pytest.raises(UnknownAgent, match="is 3, and no class or function"):
        make_agent(f"{agent_file}:NUMBER")


@pytest.mark.parametrize("spec", ["", "label=", "random?=1", "random?a b=1", "random?flag"])
def test_a_spec_that_cannot_be_read_is_a_bad_call(spec):
    with pytest.raises(BadConfig):
        parse_spec(spec)


def test_a_folder_without_the_marker_is_no_checkpoint(tmp_path):
    with pytest.raises(UnknownAgent, match=CHECKPOINT_MARKER):
        make_agent(str(tmp_path))


def test_the_marker_is_the_one_that_training_writes():
    assert CHECKPOINT_MARKER == CHECKPOINT_FILE


def test_an_installed_package_brings_its_agents_along(agent_file, tmp_path, monkeypatch):
    information = tmp_path / "their_agents-1.0.dist-info"
    information.mkdir()
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: their-agents\nVersion: 1.0\n", encoding="utf-8")
    (information / "entry_points.txt").write_text("[shop_r1.agents]\ntheirs = my_agent:Fixed\n", encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    assert installed_agents()["theirs"] == "my_agent:Fixed"
    assert make_agent("theirs?reply=hello").act({}) == "hello"


def test_a_package_that_an_agent_needs_is_named(agent_file):
    agent_file.write_text("import no_such_package_anywhere\n", encoding="utf-8")
    with pytest.raises(MissingExtra, match="no_such_package_anywhere"):
        make_agent(f"{agent_file}:Agent")


def test_a_file_that_calls_exit_does_not_end_the_command_as_a_success(agent_file):
    agent_file.write_text(AGENT + "raise SystemExit(0)", encoding="utf-8")
    with pytest.raises(ImportError, match="calls exit"):
        make_agent(f"{agent_file}:Fixed")


MADE_WRONG = """
class Fails:
    def __init__(self): raise ValueError("no model here")
class Exits:
    def __init__(self): raise SystemExit(0)

class Half:
    def reset(self, *, seed=None): pass
class Bot:
    def __init__(self, concurrency): self.concurrency = concurrency
    def reset(self, *, seed=None): pass
    def act(self, observation): return "x"
    def act_batch(self, observations): return ["x"] * len(observations)
"""


@pytest.mark.parametrize(
    ("agent", "message"),
    [
        ("Fails", r"cannot be made: ValueError: no model here \(.*my_agent\.py:3\)"),
        ("Exits", "SystemExit: 0"),
        ("Half", "no method 'act'"),
        ("Bot?concurrency=0", "concurrency 0, which must be a whole number of 1 to 1024"),
        ("Bot?concurrency=%228%22", "concurrency '8', which"),
        ("Bot?concurrency=true", "concurrency True, which"),
    ],
)
def test_wrongly_made_agents_are_bad_calls_that_name_the_reason(agent, message, agent_file):
    agent_file.write_text(MADE_WRONG, encoding="utf-8")
    with pytest.raises(BadConfig, match=message):
        make_agent(f"{agent_file}:{agent}")


@pytest.mark.parametrize("name", [name for name, own in AGENTS.items() if own.extra])
def test_the_list_shows_docstrings_of_agents(name):
    summary = (inspect.getdoc(agent_class(parse_spec(name))[0]) or "").partition("\n")[0]
    assert AGENTS[name].summary == summary
