"""Runs over seeds: a finished one is not run again, one of other options is refused, each one's memory is its own."""

import json
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from agents.llm_grpo.presets import load_preset
from benchmarks.seeds import main, summarise_seeds
from replay_sessions.foundation.table import Estimate, format_cell
from shop_env.evaluation.comparing import compare_records
from shop_env.metrics import StepRecord
from shop_env.metrics.clustered_errors import ClusteredError
from shop_env.metrics.over_seeds import pooled_over_seeds

SMALL = [
    *("--sft.stages.0.steps", "2", "--sft.stages.1.steps", "2", "--sft.stages.2.steps", "2"),
    *("--sft.sessions-per-batch", "2", "--model.tiny.hidden-size", "32", "--model.tiny.layers", "1"),
    *("--model.tokenizer.min-count", "2", "--validation.times", "0", "--evaluation.sessions", "3", "--threads", "1"),
    *("--only", "sft", "--evaluation.agents", "majority", "--watch"),
]


@pytest.fixture(scope="module")
def trained(store_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of two finished seeds, trained at the same time."""
    out = tmp_path_factory.mktemp("seeds") / "out"
    assert (
        main(["--seeds", "1,2", "--store", str(store_path), "--out", str(out), "--processes", "2", "--", *SMALL]) == 0
    )
    return out


@pytest.fixture
def finished(trained: Path, store_path: Path, tmp_path: Path) -> list[str]:
    """The call of a run that is finished."""
    out = shutil.copytree(trained, tmp_path / "out")
    return ["--seeds", "1,2", "--store", str(store_path), "--out", str(out)]


@pytest.mark.long
def test_a_finished_seed_is_not_run_again_by_the_same_call(
    finished: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = {file: file.stat().st_mtime_ns for file in (tmp_path / "out").rglob("seed*/*") if file.is_file()}
    assert main([*finished, "--", *SMALL]) == 0
    assert "Means over seeds 1, 2" in capsys.readouterr().out
    record = json.loads((tmp_path / "out" / "seeds.json").read_text(encoding="utf-8"))
    assert record["seeds"] == [1, 2] and set(record["rows"]) >= {"majority", "SFT, T 0.6", "SFT, greedy"}
    assert all(cost["wall_s"] > 0 and cost["peak_memory_mb"] > 0 for cost in record["cost"].values())
    locks = {file for file in before if file.name == ".lock"}
    assert all(file.stat().st_mtime_ns == before[file] for file in before.keys() - locks)


@pytest.mark.long
@pytest.mark.parametrize(
    ("change", "message"),
    [
        (["--store", "no/such/store", "--", *SMALL], "no/such/store"),
        (["--preset", "small_cpu", "--", *SMALL], "Unknown preset 'small_cpu'"),
        (["--", *SMALL, "--grpo.steps", "3"], "grpo.steps: 70, now 3"),
    ],
)
def test_runs_of_another_call_are_refused(
    change: list[str], message: str, finished: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*finished, *change]) == 2
    output = capsys.readouterr()
    assert message in output.err and output.err.count("\n") == 1
    assert "Means over seeds" not in output.out


@pytest.mark.long
def test_runs_on_another_store_at_the_same_path_are_refused(
    finished: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run_file = tmp_path / "out" / "seed1" / "run.json"
    record = json.loads(run_file.read_text(encoding="utf-8"))
    record["store"]["fingerprint"] = "another"
    run_file.write_text(json.dumps(record), encoding="utf-8")
    assert main([*finished, "--", *SMALL]) == 2
    assert "began with store another" in capsys.readouterr().err


@pytest.mark.long
def test_results_without_a_run_are_refused(
    finished: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "out" / "seed1" / "run.json").unlink()
    assert main([*finished, "--", *SMALL]) == 2
    assert "holds results without a run.json" in capsys.readouterr().err


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


def records(share: float, users: int = 9) -> list[StepRecord]:
    """Two steps of each user, of which about this share is predicted right."""
    click = {"type": "click", "name": "a"}
    return [
        StepRecord(
            session_id=f"s{user}",
            user_id=f"u{user}",
            step_index=step,
            step_count=2,
            logged=click,
            predicted=click if (2 * user + step) % 7 < 7 * share else {"type": "click", "name": "b"},
        )
        for user in range(users)
        for step in range(2)
    ]


def summarised(shares: Sequence[float], *, same_users: bool, users: int = 9) -> tuple[dict[str, object], str]:
    by_seed = {seed: {"a": records(share, users), "b": records(0.2, users)} for seed, share in enumerate(shares)}
    comparisons = {seed: [compare_records(rows, "a", "b", "exact_accuracy")] for seed, rows in by_seed.items()}
    _, (difference,), text = summarise_seeds(by_seed, comparisons, same_users=same_users)
    return difference, text


@pytest.mark.parametrize("same_users", [True, False])
def test_differences_are_pooled_over_seeds_as_their_users_are_the_same_or_not(same_users: bool) -> None:
    shares = [0.5, 0.7, 0.6]
    difference, text = summarised(shares, same_users=same_users)
    compared = [
        compare_records({"a": records(share), "b": records(0.2)}, "a", "b", "exact_accuracy") for share in shares
    ]
    errors = [ClusteredError(*(getattr(one, name) for name in ClusteredError.__struct_fields__)) for one in compared]
    pooled = pooled_over_seeds([one.difference for one in compared], errors, same_users=same_users)
    assert difference["pooled"] == pytest.approx([pooled.mean, pooled.low, pooled.high])
    assert f"over all seeds {format_cell(Estimate(pooled.mean, pooled.low, pooled.high), 'difference')}" in text


def test_what_the_preset_says_of_several_seeds_is_the_record() -> None:
    record = json.loads((Path(__file__).parents[2] / "benchmarks/results/demo_shop/seeds.json").read_text())
    pooled = {(one["first"], one["second"], one["metric"]): one["pooled"] for one in record["differences"]}
    text = load_preset("tiny_cpu").phases["shop_r1"].several_seeds
    for decoding, before, between in (("greedy", "greedy ", " points of"), ("T 0.6", "at T 0.6 ", " and")):
        pair = (f"Shop-R1, {decoding}", f"SFT, {decoding}")
        exact, f1 = (
            format_cell(Estimate(*pooled[*pair, metric]), "difference")
            for metric in ("exact_accuracy", "type_f1_macro")
        )
        assert f"{before}{exact}{between}" in text
        assert f" and {f1}" in text


def test_one_seed_and_too_few_users_are_not_pooled() -> None:
    for shares, users in (([0.5], 9), ([0.5, 0.6], 3)):
        difference, text = summarised(shares, same_users=True, users=users)
        assert "pooled" not in difference
        assert "over all seeds" not in text
