"""A reward for shop-r1, in place of the papers' rewards.

shop-r1 train --reward own_reward.py:reward
shop-r1 rank --agents random,oracle --reward own_reward.py:reward --out boards/own_reward
"""

from replay_sessions import Action
from shop_env import Reply
from shop_env.reward.matching import exact_match


def reward(reply: Reply, logged: Action) -> float:
    """Returns the reward of a reply, given the shopper's action `logged`; a malformed reply gets 0 without this."""
    if exact_match(reply.action, logged):
        return 1.0
    return 0.2 if type(reply.action) is type(logged) else 0.0
