"""One state: expected rewards by hand, and the belief from which on leaving pays against a search for it."""

import numpy as np
import pytest

from benchmarks.studies.reward_hacking.guesses import Guess
from benchmarks.studies.reward_hacking.states import (
    HONEST,
    OPTIONS,
    State,
    break_even,
    cases,
    expected_rewards,
    option_worth,
)
from replay_sessions.schema import Click, TypeAndSubmit
from shop_env.reward import REWARD_PRESETS, RewardConfig
from shop_env.reward.score import score_action

Guesses = dict[str, Guess]


def test_expected_rewards_under_table_1_are_those_worked_out_by_hand(guesses: Guesses) -> None:
    """b 0.2, q 0.75, p 0.5: clicks come at 0.6 of the steps, texts at 0.2."""
    found = expected_rewards(State(0.2, 0.75, 0.5), RewardConfig(dars=10.0), guesses)
    assert found["terminate"] == pytest.approx(0.5 + 0.2 * 0.3)
    # Half of the wrong half's tenth: near with chance 0.05, paid 0.8 of 10.
    assert found["guess"] == pytest.approx(0.5 + 0.6 * (0.3 + 0.2 + 10 * (0.5 + 0.05 * 0.8)))
    assert found["type"] == pytest.approx(0.5 + 0.2 * (0.3 + 0.1 + 0.1 + 0.1 + 10 * (0.5 + 0.1 * 0.75)))
    assert found["invented"] == pytest.approx(0.5 + 0.6 * (0.5 + 10 * 0.5 * 0.8))
    assert found["first"] == pytest.approx(0.5 + 0.6 * (0.5 + 10 * (0.2 + 0.05 * 0.75)))


def test_expected_rewards_of_exact_matches_and_of_customer_r1(guesses: Guesses) -> None:
    state = State(0.2, 0.75, 0.5)
    binary = expected_rewards(state, REWARD_PRESETS["binary"], guesses)
    assert binary == pytest.approx({"terminate": 0.2, "guess": 0.3, "type": 0.1, "invented": 0.0, "first": 0.12})
    assert binary == pytest.approx(option_worth(state, guesses))
    customer = expected_rewards(state, REWARD_PRESETS["customer_r1"], guesses)
    assert customer["terminate"] == pytest.approx(1 + 0.2)
    assert customer["guess"] == pytest.approx(1 + 0.3 * 1000 - 0.7)
    assert customer["type"] == pytest.approx(1 + 0.1 * 2000)
    assert customer["invented"] == pytest.approx(0.0)


def test_a_near_miss_is_paid_as_the_reward_pays_an_action_of_that_similarity(guesses: Guesses) -> None:
    """Four of five words on both sides are 0.8; three of four 0.75."""
    for reward in (REWARD_PRESETS["shop_r1"], REWARD_PRESETS["no_dars"], REWARD_PRESETS["binary"]):
        rewards = {case.rewards for case in cases(State(0.2, 0.75, 0.5), reward, guesses)}
        click = score_action(Click(name="a b c d e"), Click(name="a b c d f"), reward).without_certainty
        typed = score_action(
            TypeAndSubmit(name="search", text="a b c d"), TypeAndSubmit(name="search", text="a b c e"), reward
        ).without_certainty
        assert any(one[OPTIONS.index("guess")] == pytest.approx(click) for one in rewards)
        assert any(one[OPTIONS.index("type")] == pytest.approx(typed) for one in rewards)


def test_cases_are_all_that_can_be(guesses: Guesses) -> None:
    for threshold in (0.0, 0.75, 1.0):
        found = cases(State(0.3, 0.6, 0.4), RewardConfig(threshold=threshold), guesses)
        assert sum(case.probability for case in found) == pytest.approx(1.0)
        assert all(case.probability >= 0 for case in found)
    assert cases(State(0.3, 0.6, 0.4), RewardConfig(), guesses)[0].probability == 0.3


def test_the_break_even_belief_is_that_of_table_1_in_closed_form(guesses: Guesses) -> None:
    """Leaving pays more than clicking iff 0.3 b > (1 - b) q (0.5 + DARS · E[similarity]), likewise for typing."""
    q, p = 0.7, 0.05
    for dars in (1.0, 1000.0):
        click = q * (0.5 + dars * (p + 0.95 * 0.1 * 0.8))
        typed = (1 - q) * (0.6 + dars * (p + 0.95 * 0.2 * 0.75))
        expected = max(click, typed) / (0.3 + max(click, typed))
        assert break_even(State(0.0, q, p), RewardConfig(dars=dars), guesses) == pytest.approx(expected)


@pytest.mark.parametrize("preset", ["shop_r1", "no_dars", "binary", "customer_r1", "customer_r1_rl_only"])
@pytest.mark.parametrize("options", [HONEST, OPTIONS])
def test_the_break_even_belief_is_where_a_search_finds_it(
    preset: str, options: tuple[str, ...], guesses: Guesses
) -> None:
    reward = REWARD_PRESETS[preset]
    for q, p in ((0.5, 0.05), (0.9, 0.6)):
        expected = break_even(State(0.0, q, p), reward, guesses, options)
        beliefs = np.linspace(0, 1, 20_001)
        paid = [expected_rewards(State(belief, q, p), reward, guesses) for belief in (0.0, 1.0)]
        of_options = {name: paid[0][name] + beliefs * (paid[1][name] - paid[0][name]) for name in options}
        others = np.max([of_options[name] for name in options if name != "terminate"], axis=0)
        first = beliefs[np.argmax(of_options["terminate"] > others)]
        assert expected == pytest.approx(first, abs=1e-4)


def test_leaving_that_is_never_paid_less_pays_from_the_start(guesses: Guesses) -> None:
    nothing_else = RewardConfig(kind="customer_r1", typing_points=0.0, click_points=0.0, click_type_points={})
    assert break_even(State(0.0, 0.5, 0.5), nothing_else, guesses) == 0.0


def test_the_scale_that_drives_out_spam_also_keeps_from_leaving_where_it_is_right(guesses: Guesses) -> None:
    """With p 0.05 who maximises the raw reward goes on until 99% sure."""
    state = State(0.0, 0.5, 0.05)
    assert break_even(state, REWARD_PRESETS["shop_r1"], guesses) > 0.99
    assert break_even(state, REWARD_PRESETS["no_dars"], guesses) < 0.75
