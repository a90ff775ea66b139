"""A scaled distance is 1 for other people, 0 for chance, whatever the size of the sample."""

import numpy as np
import pytest
from scipy import stats

from shop_env.metrics import ActionTrace, trace_of
from shop_env.metrics.populations import TRACE_DISTANCES, independent_traces, scaled_distance

KINDS = ("search", "product_link", "review", "filter")
AFTER = np.array([[0.1, 0.7, 0.0, 0.2], [0.2, 0.1, 0.6, 0.1], [0.4, 0.3, 0.2, 0.1], [0.1, 0.8, 0.0, 0.1]])


def people(users: int, seed: int, visits: int = 3) -> dict[str, list[ActionTrace]]:
    """Shoppers whose next action depends on the last one, and who mostly leave after few."""
    rng = np.random.default_rng(seed)

    def visit() -> ActionTrace:
        kinds = [0]
        for _ in range(1 + rng.poisson(3)):
            kinds.append(int(rng.choice(len(KINDS), p=AFTER[kinds[-1]])))
        return trace_of([*(KINDS[kind] for kind in kinds), "terminate"])

    return {f"u{user}": [visit() for _ in range(visits)] for user in range(users)}


def marginals(sessions: dict[str, list[ActionTrace]]) -> list[ActionTrace]:
    traces = [trace for of in sessions.values() for trace in of]
    return independent_traces([kind for trace in traces for kind in trace.kinds], [trace.length for trace in traces])


UNIFORM = independent_traces([*KINDS, "terminate"], [1, 40])


@pytest.mark.parametrize("name", TRACE_DISTANCES)
@pytest.mark.parametrize("users", [14, 120])
def test_other_people_score_about_1_however_few_and_chance_0(name: str, users: int) -> None:
    human = people(users, 1)
    scores: dict[str, list[float]] = {"people": [], "chance": []}
    for seed in range(2, 10):
        drawn = independent_traces([*KINDS, "terminate"], [1, 40], count=3 * users, seed=seed)
        by_chance = {user: drawn[3 * place : 3 * place + 3] for place, user in enumerate(human)}
        for side, simulated in (("people", people(users, seed)), ("chance", by_chance)):
            found = scaled_distance(TRACE_DISTANCES[name], human, simulated, UNIFORM, splits=10)
            assert found is not None and found.score is not None
            scores[side].append(found.score)
    assert np.mean(scores["people"]) == pytest.approx(1, abs=0.1)
    assert np.mean(scores["chance"]) == pytest.approx(0, abs=0.1)


def test_without_the_floor_the_same_people_would_look_the_worse_the_fewer_they_are() -> None:
    few, many = (
        scaled_distance(TRACE_DISTANCES["transitions"], people(users, 1), people(users, 2), UNIFORM)
        for users in (10, 200)
    )
    assert few is not None and many is not None
    assert few.model > 3 * many.model
    assert few.score == pytest.approx(many.score, abs=0.1)


def test_right_marginals_in_no_order_score_in_the_mix_and_not_in_transitions() -> None:
    human = people(120, 1)
    drawn = marginals(human)
    shuffled = {user: drawn[3 * place : 3 * place + 3] for place, user in enumerate(human)}
    base = marginals(people(120, 9))
    mix = scaled_distance(TRACE_DISTANCES["action_mix"], human, shuffled, UNIFORM)
    transitions = scaled_distance(TRACE_DISTANCES["transitions"], human, shuffled, base)
    assert mix is not None and mix.score is not None and mix.score > 0.9
    assert transitions is not None and transitions.score == pytest.approx(0, abs=0.1)


def test_a_copy_of_everyones_own_sessions_scores_no_better_than_other_people() -> None:
    human = people(60, 1)
    found = scaled_distance(TRACE_DISTANCES["action_mix"], human, human, UNIFORM)
    assert found is not None
    assert (found.model, found.score) == (found.floor, 1)


def test_the_score_by_hand() -> None:
    """Two users, so each is compared with the other: 4 and 6 lie 2 apart, the agent's 5 and 5 lie 1."""

    def distance(left: list[float], right: list[float]) -> float:
        return float(stats.wasserstein_distance(left, right))

    found = scaled_distance(distance, {"a": [4.0], "b": [6.0]}, {"a": [5.0], "b": [5.0]}, [10.0], splits=8)
    assert found is not None
    assert (found.model, found.floor) == (1, 2)
    assert 4 <= found.base <= 6
    assert found.score == pytest.approx((found.base - 1) / (found.base - 2))


def test_one_user_or_a_base_no_farther_than_people_has_no_score() -> None:
    human = people(1, 1)
    assert scaled_distance(TRACE_DISTANCES["length"], human, human, UNIFORM) is None
    two = {"a": [trace_of(["search"])], "b": [trace_of(["search"])]}
    found = scaled_distance(TRACE_DISTANCES["action_mix"], two, two, two["a"])
    assert found is not None and found.score is None


def test_users_that_the_agent_did_not_play_are_left_out() -> None:
    human, played = people(10, 1), people(10, 2)
    some = {user: played[user] for user in list(played)[:6]}
    expected = scaled_distance(TRACE_DISTANCES["length"], {user: human[user] for user in some}, some, UNIFORM, splits=5)
    assert scaled_distance(TRACE_DISTANCES["length"], human, some, UNIFORM, splits=5) == expected
