"""`agents new` writes what runs and overwrites nothing; `agents list` tells what is ready and what extras would add."""

import subprocess
import sys
from importlib.machinery import ModuleSpec
from importlib.util import find_spec

import pytest

import agents.__main__
from agents.__main__ import main
from agents.templates.writing import write_template
from replay_sessions.foundation.errors import WriteFailed
from tests.processes import ROOT

pytestmark = pytest.mark.long


def test_the_tests_that_are_written_pass_as_they_are_written(tmp_path):
    for kind in ("class", "function", "policy"):
        assert main(["new", f"my_{kind}", "--kind", kind, "--out", str(tmp_path)]) == 0
    for part in ("reward", "metric", "importer"):
        assert main(["new", part, "--out", str(tmp_path / "a folder" / "not there yet")]) == 0
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=300,
        cwd=tmp_path,
        env={"PYTHONPATH": str(ROOT), "PATH": ""},
    )
    assert "11 passed" in done.stdout, done.stdout + done.stderr
    written = "".join(file.read_text(encoding="utf-8") for file in tmp_path.rglob("*.py"))
    assert not any(
        word in written
        for word in ("class_agent", "ClassAgent", "function_agent", "PolicyAgent", "own_", "OwnImporter")
    )


def test_the_commands_that_new_suggests_run(tmp_path, capsys):
    assert main(["new", "first_try", "--out", str(tmp_path)]) == 0
    (told,) = [line for line in capsys.readouterr().out.splitlines() if line.startswith("try: ")]
    assert main(told.removeprefix("try: shop-r1 agents ").split()) == 0


@pytest.mark.parametrize("there", ["my_agent.py", "test_my_agent.py"])
def test_new_overwrites_nothing_and_writes_both_files_or_none(there, tmp_path, capsys):
    (tmp_path / there).write_text("mine", encoding="utf-8")
    assert main(["new", "my_agent", "--out", str(tmp_path)]) == 2
    assert "nothing is overwritten" in capsys.readouterr().err
    assert [(file.name, file.read_text(encoding="utf-8")) for file in tmp_path.iterdir()] == [(there, "mine")]


def test_a_write_that_fails_leaves_no_half(tmp_path):
    (tmp_path / "a file").touch()
    with pytest.raises(WriteFailed, match="Not a directory"):
        write_template("half_written", "class", tmp_path / "a file" / "folder")
    assert not (tmp_path / "half_written.py").exists()


@pytest.mark.parametrize("name", ["my-agent", "1st", "class", "none", "_", "MyAgent", "../my_agent", "random", ""])
def test_a_name_that_no_module_can_have_is_refused(name, tmp_path, capsys):
    assert main(["new", name, "--out", str(tmp_path)]) == 2
    assert capsys.readouterr().err.startswith("error: ")
    assert not list(tmp_path.iterdir())


def test_the_list_names_missing_extras(monkeypatch, capsys):
    def without_scikit_learn(name: str) -> ModuleSpec | None:
        return None if name == "sklearn" else find_spec(name)

    monkeypatch.setattr(agents.__main__, "find_spec", without_scikit_learn)
    assert main(["list"]) == 0
    rows = [line.split() for line in capsys.readouterr().out.splitlines()]
    lacks = {row[0]: " ".join(row) for row in rows if row}
    assert "shop-r1[baselines]" in lacks["boosting"]
    assert "shop-r1[" not in lacks["ngram"]
