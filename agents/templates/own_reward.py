"""A reward for shop-r1: what a reply earns, in place of the papers' rewards.

python -m agents.llm_grpo.train --reward own_reward.py:reward
python -m benchmarks.leaderboard --agents random,oracle --reward own_reward.py:reward --out runs/own_reward
"""

from replay_sessions import Action
from shop_env import Reply
from shop_env.reward.similarity import exact_match


def reward(reply: Reply, logged: Action) -> float:
    """The points of a reply that can be read (one that cannot earns 0) where the shopper did `logged`."""
    if exact_match(reply.action, logged):
        return 1.0
    return 0.2 if type(reply.action) is type(logged) else 0.0
