"""Replies asked for on several machines make one leaderboard; only what verifies becomes a recorded result."""

import json
import shutil
from pathlib import Path

import pytest

from benchmarks.leaderboard.__main__ import main
from tests.benchmarks.test_verify import edit_lines, kept_replies

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


def figures(out: Path) -> object:
    entries = json.loads((out / "results.json").read_text())["entries"]
    return [(entry["row"], entry["records_digest"]) for entry in entries]


def new_steps(out: Path) -> list[int]:
    return [entry["new_steps"] for entry in json.loads((out / "results.json").read_text())["entries"]]


@pytest.fixture(scope="module")
def whole(store_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("merge") / "whole"
    assert rank(store_path, out, *AGENTS) == 0
    return out


def part_of(whole: Path, part: Path, *, first: int, last: int | None) -> Path:
    """As if another machine had asked these of each agent's steps and no others; its last line is cut off."""
    shutil.copytree(whole, part)
    for label in AGENTS:
        file = kept_replies(part, label)
        edit_lines(file, lambda lines: [*lines[:2], *lines[2 + first : None if last is None else 2 + last]])
        file.write_bytes(file.read_bytes() + b'{"session_id": "cut o')
    return part


def test_parts_asked_on_several_machines_are_the_whole_and_ask_nothing(
    whole: Path, store_path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one, other = (
        part_of(whole, tmp_path / "one", first=0, last=40),
        part_of(whole, tmp_path / "other", first=30, last=None),
    )
    out = tmp_path / "out"
    assert main(["merge", str(out), str(one), str(other)]) == 0
    assert capsys.readouterr().out.count(": 3 files of replies hold something new") == 2
    assert rank(store_path, out, *AGENTS) == 0
    assert new_steps(out) == [0, 0, 0]
    assert figures(out) == figures(whole)
    assert main(["verify", str(out), "--store", str(store_path)]) == 0

    before = {path: path.read_bytes() for path in out.rglob("*.jsonl")}
    capsys.readouterr()
    assert main(["merge", str(out), str(one)]) == 0
    assert ": 0 files" in capsys.readouterr().out
    assert {path: path.read_bytes() for path in out.rglob("*.jsonl")} == before


def test_of_two_replies_to_a_step_the_own_one_counts(whole: Path, store_path: Path, tmp_path: Path) -> None:
    out, forged = Path(shutil.copytree(whole, tmp_path / "out")), Path(shutil.copytree(whole, tmp_path / "forged"))
    edit_lines(
        kept_replies(forged, "random"),
        lambda lines: [line | {"reply": "forged"} if "reply" in line else line for line in lines],
    )
    assert main(["merge", str(out), str(forged)]) == 0
    assert rank(store_path, out, *AGENTS) == 0
    assert figures(out) == figures(whole)


def test_replies_to_other_questions_are_never_counted(whole: Path, store_path: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert main(["merge", str(out), str(whole)]) == 0
    call = ["--agents", "random", "--store", str(store_path), "--out", str(out)]
    assert main([*call, "--seed", "7"]) == 0  # another seed of the sampling is another question
    assert new_steps(out) != [0]


def test_a_folder_without_replies_and_a_broken_file_are_refused(
    whole: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    assert main(["merge", str(out), str(tmp_path / "nothing")]) == 2
    assert "holds no replies" in capsys.readouterr().err
    broken = Path(shutil.copytree(whole, tmp_path / "broken"))
    file = kept_replies(broken, "random")
    file.write_bytes(file.read_bytes() + b"{}}\n")
    assert main(["merge", str(out), str(broken)]) == 2
    assert str(file) in capsys.readouterr().err
    assert not list(out.rglob("random/replies/*"))


def test_what_verifies_is_recorded_but_for_where_things_lie(whole: Path, store_path: Path, tmp_path: Path) -> None:
    results = tmp_path / "results"
    call = ["submit", str(whole), "baselines/small", "--results", str(results), "--store", str(store_path)]
    assert main([*call, "--rerun", "3"]) == 0
    for made, kept in (("results.json", "baselines/small.json"), ("leaderboard.md", "baselines/small.md")):
        text = (whole / made).read_text()
        for folder in (store_path.parent, whole.parent):
            text = text.replace(f"{folder}/", "")
        assert (results / kept).read_text() == text
        assert str(tmp_path.parent) not in text
    config = json.loads((results / "baselines/small.json").read_text())["provenance"]["config"]
    assert (config["store"], config["out"]) == (store_path.name, whole.name)


def test_an_entry_that_was_edited_is_not_recorded(
    whole: Path, store_path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, results = Path(shutil.copytree(whole, tmp_path / "edited")), tmp_path / "results"
    content = json.loads((folder / "results.json").read_text())
    content["entries"][1]["row"]["figures"]["exact_accuracy"]["value"] = 0.99
    (folder / "results.json").write_text(json.dumps(content))
    call = ["submit", str(folder), "mine", "--results", str(results), "--store", str(store_path)]
    assert main(call) == 1
    assert "exact_accuracy.value: recorded 0.99" in capsys.readouterr().out
    assert not results.exists()


@pytest.mark.parametrize("name", ["../elsewhere", "/elsewhere", "a//b", ".hidden", ""])
def test_a_record_s_name_stays_within_the_results(name: str, whole: Path, store_path: Path, tmp_path: Path) -> None:
    call = ["submit", str(whole), name, "--results", str(tmp_path / "results"), "--store", str(store_path)]
    assert main(call) == 2
    assert not (tmp_path / "results").exists()


def test_an_agent_that_kept_silent_is_not_recorded(
    store_path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "refuses.py").write_text(REFUSES)
    out = tmp_path / "out"
    assert rank(store_path, out, f"silent={tmp_path / 'refuses.py'}:Refuses", "random") == 1
    assert main(["submit", str(out), "mine", "--results", str(tmp_path / "r"), "--store", str(store_path)]) == 2
    assert "'silent' is not ranked: gave no reply at some steps" in capsys.readouterr().err
