"""A demo shop that is a shop: a fixed catalogue, search that ranks what was typed, shoppers who weigh what they see.

    articles ─► search ─► shop (which page follows an action) ─► pages
    goals ─► shopper (utility of what a page shows ─► how likely each action is) ─► sessions

`RealisticShop` and `action_options` have the shape of the small shop's; `ShopVariant` changes one thing about all
pages, such as prices or their order, and nothing about the shoppers. The shop itself draws nothing: two visits with the
same choices differ only by the variant.
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
