"""Runs over seeds: what was made by another call is no result of this one, and each run's memory is its own."""

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from benchmarks.seeds import Seeds, _call, _check_same_call, main, summary
from shop_env.metrics.statistics import ClusteredError, pooled_over_seeds

RECORD = Path(__file__).resolve().parents[2] / "benchmarks" / "results" / "miniwob" / "results.json"


@pytest.fixture(scope="module")
def made(store_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run, with a recorded result in place of a training's."""
    out = tmp_path_factory.mktemp("seeds")
    _check_same_call(out / "seed1", _call(1, str(store_path), Seeds(seeds=("1",), out=out)))
    shutil.copy(RECORD, out / "seed1" / "results.json")
    return out


@pytest.fixture
def finished(made: Path, store_path: Path, tmp_path: Path) -> list[str]:
    """The call of a run that is finished."""
    return ["--seeds", "1", "--store", str(store_path), "--out", str(shutil.copytree(made, tmp_path / "out"))]


def test_a_finished_seed_is_not_run_again_by_the_same_call(
    finished: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(finished) == 0
    assert "Means over seeds 1" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (["--store", "no/such/store"], "no/such/store"),
        (["--preset", "small_cpu"], "preset: tiny_cpu, now small_cpu"),
        (["--", "--grpo.steps", "3"], "training: [], now ['--grpo.steps', '3']"),
    ],
)
def test_figures_of_another_call_are_refused(
    change: list[str], said: str, finished: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    assert main([*finished, *change]) == 2
    shown = capsys.readouterr()
    assert said in shown.err and shown.err.count("\n") == 1
    assert "Means over seeds" not in shown.out


def test_figures_on_another_store_at_the_same_path_are_refused(
    finished: list[str], store_path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    call_file = tmp_path / "out" / "seed1" / "call.json"
    noted = json.loads(call_file.read_text(encoding="utf-8"))
    call_file.write_text(json.dumps(noted | {"store": "another"}), encoding="utf-8")
    assert main(finished) == 2
    assert "store: another, now" in capsys.readouterr().err


def test_a_run_of_unknown_call_is_refused(finished: list[str], tmp_path: Path) -> None:
    (tmp_path / "out" / "seed1" / "call.json").unlink()
    assert main(finished) == 2


MEASURING = """
import sys
from benchmarks.training_processes import run_measured
for size in (900, 1):
    print(*run_measured([sys.executable, "-c", f"import sys; held = b'x' * ({size} << 20); sys.exit(3)"]))
"""


def test_each_run_s_peak_memory_is_its_own() -> None:
    # In a process of its own, as the command is: a run's figure is no less than the memory of who starts it.
    done = subprocess.run([sys.executable, "-c", MEASURING], check=True, capture_output=True, text=True)
    (large_exit, large), (small_exit, small) = (map(int, line.split()) for line in done.stdout.splitlines())
    assert large_exit == small_exit == 3
    assert large > 900 << 20 > small + (100 << 20)


def of_seed(difference: float, store: str) -> dict[str, Any]:
    """What a run leaves, as far as the summary reads it."""
    compared = {"first": "a", "second": "b", "metric": "exact_accuracy", "difference": difference, "low": 0, "high": 0}
    return {
        "rows": [],
        "comparisons": [compared | {"test": {"standard_error": 0.02, "degrees_of_freedom": 14.0}}],
        "ceiling": None,
        "phases": [],
        "cost": None,
        "provenance": {"store": {"fingerprint": store}},
    }


@pytest.mark.parametrize("stores", [("one", "one", "one"), ("one", "two", "three")])
def test_differences_are_pooled_over_seeds_as_their_users_are_the_same_or_not(stores: tuple[str, ...]) -> None:
    differences = [0.03, 0.05, 0.04]
    runs = {seed: of_seed(*one) for seed, one in enumerate(zip(differences, stores, strict=True))}
    record, text = summary(runs)
    pooled = pooled_over_seeds(differences, [ClusteredError(0.02, 14.0)] * 3, same_users=len(set(stores)) == 1)
    assert record["differences"][0]["pooled"] == [pooled.mean, pooled.low, pooled.high]
    assert f"over all seeds +4.0 [{100 * pooled.low:+.1f}, {100 * pooled.high:+.1f}]" in text


def test_one_seed_and_runs_without_tests_are_not_pooled() -> None:
    older = {seed: of_seed(0.1, "one") for seed in range(2)}
    del older[0]["comparisons"][0]["test"]
    for runs in ({0: of_seed(0.1, "one")}, older):
        record, text = summary(runs)
        assert "pooled" not in record["differences"][0]
        assert "over all seeds" not in text
