"""The options of the lab: which agents, which changes of the shop, how many visits."""

from collections.abc import Mapping
from pathlib import Path

from replay_sessions.demo_shop.realistic import CONTROL, ShopVariant, UtilityName
from replay_sessions.foundation.errors import BadConfig, check_at_least, did_you_mean
from replay_sessions.foundation.records import Config

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


class LabConfig(Config):
    """Predicts by agents what changes of the demo shop would do, where the true effect is known.

    Attributes:
        agents: Which agents predict, as in a leaderboard; what learns from a store is given logs of the shop as it is.
        out: The folder for ab.json, ab.md, logs and visits.
        variants: Which changes, separated by spaces or commas: prices_up, prices_down, cheapest_first,
            best_rated_first, no_badges, no_ratings, checkout_page, free_shipping, placebo, A_again; nothing: all.
        visits: So many simulated visits to each variant, four to a shopper.
        utility: What the shoppers choose by: `own`, the demo shop's; `reference`, another form (a usual price,
            thresholds of stars, a fold, a favourite brand); `hidden_quality`, where dearer goods are better in a way
            that no page tells.
        seeds: Populations of shoppers, whose visits are put together.
        true_visits: Of the known shoppers, to measure the true effect.
        logs: Sessions of the shop as it is, to learn from.
        max_steps: The most replies in one visit.
    """

    agents: tuple[str, ...]
    out: Path
    variants: tuple[str, ...] = ()
    visits: int = 400
    utility: UtilityName = "own"
    seeds: tuple[int, ...] = (0, 1, 2)
    true_visits: int = 4000
    logs: int = 4000
    max_steps: int = 25

    def __post_init__(self) -> None:
        counts = ("visits", "true_visits", "logs", "max_steps")
        check_at_least(1, **{name: getattr(self, name) for name in counts})
        for variant in self.changes:
            if variant not in VARIANTS:
                raise BadConfig(f"Unknown variant '{variant}'. {did_you_mean(variant, VARIANTS)}")
        if not self.seeds:
            raise BadConfig("--seeds names none; for example --seeds 0 1 2")

    @property
    def changes(self) -> list[str]:
        """The variants that are compared with A."""
        named = [name for text in self.variants for name in text.split(",") if name]
        return [name for name in dict.fromkeys(named or VARIANTS) if name != A]
