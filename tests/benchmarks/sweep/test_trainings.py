"""The tables as a user makes them: real trainings of a very small model, stopped, gone on with, and shared."""

import csv
import hashlib
import io
import shutil
import signal
import subprocess
import sys
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import msgspec
import pytest

from benchmarks.sweep.__main__ import main
from benchmarks.sweep.file import PAPERS, load_sweep
from benchmarks.sweep.runs import SweepOptions, plan
from replay_sessions.foundation.config_errors import toml_names
from replay_sessions.foundation.locks import working_alone_in
from shop_env.evaluation.steps_file import read_lines
from tests.json_files import read_json
from tests.processes import run_python
from tests.train.small_run import SMALL_FLAGS

pytestmark = pytest.mark.long

FLAGS = [*SMALL_FLAGS, "--watch"]
CHECKPOINT = "model.safetensors"


def words(table: str, store: Path, out: Path, *more: str, seeds: tuple[str, ...] = ("3",)) -> list[str]:
    return [table, "--store", str(store), "--out", str(out), "--seeds", *seeds, *more, "--", *FLAGS]


def command(given: list[str]) -> list[str]:
    return [sys.executable, "-m", "benchmarks.sweep", *given]


def made(given: list[str]) -> subprocess.CompletedProcess[str]:
    done = run_python(*command(given)[1:])
    assert done.returncode == 0, done.stderr
    return done


def digests(run: Path) -> dict[str, object]:
    """The weights of phases and the answers of rows, and not the run's own books."""
    weights = {str(file.relative_to(run)): file.read_bytes() for file in run.glob(f"*/{CHECKPOINT}")}
    found: dict[str, object] = {name: hashlib.sha256(content).hexdigest() for name, content in weights.items()}
    return found | {file.parent.name: answers(file) for file in run.glob("agents/*/steps.jsonl")}


def answers(file: Path) -> dict[tuple[str, int], tuple[str | None, str | None]]:
    return {key: (line.reply, line.error) for key, line in read_lines(file).items()}


def result(file: Path) -> Any:
    return read_json(file)


@pytest.fixture(scope="module")
def figure_2(store_path, tmp_path_factory) -> Path:
    """A finished figure 2 of one seed."""
    out = tmp_path_factory.mktemp("paper") / "out"
    with redirect_stdout(io.StringIO()) as told:
        assert main(words("shop_r1_figure2", store_path, out)) == 0
    assert "Shop-R1, figure 2" in told.getvalue()
    return out


def test_a_table_stands_beside_the_paper_s_with_all_that_it_was_made_with(figure_2, store_path):
    found = result(figure_2 / "shop_r1_figure2.json")
    (view,) = found["views"]
    assert [row["label"] for row in view["rows"]] == [f"T {number / 10:.1f}" for number in range(6, 13)]
    assert view["rows"][0]["published"]["3B"] == [0.2772, 0.364, 0.3128, None, None, None]
    assert all(row["figures"][0]["by_seed"] == [row["figures"][0]["value"]] for row in view["rows"])
    assert found["seeds"] == [3]
    assert found["tested"]["sessions"] == 6
    assert any("One seed" in note for note in found["notes"])
    assert found["runs"]["shop_r1/seed3"]["store"]["sessions"] == 60
    assert found["runs"]["shop_r1/seed3"]["config"]["grpo"]["steps"] == 4
    text = (figure_2 / "shop_r1_figure2.md").read_text(encoding="utf-8")
    assert "| T 0.7 |" in text and "28.63" in text
    with (figure_2 / "shop_r1_figure2.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["paper_1_3B"] for row in rows][:2] == ["0.2772", "0.2863"]
    assert [float(row["figure_1"]) for row in rows] == [row["figures"][0]["value"] for row in view["rows"]]


def test_finished_phases_and_rows_are_not_run_again(figure_2, store_path, capsys):
    before = {file: file.stat().st_mtime_ns for file in (figure_2 / "shop_r1").rglob("*")}
    first = (figure_2 / "shop_r1_figure2.csv").read_bytes()
    assert main(words("shop_r1_figure2", store_path, figure_2)) == 0
    assert {file: file.stat().st_mtime_ns for file in (figure_2 / "shop_r1").rglob("*")} == before
    assert (figure_2 / "shop_r1_figure2.csv").read_bytes() == first
    capsys.readouterr()
    assert main(words("shop_r1_table2", store_path, figure_2, "--dry-run")) == 0
    told = capsys.readouterr().out.splitlines()
    states = dict(parts[:2] for line in told if line.startswith("  ") and len(parts := line.split()) > 1)
    assert states["sft"] == states["shop_r1"] == "finished"
    assert states["sft_rl_binary"] == "missing"
    assert "rl_binary" not in states  # random weights
    assert not (figure_2 / "shop_r1_table2.json").exists()


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--grpo.steps", "5"], "grpo.steps: 4, now 5"),
        (["--reward", "binary"], 'reward: "shop_r1", now "binary"'),
    ],
)
def test_a_run_of_other_flags_is_refused_with_the_difference(more, said, figure_2, store_path, capsys):
    assert main([*words("shop_r1_figure2", store_path, figure_2), *more]) == 2
    told = capsys.readouterr().err
    assert said in told and told.count("\n") == 1


def test_a_run_at_which_another_call_is_at_work_is_left_alone(figure_2, store_path, tmp_path, capsys):
    run = Path("shop_r1", "seed3")
    (tmp_path / run).mkdir(parents=True)
    shutil.copy(figure_2 / run / "run.json", tmp_path / run)
    with working_alone_in(tmp_path / run):
        assert main(words("shop_r1_figure2", store_path, tmp_path)) == 2
    assert "another process is at work in" in capsys.readouterr().err
    assert not (tmp_path / run / "phases.json").exists()


def test_a_preset_s_own_store_is_used_and_a_demo_shop_for_each_seed_else(store_path, tmp_path):
    preset = tmp_path / "mine.toml"
    preset.write_text(f'base = "tiny_cpu"\nstore = "{store_path}"\n')
    sweep, options = load_sweep("shop_r1_figure2"), SweepOptions(sweep="shop_r1_figure2", seeds=(1, 2), out=tmp_path)
    options = msgspec.structs.replace(options, preset=str(preset))
    (own,) = plan(sweep, options).values()
    assert [run.store for run in own] == [store_path, store_path]
    for demo in ({"preset": None}, {"store": "demo"}):
        (each,) = plan(sweep, msgspec.structs.replace(options, **demo)).values()
        assert [run.store for run in each] == [tmp_path / "store1", tmp_path / "store2"]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["shop_r1_table6"], "Did you mean 'shop_r1_table"),
        (["shop_r1_table2", "--preset", "tiny_cpo"], "Did you mean 'tiny_cpu'?"),
        (["shop_r1_table2", "--seeds", "one"], "one"),
        (["shop_r1_table2", "--store", "no/such/store"], "no/such/store"),
        (["shop_r1_table2", "--", "--grpo.step", "3"], "--grpo.steps"),
        (["customer_r1_table6", "--preset", "shop_r1_3b"], "none for preset 'shop_r1_3b'"),
    ],
)
def test_a_wrong_call_gives_a_clear_message_and_exit_code_2(given, said, tmp_path, capsys):
    at = given.index("--") if "--" in given else len(given)
    assert main([*given[:at], "--out", str(tmp_path / "out"), *given[at:]]) == 2
    assert said in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
def test_stopped_and_shared_tables_end_as_undisturbed_ones(store_path, tmp_path):
    seeds = ("1", "2")
    straight, stopped = tmp_path / "straight", tmp_path / "stopped"
    made(words("shop_r1_table5", store_path, straight, seeds=seeds))
    made(words("shop_r1_figure2", store_path, stopped, seeds=seeds))
    before = {seed: digests(stopped / "shop_r1" / f"seed{seed}") for seed in seeds}
    for stopping in (signal.SIGINT, signal.SIGTERM):
        process = subprocess.Popen(
            command(words("shop_r1_table5", store_path, stopped, seeds=seeds)), stderr=subprocess.PIPE, text=True
        )
        assert any("step" in line for line in iter(process.stderr.readline, ""))
        process.send_signal(stopping)
        _, said = process.communicate(timeout=120)
        assert process.returncode == 130
        assert said.splitlines()[-1].startswith("stopped: `shop-r1 train --resume ")
        assert said.count("stopped: ") == 1
        assert not (stopped / "shop_r1_table5.json").exists()
    made(words("shop_r1_table5", store_path, stopped, seeds=seeds))
    for seed in seeds:
        runs = [folder / "shop_r1" / f"seed{seed}" for folder in (straight, stopped)]
        alone, shared = (digests(run) for run in runs)
        assert shared.items() >= before[seed].items()
        assert shared.items() >= alone.items()
        assert result(runs[1] / "run.json")["extended"][0]["phases"] == ["sft_latest_step", "shop_r1_latest_step"]
    assert result(stopped / "shop_r1_table5.json")["views"] == result(straight / "shop_r1_table5.json")["views"]


@pytest.mark.slow
@pytest.mark.parametrize("table", [name for name in toml_names(PAPERS) if "figure" not in name])
def test_every_table_is_made(table, store_path, tmp_path_factory):
    out = tmp_path_factory.getbasetemp() / "all_tables"
    made(words(table, store_path, out))
    found = result(out / f"{table}.json")
    assert [view["decoding"] for view in found["views"]] == ["T 0.6", "greedy", "most probable action"]
    published = [row for row in found["views"][0]["rows"] if row["published"]]
    assert published or table in ("customer_r1_table6", "customer_r1_table7")  # the papers' rows there are RL alone
    assert all(len(row["figures"]) == len(found["columns"]) for row in published)
    if table == "customer_r1_table6":
        configs = {
            run.name: result(run / "seed3" / "run.json")["config"]["model"]
            for run in out.glob("customer_r1*")
            if run.is_dir()
        }
        assert configs["customer_r1-shorter_context"]["max_tokens"] == 288
        assert configs["customer_r1-smaller_model"]["tiny"]["hidden_size"] == 64
