"""The embedded default: two seeded shops and shoppers with personas; they need no download.

    catalogue ─► shop (which page follows an action) ─► pages
    visits (how likely each action of a shopper is, and why) ─► generate_sessions ─► Session

`small` is what a tiny model can learn; `realistic/` is a shop with fixed prices, search, and shoppers who compare. The
policy of the shoppers is known in both, so the best achievable accuracy is too: see `action_probabilities`.
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
