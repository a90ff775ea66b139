"""A demo shop that is a shop: a fixed catalogue, search that ranks what was typed, shoppers who weigh what they see.

    articles ─► search ─► shop (which page follows an action) ─► pages
    goals ─► shopper (utility of what a page shows ─► how likely each action is) ─► sessions

`RealisticShop` and `action_probabilities` have the shape of the small shop's; `ShopVariant` changes one thing about all
pages, such as prices or their order, and nothing about the shoppers. The shop itself draws nothing: two visits with the
same choices differ only by the variant.
"""

from replay_sessions.demo_shop.realistic.goals import Need, draw_need, draw_persona
from replay_sessions.demo_shop.realistic.shop import RealisticShop
from replay_sessions.demo_shop.realistic.shopper import action_probabilities, is_realistic, rationale_for
from replay_sessions.demo_shop.realistic.variant import CONTROL, ShopVariant

__all__ = [
    "CONTROL",
    "Need",
    "RealisticShop",
    "ShopVariant",
    "action_probabilities",
    "draw_need",
    "draw_persona",
    "is_realistic",
    "rationale_for",
]
