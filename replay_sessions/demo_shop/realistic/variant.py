"""One change to the shop's pages, for all visitors: what an A/B test asks about."""

from typing import Literal

import msgspec

from replay_sessions.foundation.errors import BadConfig, check_choice

Order = Literal["relevance", "price", "rating"]


class ShopVariant(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is different from the shop as it is; the defaults change nothing.

    Attributes:
        price_factor: Times every price, rounded to whole cents.
        order: Of search results that match equally well: the most bought first, the cheapest, or the best rated.
        badges: Whether the most bought article of a kind has a badge.
        ratings: Whether stars and the number of reviews are shown, and reviews can be read.
        checkout_page: One more page between the cart and the purchase.
        shipping_cents: What is added in the cart; 0 is written as free shipping.
        wording: Another wording of headings and buttons, with the same names and the same content (a placebo).
    """

    price_factor: float = 1.0
    order: Order = "relevance"
    badges: bool = True
    ratings: bool = True
    checkout_page: bool = False
    shipping_cents: int = 590
    wording: Literal["plain", "warm"] = "plain"

    def __post_init__(self) -> None:
        if not 0 < self.price_factor < 100:
            raise BadConfig(f"variant.price_factor is {self.price_factor}; it must lie between 0 and 100.")
        check_choice("variant.order", self.order, Order)
        if self.shipping_cents < 0:
            raise BadConfig(f"variant.shipping_cents is {self.shipping_cents}; it must not be below 0.")


CONTROL = ShopVariant()
