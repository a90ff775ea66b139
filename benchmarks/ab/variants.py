"""The changes that the lab asks about, by name."""

from collections.abc import Mapping

from replay_sessions.demo_shop.realistic import CONTROL, ShopVariant

__all__ = ["AGAIN", "PLACEBOS", "VARIANTS", "A"]

A = "A"  # the shop as it is
AGAIN = "A_again"  # the shop as it is, walked through with other random numbers
VARIANTS: Mapping[str, ShopVariant] = {
    A: CONTROL,
    "prices_up": ShopVariant(price_factor=1.3),
    "prices_down": ShopVariant(price_factor=0.8),
    "cheapest_first": ShopVariant(order="price"),
    "best_rated_first": ShopVariant(order="rating"),
    "no_badges": ShopVariant(badges=False),
    "no_ratings": ShopVariant(ratings=False),
    "checkout_page": ShopVariant(checkout_page=True),
    "free_shipping": ShopVariant(shipping_cents=0),
    "placebo": ShopVariant(wording="warm"),
    AGAIN: CONTROL,
}
PLACEBOS = ("placebo", AGAIN)  # whose true effect is none
