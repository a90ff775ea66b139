"""A run of restricted policies on the command's own way: phases, checkpoints, rows, and a stop."""

import pytest
from safetensors.torch import load_file

from agents.llm_grpo.train import main
from shop_env.evaluation.results_file import read_log
from tests.demo_stores import demo_store_at
from tests.json_files import read_json_lines
from tests.train.small_run import SMALL_FLAGS
from train.checkpoints import read_info

ROWS = """
[phases.sft]
label = "restricted"
method = "candidate_likelihood"
teach_rationales = false

[phases.more]
label = "restricted, longer"
method = "candidate_likelihood"
start = "sft"
same_compute_as = "sft"
teach_rationales = false

[phases.rewarded]
label = "expected reward"
method = "expected_reward"
start = "sft"
teach_rationales = false
reward = "customer_r1"
against = ["sft"]
"""


@pytest.mark.long
def test_restricted_policies_train_with_the_same_compute_and_write_actions_of_the_page(tmp_path):
    (tmp_path / "rows.toml").write_text(ROWS)
    store = demo_store_at(tmp_path / "demo", 60, seed=5).path
    flags = [flag for flag in SMALL_FLAGS if "sft-longer" not in flag]
    words = ["--rows", str(tmp_path / "rows.toml"), "--store", str(store), "--seed", "7", *flags]
    assert main([*words, "--dry-run"]) == 0
    out = tmp_path / "run"
    assert main([*words, "--out", str(out), "--evaluation.most-probable-action", "0"]) == 0
    rows = read_json_lines(out / "metrics.jsonl")
    flops = {name: sum(row["flops"] for row in rows if row["phase"] == name) for name in ("sft", "more", "rewarded")}
    assert flops["more"] == pytest.approx(flops["sft"], rel=0.2) and flops["rewarded"] > 0
    assert all(read_info(out / name)[0].restricted for name in flops)
    policies = [entry for entry in read_log(out).entries if entry.label.startswith(("restricted", "expected"))]
    invalid = {entry.label: entry.row.figures["invalid_rate"].value for entry in policies}
    assert len(invalid) == 9
    for label, rate in invalid.items():  # weights of five steps write typed texts that do not end
        assert rate == 0 if "most probable" in label else rate < 1 or "greedy" in label, label
    elsewhere = [*words, "--out", str(tmp_path / "other"), "--model.path", str(out / "sft")]
    assert main(elsewhere) == 2, "its weights alone would write what they never learnt"
    before, after = (load_file(out / name / "model.safetensors") for name in ("sft", "rewarded"))
    assert any((before[name] != after[name]).any() for name in before)
