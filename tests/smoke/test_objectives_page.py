"""The objective of docs/objectives.md trains as it stands there, also after kill -9, and is in table and report."""

import json
import re
import subprocess
from pathlib import Path

import pytest
from safetensors.torch import load_file

from benchmarks.console import main
from tests.demo_stores import demo_store_at
from tests.json_files import read_json_lines
from tests.processes import ROOT, SHOP_R1
from tests.smoke.test_train_command import SMALL

PAGE = (ROOT / "docs" / "objectives.md").read_text(encoding="utf-8")
FILES = dict(re.findall(r"```(?:python|toml)\n# (\w+\.\w+)\n(.*?)```", PAGE, flags=re.DOTALL))
TRAIN, RESUME, REPORT = re.findall(r"^shop-r1 (.*)$", PAGE, flags=re.MULTILINE)
RUN = "runs/rloo"


@pytest.mark.long
def test_the_objective_of_the_page_trains_resumes_after_kill_9_and_is_in_table_and_report(tmp_path, monkeypatch):
    for name, text in FILES.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    demo_store_at(tmp_path / "demo", 60, seed=5)
    monkeypatch.chdir(tmp_path)
    flags = [word for key, value in SMALL.items() if "sft-longer" not in key for word in (f"--{key}", str(value))]
    words = [*TRAIN.split(), "--store", "demo", *flags, "--save-every-s", "0"]

    process = subprocess.Popen([*SHOP_R1, *words], stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
    for line in process.stderr:
        if re.match(r"rloo +step 2/4", line):
            process.kill()
            break
    process.communicate()
    assert process.returncode == -9
    assert main(RESUME.split()) == 0
    assert main([*words, "--out", "straight"]) == 0
    ours, theirs = (load_file(Path(run, "rloo", "model.safetensors")) for run in (RUN, "straight"))
    assert all((ours[key] == theirs[key]).all() for key in ours)

    logged = read_json_lines(Path(RUN, "metrics.jsonl"))
    steps = [row for row in logged if row["phase"] == "rloo"]
    assert [row["step"] for row in steps] == [1, 2, 3, 4]
    assert any("validation_exact" in row for row in steps)
    results = json.loads(Path(RUN, "results.json").read_text())
    assert {"RLOO, T 0.6", "RLOO, greedy"} <= {entry["spec"]["label"] for entry in results["entries"]}
    assert ["RLOO, greedy", "SFT, greedy"] in [[c["first"], c["second"]] for c in results["training"]["comparisons"]]
    assert main([*REPORT.split(), "--out", "report.html"]) == 0
    shown = Path("report.html").read_text(encoding="utf-8")
    assert "RLOO (my_objective.py:Rloo, from sft)" in shown
