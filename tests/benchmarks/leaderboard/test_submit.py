"""Only what verifies becomes a recorded result."""

import shutil
from pathlib import Path

import pytest

from benchmarks.leaderboard.__main__ import main
from tests.json_files import edited_json, read_json

AGENTS = ("majority", "random", "oracle")
REFUSES = """\
class Refuses:
    def reset(self, *, seed=None):
        raise AssertionError("asked again")
    def act(self, observation):
        raise AssertionError("asked again")
"""


def rank(store: Path, out: Path, *agents: str) -> int:
    return main(["--agents", ",".join(agents), "--store", str(store), "--out", str(out)])


@pytest.fixture(scope="module")
def whole(store_path, tmp_path_factory) -> Path:
    out = tmp_path_factory.mktemp("merge") / "Jürgen" / "whole"
    assert rank(store_path, out, *AGENTS) == 0
    return out


def test_a_verified_run_is_recorded_without_paths(whole, store_path, tmp_path):
    results = tmp_path / "results"
    call = f"submit {whole} baselines/small --results {results} --store {store_path}".split()
    assert main([*call, "--rerun", "3"]) == 0
    for made, kept in (("results.json", "baselines/small.json"), ("leaderboard.md", "baselines/small.md")):
        text = (whole / made).read_text()
        for folder in (store_path.parent, whole.parent):
            text = text.replace(f"{folder}/", "")
        assert (results / kept).read_text() == text
        assert str(tmp_path.parent) not in text
    config = read_json(results / "baselines/small.json")["provenance"]["config"]
    assert (config["store"], config["out"]) == (store_path.name, whole.name)


def test_an_entry_that_was_edited_is_not_recorded(whole, store_path, tmp_path, capsys):
    folder, results = shutil.copytree(whole, tmp_path / "edited"), tmp_path / "results"
    with edited_json(folder / "results.json") as content:
        content["entries"][1]["row"]["figures"]["exact_accuracy"]["value"] = 0.99
    call = f"submit {folder} mine --results {results} --store {store_path}".split()
    assert main(call) == 1
    assert "exact_accuracy.value: recorded 0.99" in capsys.readouterr().out
    assert not results.exists()


@pytest.mark.parametrize("name", ["../elsewhere", "/elsewhere", "a//b", ".hidden", ""])
def test_a_record_s_name_stays_within_the_results(name, whole, store_path, tmp_path):
    call = ["submit", str(whole), name, "--results", str(tmp_path / "results"), "--store", str(store_path)]
    assert main(call) == 2
    assert not (tmp_path / "results").exists()


def test_an_agent_that_kept_silent_is_not_recorded(store_path, tmp_path, capsys):
    (tmp_path / "refuses.py").write_text(REFUSES)
    out = tmp_path / "out"
    assert rank(store_path, out, f"silent={tmp_path / 'refuses.py'}:Refuses", "random") == 1
    assert main(f"submit {out} mine --results {tmp_path}/r --store {store_path}".split()) == 2
    assert "'silent' gave no reply at some steps" in capsys.readouterr().err
