"""The cost of a sweep's missing trainings, and the GPUs of runs at the same time."""

from pathlib import Path

import pytest

from agents.llm_grpo.options import MachineOptions
from agents.llm_grpo.run_plan import GIB, get_machine, plan_run
from benchmarks.sweep.cost import estimate_cost
from benchmarks.sweep.file import load_sweep
from benchmarks.sweep.runs import PlannedRun, SweepOptions, plan, run_missing
from replay_sessions.demo_shop.visits import write_demo_store
from replay_sessions.foundation.errors import BadConfig
from replay_sessions.foundation.table import Table
from replay_sessions.store import SessionStore

FILE = """
title = "Two trainings"
[[run]]
name = "short"
flags = ["--only", "sft", "--sft.max-batch-tokens", "2048"]
[[run]]
name = "with_rl"
flags = ["--only", "shop_r1"]
[[run]]
name = "agents"
agents = ["random"]
"""


def test_a_dry_run_adds_up_seeds_and_runs(tmp_path):
    write_demo_store(tmp_path / "store", 40, 0)
    (tmp_path / "two.toml").write_text(FILE)
    machine = MachineOptions(gpus=2, gpu="a100")
    options = SweepOptions(
        sweep=str(tmp_path / "two.toml"),
        out=tmp_path,
        seeds=(0, 1, 2),
        store=str(tmp_path / "store"),
        gpus_per_run=2,
        machine=MachineOptions(gpu="a100"),
    )
    planned = plan(load_sweep(options.sweep), options)
    table, line = estimate_cost(planned, options)
    assert isinstance(table, Table) and "each of 2 processes" in str(line)
    short, with_rl, total = table.rows
    config = planned["with_rl"][0].config
    assert config is not None
    own = get_machine(machine)
    phases = plan_run(config, SessionStore.open(tmp_path / "store"), own).phases.values()
    hours = 3 * sum(phase.hours("a100", own) for phase in phases)
    peak = max(phase.peak_bytes for phase in phases) / GIB
    assert with_rl[:3] == ["with_rl", 3, 2] and short[:3] == ["short", 3, 1]
    assert with_rl[4:] == [pytest.approx(hours), pytest.approx(peak)]
    for column in (1, 2, 3, 4):
        assert total[column] == pytest.approx(short[column] + with_rl[column])
    assert total[5] == max(short[5], with_rl[5])


def runs(folder: Path, number: int) -> list[PlannedRun]:
    module = "tests.benchmarks.sweep.show_gpus"
    files = [folder / str(seed) for seed in range(number)]
    return [PlannedRun(0, file.parent / f"run{file.name}", None, (), module, (str(file),), folder) for file in files]


def test_runs_at_the_same_time_have_gpus_of_their_own(tmp_path, monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "4,5,6,7")
    run_missing(runs(tmp_path, 2), 2, gpus_per_run=2)
    assert {(tmp_path / str(seed)).read_text() for seed in range(2)} == {"4,5", "6,7"}
    with pytest.raises(BadConfig, match="--processes 3 with --gpus-per-run 2 take 6 GPUs; there are 4"):
        run_missing(runs(tmp_path, 1), 3, gpus_per_run=2)
