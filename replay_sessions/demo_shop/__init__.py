"""The default source of sessions: two seeded shops and simulated shoppers with personas; no download is needed.

    catalogue ─► shop (which page follows an action) ─► pages
    visits (how likely each action of a shopper is, and why) ─► generate_sessions ─► Session

A tiny model can learn the small shop. `realistic/` is a shop with fixed prices, search, and shoppers who compare. The
shoppers' policy is known in both shops, and so is the best achievable accuracy: see `action_probabilities`.
"""

from replay_sessions.demo_shop.realistic import ShopVariant, UtilityName
from replay_sessions.demo_shop.shop import DemoShop
from replay_sessions.demo_shop.visits import (
    SESSIONS_PER_USER,
    SOURCE,
    ShopVisit,
    action_probabilities,
    generate_sessions,
    rationale_for,
)

__all__ = [
    "SESSIONS_PER_USER",
    "SOURCE",
    "DemoShop",
    "ShopVariant",
    "ShopVisit",
    "UtilityName",
    "action_probabilities",
    "generate_sessions",
    "rationale_for",
]
