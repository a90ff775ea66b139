"""GRPO's expected direction against groups drawn and scaled by the trainer's own advantage function."""

import numpy as np
import pytest
import torch

from benchmarks.studies.reward_hacking.gradients import (
    GROUP_SIZE,
    MIXED,
    STARTS,
    Scale,
    collapsed,
    compositions,
    direction,
    follow,
    name_ends,
    pulls,
    weights,
)
from benchmarks.studies.reward_hacking.guesses import Guess
from benchmarks.studies.reward_hacking.states import OPTIONS, State, cases
from shop_env.reward import REWARD_PRESETS, RewardConfig
from train.grpo.loss import is_informative, scaled_advantages

Guesses = dict[str, Guess]
GROUPS = 100_000


def drawn_direction(
    policy: np.ndarray,
    state: State,
    reward: RewardConfig,
    guesses: Guesses,
    scale: str,
    *,
    bonus: np.ndarray | None = None,
    drop_equal: bool = True,
    seed: int = 0,
) -> tuple[np.ndarray, np.ndarray]:
    """The mean gradient of Σ A_i log π(o_i) / G over drawn groups, and its standard error: all by the trainer."""
    rng = np.random.default_rng(seed)
    found = cases(state, reward, guesses)
    case = rng.choice(len(found), size=GROUPS, p=[one.probability for one in found])
    options = rng.choice(len(policy), size=(GROUPS, GROUP_SIZE), p=policy)
    of_cases = np.array([one.rewards for one in found])
    action_rewards = of_cases[case[:, None], options]
    totals = action_rewards + (0 if bonus is None else bonus[options])
    advantages = scaled_advantages(torch.tensor(totals), scale).numpy()  # type: ignore[arg-type]
    if drop_equal:
        kept = np.array([is_informative(group) for group in action_rewards.tolist()])
        advantages = advantages * kept[:, None]
    gradients = np.stack(
        [(advantages * ((options == option) - policy[option])).mean(axis=1) for option in range(len(policy))], axis=1
    )
    return gradients.mean(axis=0), gradients.std(axis=0) / np.sqrt(GROUPS)


@pytest.mark.parametrize("preset", ["shop_r1", "binary", "customer_r1"])
@pytest.mark.parametrize("scale", ["group", "none"])
def test_the_expected_direction_is_that_of_drawn_groups(preset: str, scale: Scale, guesses: Guesses) -> None:
    state, reward = State(0.3, 0.6, 0.4), REWARD_PRESETS[preset]
    policy = np.array([0.5, 0.2, 0.15, 0.1, 0.05])
    exact = direction(policy[None], weights([state], reward, guesses, scale))[0]
    drawn, error = drawn_direction(policy, state, reward, guesses, scale)
    assert np.all(np.abs(exact - drawn) < 4 * error)
    assert np.all(np.abs(exact) + np.abs(drawn) > 0)
    assert exact.sum() == pytest.approx(0.0, abs=1e-9)
    assert np.linalg.norm(exact) > 10 * np.linalg.norm(error)  # the comparison can fail


@pytest.mark.parametrize("drop_equal", [True, False])
def test_self_certainty_moves_groups_of_equal_rewards_only_where_they_are_kept(
    drop_equal: bool, guesses: Guesses
) -> None:
    state, reward = State(0.3, 0.6, 0.4), REWARD_PRESETS["shop_r1"]
    policy, bonus = np.full(5, 0.2), np.array([0.005, 0.0, 0.0, 0.0, 0.0])
    of_state = weights([state], reward, guesses, "group", bonus=bonus, drop_equal=drop_equal)
    exact = direction(policy[None], of_state)[0]
    drawn, error = drawn_direction(policy, state, reward, guesses, "group", bonus=bonus, drop_equal=drop_equal)
    assert np.all(np.abs(exact - drawn) < 4 * error)
    without = direction(policy[None], weights([state], reward, guesses, "group"))[0]
    assert (exact[0] - without[0] > 0.01) == (not drop_equal)


def test_the_batch_s_deviation_only_shortens_the_direction_without_any(guesses: Guesses) -> None:
    state, reward = State(0.3, 0.6, 0.4), REWARD_PRESETS["shop_r1"]
    policy = np.array([0.5, 0.2, 0.15, 0.1, 0.05])
    exact = direction(policy[None], weights([state], reward, guesses, "none"))[0]
    drawn, error = drawn_direction(policy, state, reward, guesses, "batch")
    ratio = np.linalg.norm(exact) / np.linalg.norm(drawn)
    assert ratio > 100
    assert np.all(np.abs(exact / ratio - drawn) < 6 * error)


def test_compositions_are_all_groups_with_their_chances() -> None:
    counts, orders = compositions(len(OPTIONS), GROUP_SIZE)
    assert (counts.sum(axis=1) == GROUP_SIZE).all()
    assert len(np.unique(counts, axis=0)) == len(counts) == 495  # 12 choose 4
    policy = np.array([0.4, 0.3, 0.15, 0.1, 0.05])
    assert np.exp(counts @ np.log(policy) + orders).sum() == pytest.approx(1.0)


def test_of_two_answers_in_a_group_only_the_order_of_their_rewards_counts() -> None:
    near, far = (pulls(np.array([[0.5, reward]]), "group") for reward in (0.8, 1000.5))
    assert near == pytest.approx(far, rel=1e-4)
    near, far = (pulls(np.array([[0.5, reward]]), "none") for reward in (0.8, 1000.5))
    assert far.max() == pytest.approx(near.max() * 1000 / 0.3)


def test_a_group_of_one_answer_or_of_equal_rewards_pulls_nowhere() -> None:
    counts, _ = compositions(2, GROUP_SIZE)
    alone = (counts == GROUP_SIZE).any(axis=1)
    assert not pulls(np.array([[0.5, 1.0]]), "group")[0, alone].any()
    assert not pulls(np.array([[0.5, 0.5]]), "group").any()


def test_paths_end_where_the_expected_reward_is_highest_without_division(guesses: Guesses) -> None:
    reward = REWARD_PRESETS["no_dars"]
    states = [State(0.9, 0.5, 0.4), State(0.1, 0.9, 0.9), State(0.1, 0.1, 0.9)]
    of_states = weights(states, reward, guesses, "none")
    for start in ("uniform", "99.9% terminate", "99% typing"):
        ends = follow(STARTS[start], of_states)
        assert name_ends(ends) == ["terminate", "guess", "type"], start
        assert ends.settled.all()


def test_groups_divided_by_their_deviation_leave_spam_where_clicks_are_likelier_whatever_the_scale(
    guesses: Guesses,
) -> None:
    for preset in ("shop_r1", "no_dars"):
        of_states = weights([State(0.3, 0.9, 0.5), State(0.7, 0.9, 0.5)], REWARD_PRESETS[preset], guesses, "group")
        assert name_ends(follow(STARTS["99.9% terminate"], of_states)) == ["guess", "terminate"]


def test_the_deeper_the_spam_the_longer_it_takes_to_leave(guesses: Guesses) -> None:
    of_states = weights([State(0.2, 0.7, 0.5)], REWARD_PRESETS["shop_r1"], guesses, "group")
    times = [follow(collapsed("terminate", share), of_states).updates[0] for share in (0.9, 0.99, 0.999)]
    assert 4 * times[0] < times[1] < times[2] / 4


def test_an_end_between_answers_is_called_a_mix(guesses: Guesses) -> None:
    """Of three answers that are right about equally often (0.2, 0.24, 0.24) none drives out the others."""
    of_states = weights([State(0.2, 0.505, 0.6), State(0.2, 0.6, 0.9)], REWARD_PRESETS["binary"], guesses, "group")
    ends = follow(STARTS["uniform"], of_states)
    assert name_ends(ends) == [MIXED, "guess"]
    assert ends.policies[0, :3].min() > 0.05
