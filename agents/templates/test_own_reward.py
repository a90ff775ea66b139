"""Tests the reward through the functions that the environment, training and leaderboards use."""

from pathlib import Path

from replay_sessions import Click, Terminate
from shop_env import format_reply
from shop_env.reward import reward_preset, score_reply

REWARD = reward_preset(f"{Path(__file__).with_name('own_reward.py')}:reward")


def test_what_the_shopper_did_earns_most() -> None:
    logged = Click(name="cart")
    replies = [format_reply("", logged), format_reply("", Click(name="home")), format_reply("", Terminate())]
    assert [score_reply(reply, logged, REWARD).total for reply in replies] == [1.0, 0.2, 0.0]


def test_a_reply_that_cannot_be_read_earns_nothing() -> None:
    assert score_reply("I would click the cart.", Click(name="cart"), REWARD).total == 0.0
