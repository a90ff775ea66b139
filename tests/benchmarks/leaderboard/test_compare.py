"""Runs are compared where they differ in the agent alone, or in what the caller names."""

from pathlib import Path

import pytest

from benchmarks.leaderboard.__main__ import main
from benchmarks.leaderboard.compare import Compare
from benchmarks.leaderboard.compare import compare as compare_folder
from shop_env.metrics.clustered_errors import holm
from tests.demo_stores import demo_store_at

SILENT = """\
from replay_sessions.foundation.errors import AgentFailed
from shop_env.replies import format_reply

class Silent:
    def reset(self, *, seed=None):
        pass
    def act(self, observation):
        if observation["step"] > 2:
            raise AgentFailed("I would rather not say")
        return format_reply("", {"type": "terminate"})
"""


@pytest.fixture(scope="module")
def folders(tmp_path_factory) -> Path:
    """One run on ten users for each thing that can differ; the plain one has an agent that fails at some steps."""
    parent = tmp_path_factory.mktemp("runs")
    store = demo_store_at(parent / "store", 40, seed=4)
    changes = {
        "plain": (),
        "again": ("--seed", "1"),
        "reward": ("--reward", "binary"),
        "metrics": ("--metrics", "opera"),
        "extraction": ("--extraction", "lenient"),
        "context": ("--context.persona", "none"),
        "first_action": ("--first-action",),
        "sessions": ("--sessions", "3"),
        "split": ("--split", "train"),
    }
    (parent / "silent.py").write_text(SILENT, encoding="utf-8")
    for name, change in changes.items():
        agents = ["majority", *([f"silent={parent}/silent.py:Silent"] if name == "plain" else [])]
        split = () if name == "split" else ("--split", "all")
        call = ["--agents", *agents, "--store", str(store.path), "--out", str(parent / name)]
        assert main([*call, *split, *change]) == 0
    return parent


def compare(folders: Path, second: str, *more: str) -> int:
    call = ["compare", str(folders / "plain"), "majority", "majority", "--second-folder", str(folders / second)]
    return main([*call, *more])


@pytest.mark.parametrize("name", ["reward", "metrics", "extraction", "context", "first_action", "sessions", "split"])
def test_runs_that_differ_in_more_than_the_agent_are_refused(name, folders, capsys):
    assert compare(folders, name) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert f"({name}: " in error
    assert (f"--across {name}" in error) == (name not in ("first_action", "sessions", "split"))


@pytest.mark.parametrize("name", ["reward", "metrics", "extraction", "context"])
def test_a_named_difference_is_allowed_and_printed(name, folders, capsys):
    assert compare(folders, name, "--across", name) == 0
    assert f"across {name}: " in capsys.readouterr().out


def test_a_figure_that_an_agent_lacks_is_no_number_and_not_tested(folders, capsys):
    assert compare(folders, "again", "--metrics", "nll", "exact_accuracy") == 0
    shown = capsys.readouterr().out
    assert "nan" not in shown and shown.count("no such metric") == 1


def test_another_seed_is_no_other_question(folders):
    assert compare(folders, "again") == 0


def test_an_agent_that_did_not_answer_all_is_refused_or_its_errors_are_misses(folders, capsys):
    call = f"compare {folders}/plain silent majority".split()
    assert main(call) == 2
    assert "--with-errors" in capsys.readouterr().err
    assert main([*call, "--with-errors", "--metrics", "exact_accuracy"]) == 0
    shown = capsys.readouterr().out
    assert "silent gave no reply at " in shown and "which count as misses" in shown
    line = next(line for line in shown.splitlines() if line.startswith("exact ")).split()
    assert line[3].startswith("−")  # `majority` always leaves too, and is right where the other kept silent


def test_the_p_is_adjusted_for_all_metrics_and_decides(folders, capsys):
    found = compare_folder(Compare(folder=folders / "plain", first="silent", second="majority", with_errors=True))
    p_values = [one.difference.p_value for one in found if one.difference.p_value is not None]
    assert len(p_values) == len(found) == 4
    assert [one.difference.holm_p_value for one in found] == holm(p_values)
    capsys.readouterr()
    assert main(f"compare {folders}/plain silent majority --with-errors".split()) == 0
    said = capsys.readouterr().out
    assert all(one.difference.text().removesuffix(" points").split(" ")[0] in said for one in found)
    assert [one.difference.verdict in said for one in found] == [True] * 4
    assert "Holm p: adjusted for the metrics above" in said
    assert f"steps of {found[0].difference.clusters} users a difference of" in said
