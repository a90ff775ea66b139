"""The reward of a reply, term by term (Shop-R1, table 1; Customer-R1, section 4.3).

score.py computes and adds the terms and names the papers' configurations. similarity.py compares texts, and matching.py
compares actions. click_types.py derives the kind of a click from its element's name. ties.py counts the steps
at which another element of the page earns as much as the logged one.
"""

from shop_env.reward.click_types import click_type_of
from shop_env.reward.score import (
    REWARD_PRESETS,
    RewardBreakdown,
    RewardConfig,
    best_breakdown,
    reward_preset,
    score_reply,
)
from shop_env.reward.similarity import rouge_l

__all__ = [
    "REWARD_PRESETS",
    "RewardBreakdown",
    "RewardConfig",
    "best_breakdown",
    "click_type_of",
    "reward_preset",
    "rouge_l",
    "score_reply",
]
