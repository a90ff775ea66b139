"""Only what verifies becomes a recorded result."""

import gzip
import shutil
from pathlib import Path

import pytest

from benchmarks.docs_site.tables import RESULTS
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


def test_a_record_with_its_steps_verifies_unless_they_are_damaged(whole, store_path, tmp_path, capsys):
    call = f"--results {tmp_path} --store {store_path} --steps".split()
    assert main(["submit", str(whole), "baselines/small", *call]) == 0
    record = tmp_path / "baselines" / "small"
    assert f"recorded: {record}\n" in capsys.readouterr().out
    packed = sorted(record.glob("agents/*/steps.jsonl.gz"))
    assert [file.parent.name for file in packed] == sorted(AGENTS)
    assert main(["verify", str(record), "--store", str(store_path)]) == 0
    packed[0].write_bytes(packed[0].read_bytes()[:-9])
    assert main(["verify", str(record), "--store", str(store_path)]) == 1
    assert "steps.jsonl.gz' cannot be unpacked: EOFError" in capsys.readouterr().out


def test_an_edited_reply_in_a_record_is_found(whole, store_path, tmp_path, capsys):
    assert main(f"submit {whole} small --results {tmp_path} --store {store_path} --steps".split()) == 0
    packed = tmp_path / "small" / "agents" / "random" / "steps.jsonl.gz"
    packed.write_bytes(gzip.compress(gzip.decompress(packed.read_bytes()).replace(b'"terminate', b'"purchase')))
    assert main(["verify", str(tmp_path / "small"), "--store", str(store_path)]) == 1
    assert "random: " in capsys.readouterr().out


@pytest.mark.long
def test_the_recorded_replies_give_the_demo_shop_s_rows_in_the_readme():
    record = RESULTS / "demo_shop" / "shipped"
    assert all(file.stat().st_size < 1_200_000 for file in record.glob("agents/*/steps.jsonl.gz"))
    assert main(["verify", str(record)]) == 0
