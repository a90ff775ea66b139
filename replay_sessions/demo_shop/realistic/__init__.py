"""Simulates a demo shop with a fixed catalogue, ranked search, and shoppers who weigh what they see.

    articles ─► search ─► shop (which page follows an action) ─► pages
    goals ─► shopper (utility of what a page shows ─► how likely each action is) ─► sessions

`RealisticShop` and `action_options` have the same interface as in the small shop. `ShopVariant` changes all pages in
one respect, such as the prices or the order, and leaves the shoppers as they are. The shop itself is deterministic: two
visits with the same choices differ only by the variant.
"""

from replay_sessions.demo_shop.realistic.articles import CONTROL, ShopVariant
from replay_sessions.demo_shop.realistic.shop import RealisticShop
from replay_sessions.demo_shop.realistic.shopper import PERSONAS, Need, action_options, draw_need, rationale_for
from replay_sessions.demo_shop.realistic.utilities import UtilityName

__all__ = [
    "CONTROL",
    "PERSONAS",
    "Need",
    "RealisticShop",
    "ShopVariant",
    "UtilityName",
    "action_options",
    "draw_need",
    "rationale_for",
]
