"""Agents that are wrong about people in one known way are found by the figure meant for it, and by no other."""

import math
from functools import cache

import numpy as np
import pytest
from sklearn.metrics import mutual_info_score

from replay_sessions.schema import Terminate
from shop_env.metrics import StepRecord
from shop_env.metrics.people import (
    PeopleFigures,
    coverage,
    entropy_within,
    js_divergence,
    kind_counts,
    people_figures,
    session_vectors,
    user_agreement,
)
from tests.shop_env.planted import answer, ten_steps
from tests.shop_env.planted_people import AGENTS, People

SEEDS = range(4)


@cache
def records_of(agent: str, seed: int) -> list[StepRecord]:
    return People(seed).answers(agent)


@cache
def figures_of(agent: str, seed: int) -> PeopleFigures:
    return people_figures(records_of(agent, seed))


def is_collapsed(found: PeopleFigures) -> bool:
    return found.user_icc_ratio is not None and found.user_icc_ratio < 0.5


def is_over_sharp(found: PeopleFigures) -> bool:
    return found.entropy_ratio is not None and found.entropy_ratio < 0.8


def is_somebody_else(found: PeopleFigures) -> bool:
    return found.user_agreement is not None and found.user_agreement < 0.5


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("agent", AGENTS)
def test_each_planted_fault_is_found_by_the_figure_meant_for_it_and_by_no_other(agent, seed):
    found = figures_of(agent, seed)
    assert (is_collapsed(found), is_over_sharp(found), is_somebody_else(found)) == (
        agent == "collapsed",
        agent == "sharp",
        agent == "copied",
    )


@pytest.mark.parametrize("seed", SEEDS)
def test_people_drawn_anew_are_as_people(seed):
    found = figures_of("anew", seed)
    assert found.user_icc_ratio == pytest.approx(1, abs=0.35)
    assert found.user_agreement == pytest.approx(1, abs=0.15)
    assert found.entropy_ratio == pytest.approx(1, abs=0.05)
    assert found.coverage is not None and found.coverage > 0.95


def test_agreement_counted_by_hand():
    # Users' means are (1, 3) and (0, 4), the same deviations within: all of what is common lies between, or cancels.
    users = np.array([0, 0, 1, 1])
    one, other = np.array([[0.0], [2.0], [2.0], [4.0]]), np.array([[1.0], [-1.0], [5.0], [3.0]])
    # MCB = 2 (-1)(-2) + 2 (1)(2) = 8, MCW = -4 / 2 = -2; MSB 4 and 16, MSW 2 and 2; n₀ = 2
    expected = (8 + 2) / np.sqrt((4 - 2) * (16 - 2))
    assert user_agreement(one, other, users) == pytest.approx(expected)
    assert user_agreement(other, one, users) == pytest.approx(expected)
    assert user_agreement(np.ones((4, 1)), other, users) is None
    assert user_agreement(one, np.ones((4, 1)), users) is None


def test_where_people_hardly_differ_there_is_nothing_to_compare_with():
    people = People(0, alike=10_000)
    found = people_figures(people.answers("sharp"))
    assert found.logged_user_icc is not None and found.logged_user_icc < 0.02
    assert (found.user_icc_ratio, found.user_agreement) == (None, None)
    assert is_over_sharp(found)


def test_entropy_within_users_is_scikit_learn_s_entropy_less_information_and_its_correction():
    rng = np.random.default_rng(1)
    users, kinds = rng.integers(5, size=400), rng.integers(6, size=400)
    shown = [len(np.unique(kinds[users == user])) for user in range(5)]
    plain = mutual_info_score(kinds, kinds) - mutual_info_score(kinds, users)
    expected = (plain + sum(count - 1 for count in shown) / (2 * 400)) / np.log(2)
    assert entropy_within(kinds, users) == pytest.approx(expected)
    assert math.isnan(entropy_within(kinds[:0], users[:0]))


def test_entropy_of_few_steps_is_that_of_many():
    rng = np.random.default_rng(2)
    users = np.repeat(np.arange(500), 12)
    assert entropy_within(rng.integers(4, size=6000), users) == pytest.approx(2, abs=0.05)  # 1.8 without correction


def test_session_vectors_count_kinds_and_pairs_within_a_session_only():
    kinds, sessions = np.array([0, 1, 1, 0]), np.array([3, 3, 5, 3])
    assert session_vectors(kinds, sessions, 2).tolist() == [[2, 1, 0, 1, 1, 0], [0, 1, 0, 0, 0, 0]]


def test_no_pair_spans_a_step_that_is_missing():
    kinds, sessions, steps = np.array([0, 1, 1]), np.array([3, 3, 3]), np.array([1, 2, 4])
    assert session_vectors(kinds, sessions, 2, steps).tolist() == [[1, 2, 0, 1, 0, 0]]


def test_an_agent_that_always_terminates_has_the_divergences_counted_by_hand():
    answers = answer(ten_steps(), lambda session, index: Terminate())
    found = people_figures(answers)
    # logged shares: review .5, purchase .1, typed .2, terminate .2; answered: terminate 1; middle: .25 .05 .1 .6
    expected = 0.5 * (0.5 + 0.1 + 0.2 + 0.2 * np.log2(0.2 / 0.6)) + 0.5 * np.log2(1 / 0.6)
    assert found.action_mix_divergence == pytest.approx(expected)
    assert found.transition_divergence == 1
    counts = kind_counts(answers)
    assert {kind: count for kind, count in counts["answered"].items() if count} == {"terminate": 10}
    assert (counts["logged"]["review"], counts["logged"]["purchase"], counts["logged"]["terminate"]) == (5, 1, 2)


def test_an_empty_population_differs_from_another_as_much_as_can_be():
    some, none = np.array([3.0, 0.0]), np.zeros(2)
    assert js_divergence(some, none) == js_divergence(none, some) == 1.0
    assert js_divergence(none, none) == 0.0


def test_sessions_never_simulated_are_not_covered():
    human = np.concatenate([np.zeros((20, 2)), np.full((20, 2), 9.0)])
    assert coverage(human, human) == 1
    assert coverage(human, human[:20]) == 0.5
    assert math.isnan(coverage(human[:5], human))


def test_a_run_of_one_user_has_no_figures_of_users():
    records = [record for record in records_of("anew", 0) if record.user_id == "u0"]
    found = people_figures(records)
    assert (found.user_icc, found.user_icc_ratio, found.user_agreement) == (None, None, None)
    assert found.entropy_ratio is not None
    assert people_figures([]) == PeopleFigures(**dict.fromkeys(PeopleFigures.__struct_fields__))
