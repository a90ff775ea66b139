"""The reward: what a reply earns, term by term (Shop-R1, table 1; Customer-R1, section 4.3).

similarity.py compares texts and has one function per row of the table; score.py adds the terms up and names the papers'
configurations.
"""

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
    "reward_preset",
    "rouge_l",
    "score_reply",
]
