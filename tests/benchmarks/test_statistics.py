"""How often tests over few users err: the simulated agents are what they are said to be, and so is the record."""

import json
from pathlib import Path

import numpy as np
import pytest

from benchmarks.statistics.__main__ import main
from benchmarks.statistics.error_rates import TESTS, finds
from benchmarks.statistics.worlds import WORLDS, simulated_pairs

RECORDED = Path(__file__).parents[2] / "benchmarks" / "results" / "statistics" / "error_rates.json"


@pytest.mark.parametrize("name", WORLDS)
def test_each_world_has_fifteen_users_and_the_difference_that_is_asked_for(name: str) -> None:
    world = WORLDS[name]
    assert len(world.steps) == 15
    gaps = []
    for a, b in simulated_pairs(world, 0.1, pairs=200, seed=1):
        assert a.sum(axis=1).tolist() == b.sum(axis=1).tolist() == list(world.steps)
        right = [np.einsum("uii->", side.reshape(15, 3, 4)[:, :, :3]) / sum(world.steps) for side in (a, b)]
        gaps.append(right[0] - right[1])
    assert np.mean(gaps) == pytest.approx(0.1, abs=0.02)


def test_a_user_s_own_difference_is_in_the_worlds_that_say_so() -> None:
    def spread(name: str) -> float:
        gaps = [
            (a - b).reshape(15, 3, 4)[:, range(3), range(3)].sum(axis=1) / WORLDS[name].steps
            for a, b in simulated_pairs(WORLDS[name], 0.0, pairs=100, seed=2)
        ]
        return float(np.std(gaps))

    assert spread("users differ") > 1.5 * spread("alike")


def test_every_test_finds_what_is_plain_and_none_finds_a_difference_of_an_agent_from_itself() -> None:
    (a, b), *_ = simulated_pairs(WORLDS["alike"], 0.6, pairs=1, seed=3)
    assert finds("type_accuracy", a, b, seed=0, samples=200) == dict.fromkeys(TESTS, True)
    assert finds("type_accuracy", a, a, seed=0, samples=200) == dict.fromkeys(TESTS, False)


def test_the_command_leaves_its_figures_and_repeats_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    call = ["--pairs", "5", "--differences", "0", "--samples", "50", "--out"]
    assert main([*call, str(tmp_path / "one")]) == main([*call, str(tmp_path / "two")]) == 0
    one, two = (json.loads((tmp_path / run / "error_rates.json").read_text()) for run in ("one", "two"))
    assert one["rates"] == two["rates"]
    assert len(one["rates"]) == 2 * len(WORLDS)
    assert (tmp_path / "one" / "error_rates.md").read_text() in capsys.readouterr().out
    assert main([*call, str(tmp_path / "three"), "--pairs", "0"]) == 2


def test_of_a_thousand_equal_pairs_the_paired_tests_recorded_about_five_percent_and_the_bootstrap_more() -> None:
    rates = [rate for rate in json.loads(RECORDED.read_text())["rates"] if rate["difference"] == 0]
    assert len(rates) == 2 * len(WORLDS)
    for rate in rates:
        assert rate["pairs"] >= 1000
        found = rate["found"]
        assert 0.03 <= found["CR2"] <= 0.065
        assert 0.03 <= found["sign flips"] <= 0.065
        assert found["percentile bootstrap"] > max(found["CR2"], found["sign flips"])
