"""The command: its tables are those of its figures, and the recorded figures say what docs/reward_hacking.md says."""

import json
import struct
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from benchmarks.studies.reward_hacking.__main__ import main
from benchmarks.studies.reward_hacking.arithmetic import (
    PRESETS,
    RIGHT,
    Arithmetic,
    TerminateRegion,
    compute_region,
)
from benchmarks.studies.reward_hacking.disagreements import Disagreements
from benchmarks.studies.reward_hacking.earnings import StoreRecord
from benchmarks.studies.reward_hacking.guesses import GUESSES, PAPER_MIXES, PAPER_RESULTS, Guess
from benchmarks.studies.reward_hacking.tables import (
    build_arithmetic_tables,
    build_store_tables,
    build_training_tables,
)
from benchmarks.studies.reward_hacking.trained import Trained
from shop_env.reward import REWARD_PRESETS

RECORDED = Path(__file__).parents[4] / "benchmarks" / "results" / "hacking" / "hacking.json"


@pytest.fixture(scope="module")
def record() -> dict[str, Any]:
    """The recorded run on the demo shop."""
    found: dict[str, Any] = json.loads(RECORDED.read_text())
    return found


@pytest.mark.slow
def test_the_command_leaves_figures_tables_and_pictures(store_path: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    call = ["--store", str(store_path), "--sessions", "8", "--resolution", "12"]
    assert main([*call, "--out", str(out)]) == 0
    record = json.loads((out / "hacking.json").read_text())
    assert record["provenance"]["config"]["resolution"] == 12
    assert record["training"] is None
    store, found = msgspec.convert(record["store"], StoreRecord), msgspec.convert(record["arithmetic"], Arithmetic)
    disagreements = msgspec.convert(record["store"]["disagreements"], list[Disagreements])
    labels = [row["label"] for row in record["store"]["earned"]]
    assert {"always_terminate", "invented_name", "random", "majority", "repeat_last", "copy_match", "oracle"} <= set(
        labels
    )
    assert all(set(row["paid"]) == set(REWARD_PRESETS) for row in record["store"]["earned"])
    assert len(record["arithmetic"]["leavings"]) == 4 * len(PRESETS) * 2
    text = (out / "hacking.md").read_text()
    assert all(
        table.markdown() in text
        for table in (*build_store_tables(store, disagreements, found), *build_arithmetic_tables(found))
    )
    pictures = sorted(path.name for path in out.glob("*.png"))
    assert len(pictures) == 7
    for name in pictures:
        assert f"({name})" in text
        width, height = struct.unpack(">II", (out / name).read_bytes()[16:24])
        assert width > 1000 < 2 * height
        assert (out / name).with_suffix(".svg").read_text().startswith("<?xml")


def test_the_recorded_tables_are_those_of_its_figures(record: dict[str, Any]) -> None:
    store, found = msgspec.convert(record["store"], StoreRecord), msgspec.convert(record["arithmetic"], Arithmetic)
    disagreements = msgspec.convert(record["store"]["disagreements"], list[Disagreements])
    trained = msgspec.convert(record["training"], Trained, strict=False)
    tables = [
        *build_store_tables(store, disagreements, found),
        *build_arithmetic_tables(found),
        *build_training_tables(trained),
    ]
    text = RECORDED.with_name("hacking.md").read_text()
    assert all(table.markdown() in text for table in tables)
    assert not record["provenance"]["dirty"]


def test_the_recorded_figures_follow_from_the_code(record: dict[str, Any]) -> None:
    """Some of them, made anew from the recorded mix alone: those that need no guesses of a store."""
    reward = REWARD_PRESETS["binary"]
    nothing = {name: Guess() for name in GUESSES}
    mix = PAPER_MIXES[0]
    anew = compute_region(mix, "binary", reward, nothing, "none", tuple(record["arithmetic"]["beliefs"]))
    recorded = next(
        row
        for row in record["arithmetic"]["leavings"]
        if (row["mix"], row["reward"], row["scale"]) == (mix.name, "binary", "none")
    )
    assert anew.ends_from[2:] == tuple(recorded["leaves_from"][2:])  # where the first element is no better


def test_rewards_of_the_log_itself_are_the_most(record: dict[str, Any]) -> None:
    for row in record["store"]["earned"]:
        for paid in row["paid"].values():
            assert paid["of_best"] <= 1.0 + 1e-12
            assert sum(paid["terms"].values()) == pytest.approx(paid["reward"]["value"])


def test_without_division_grpo_leaves_where_the_expected_reward_says(record: dict[str, Any]) -> None:
    step = record["arithmetic"]["beliefs"][0]
    compared = 0
    for row in record["arithmetic"]["leavings"]:
        if row["scale"] == "none":
            for paid, leaves in zip(row["paid_from"], row["leaves_from"], strict=True):
                assert paid - 1e-9 <= (1.0 if leaves is None else leaves) <= paid + step + 1e-9
                compared += 1
    assert compared == 4 * len(PRESETS) * len(RIGHT)


def test_scaling_moves_what_is_paid_and_not_where_grpo_with_group_deviations_ends(record: dict[str, Any]) -> None:
    found = msgspec.convert(record["arithmetic"], Arithmetic)
    step = found.beliefs[1] - found.beliefs[0]

    def moved(beliefs_of: Callable[[TerminateRegion], Sequence[float | None]]) -> float:
        by_key: dict[tuple[str, float], list[list[float]]] = {}
        for row in found.by_scale:
            beliefs = [1.0 if belief is None else belief for belief in beliefs_of(row)]
            by_key.setdefault((row.mix, row.threshold), []).append(beliefs)
        return max(float(np.ptp(np.array(rows), axis=0).max()) for rows in by_key.values())

    assert moved(lambda row: row.ends_from) < 2 * step
    assert moved(lambda row: row.paid_from) > 0.4
    mix = PAPER_MIXES[0]
    regions = {row.reward: row for row in found.regions if (row.mix, row.scale) == (mix.name, "group")}
    commoner = max(mix.click_share, 1 - mix.click_share)
    for belief in regions["shop_r1"].ends_from:  # what drives spam out is the reward for the type of action
        assert belief == pytest.approx(commoner / (1 + commoner), abs=2 * step)
    # A reward of exact matches pays no more spam than is optimal.
    assert regions["binary"].ends_from == pytest.approx(found.optimal_from[mix.name], abs=2 * step)


def test_always_leaving_on_the_paper_s_test_set_has_the_exact_accuracy_that_follows_from_its_mix() -> None:
    mix = PAPER_MIXES[0]
    assert mix.steps == 1879
    assert 100 * mix.terminate_share == pytest.approx(27.25, abs=0.005)
    assert 100 * (PAPER_RESULTS["Shop-R1"][0] - mix.terminate_share) < 0.5


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--store", "nowhere/at/all"], "nowhere/at/all"),
        (["--agents", "radnom"], "Did you mean 'random'?"),
        (["--agents", "first_element"], "among the trivial policies already"),
        (["--sessions", "-1"], "--sessions is -1"),
        (["--samples", "9"], "--samples is gone"),
        (["--resolution", "3"], "--resolution is 3"),
        (["--share", "1.5"], "--share is 1.5"),
        (["--spam", "always_terminat"], "Did you mean 'always_terminate'?"),
        (["--rewards", "shop_r2"], "Did you mean 'shop_r1'?"),
        (["--seeds", "1", "1"], "--seeds is 1 1"),
        (["--dry-run"], "give --train too"),
        (["--train", "--preset", "tiny_cpo"], "Did you mean 'tiny_cpu'?"),
    ],
)
def test_a_wrong_call_is_explained_in_one_line(
    words: list[str], message: str, store_path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    call = words if words[0] == "--store" else ["--store", str(store_path), *words]
    assert main(["--out", str(tmp_path), *call]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert len(error.splitlines()) == 1


def test_an_unknown_flag_is_answered_with_the_flag_that_was_meant(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--out", str(tmp_path), "--sesions", "3"]) == 2
    assert "--sessions" in capsys.readouterr().err
