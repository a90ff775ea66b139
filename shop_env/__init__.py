"""The environment: replays logged sessions and scores replies. Importing it registers its envs with Gymnasium.

    ShopR1-v0      replays logged sessions (env.py)        ShopLive-v0    runs the demo shop itself (live.py)

session ─► observation (context) ─► prompts ─► an agent ─► replies ─► reward ─► metrics
"""

import gymnasium

from shop_env.observation import ContextConfig, Observation, PastStep, observe
from shop_env.prompts import Message, PromptConfig, render_prompt
from shop_env.replies import Extraction, MalformedReply, Reply, format_reply, parse_reply

__all__ = [
    "ContextConfig",
    "Extraction",
    "MalformedReply",
    "Message",
    "Observation",
    "PastStep",
    "PromptConfig",
    "Reply",
    "format_reply",
    "observe",
    "parse_reply",
    "render_prompt",
]

gymnasium.register(
    id="ShopR1-v0",
    entry_point="shop_env.env:RegisteredReplayEnv",
    # ReplayEnv checks the order of calls itself, and the tests check the env; the wrappers would take 10% of a step.
    order_enforce=False,
    disable_env_checker=True,
)
gymnasium.register(
    id="ShopLive-v0",
    entry_point="shop_env.live:LiveEnv",
    max_episode_steps=20,  # some agents never terminate; the shop's own shoppers do after at most 11 actions
    order_enforce=False,
    disable_env_checker=True,
)
