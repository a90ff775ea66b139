"""How often tests over few users err: the simulated agents are what they are said to be, and so is the record."""

import json
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from benchmarks.studies.statistics.__main__ import main
from benchmarks.studies.statistics.error_rates import (
    TESTS,
    WORLDS,
    difference_interval,
    finds,
    sign_flip_p_value,
    simulated_pairs,
)
from shop_env.metrics import MetricChoices, step_metrics
from shop_env.metrics.all_metrics import find_metric
from shop_env.metrics.intervals import user_sums
from shop_env.metrics.step_table import StepTable
from tests.shop_env.planted import answer, random_sessions

RECORDED = Path(__file__).parents[3] / "benchmarks" / "results" / "statistics" / "error_rates.json"


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


def first(sums: np.ndarray) -> np.ndarray:
    return sums[..., 0]


@pytest.mark.parametrize("seed", range(3))
def test_sign_flips_of_means_are_scipy_s_exact_permutation_test(seed: int) -> None:
    rng = np.random.default_rng(seed)
    a, b = rng.normal(0.6, size=11), rng.normal(size=11)
    expected = stats.permutation_test(
        (a, b), lambda x, y, axis: np.mean(x - y, axis=axis), permutation_type="samples", n_resamples=np.inf
    )
    assert sign_flip_p_value(first, a[:, None], b[:, None]) == pytest.approx(expected.pvalue)


def test_swapping_users_tests_figures_that_are_no_means_too() -> None:
    rng = np.random.default_rng(4)
    a, b = rng.random((6, 2)), rng.random((6, 2))

    def value(sums: np.ndarray) -> np.ndarray:
        return sums[..., 0] / sums[..., 1]

    def difference(one: np.ndarray, other: np.ndarray) -> float:
        return abs(value(one.sum(axis=0)) - value(other.sum(axis=0)))

    ways = [np.array(way)[:, None] for way in product([True, False], repeat=6)]
    as_far = [difference(np.where(way, a, b), np.where(way, b, a)) >= difference(a, b) - 1e-12 for way in ways]
    assert sign_flip_p_value(value, a, b) == pytest.approx(np.mean(as_far))


def test_sign_flips_of_equal_agents_are_no_news_and_ties_count() -> None:
    same = np.arange(6.0)[:, None]
    assert sign_flip_p_value(first, same, same) == 1
    assert sign_flip_p_value(first, np.array([[1.0], [-1.0]]), np.zeros((2, 1))) == 1
    # Users for whom both are alike change nothing: 4 ways of 2 users, of which 2 lie as far.
    assert sign_flip_p_value(first, np.array([[1.0], [1.0], [3.0]]), np.array([[0.0], [0.0], [3.0]])) == 0.5


def test_with_many_users_drawn_ways_come_near_the_exact_share_and_repeat() -> None:
    rng = np.random.default_rng(5)
    a, b = rng.normal(0.35, size=(60, 1)), np.zeros((60, 1))
    found = sign_flip_p_value(first, a, b)
    assert found == sign_flip_p_value(first, a, b)
    assert found != sign_flip_p_value(first, a, b, seed=1)
    assert found == pytest.approx(stats.ttest_1samp(a[:, 0], 0).pvalue, abs=0.01)


@pytest.mark.parametrize("metric", ["exact_accuracy", "type_f1_macro"])
def test_the_bootstrap_equals_a_plain_one_of_whole_users(metric: str) -> None:
    sessions = random_sessions(30, 1)
    sides = [answer(sessions, lambda s, i, code=code: ["?", s.steps[i].action][(i + code) % 3 > 0]) for code in (0, 1)]
    users = list(dict.fromkeys(record.user_id for record in sides[0]))
    rng, samples = np.random.default_rng(3), 200
    values = []
    for draw in rng.integers(len(users), size=(samples, len(users))):
        drawn = [[r for index in draw for r in side if r.user_id == users[index]] for side in sides]
        values.append(step_metrics(drawn[0])[metric] - step_metrics(drawn[1])[metric])
    choices = MetricChoices()
    of = find_metric(metric, choices)
    sums = [user_sums(of, StepTable(side, choices)) for side in sides]
    found = difference_interval(of, sums[0], sums[1], samples=samples, seed=3)
    assert found == pytest.approx(tuple(np.quantile(values, [0.025, 0.975])))
    assert found == difference_interval(of, sums[0], sums[1], samples=samples, seed=3)
    assert found != difference_interval(of, sums[0], sums[1], samples=samples, seed=4)
