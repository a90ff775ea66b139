"""The options of the A/B lab: agents, changes of the shop, numbers of visits."""

from collections.abc import Mapping
from pathlib import Path

from replay_sessions.demo_shop.realistic import CONTROL, ShopVariant, UtilityName
from replay_sessions.foundation.errors import BadConfig, check_at_least, did_you_mean
from replay_sessions.foundation.records import Config

A = "A"  # the shop as it is
AGAIN = "A_again"  # the shop as it is, visited with other random numbers
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
PLACEBOS = ("placebo", AGAIN)  # variants without a true effect


class LabConfig(Config):
    """Predicts with agents what changes of the demo shop would do, where the true effect is known.

    Attributes:
        agents: Agents that predict, as in a leaderboard. Those that learn get logs of the shop as it is.
        out: The folder for ab.json, ab.md, logs and visits.
        variants: Changes to test, separated by spaces or commas: prices_up, prices_down, cheapest_first,
            best_rated_first, no_badges, no_ratings, checkout_page, free_shipping, placebo, A_again. If empty, all.
        visits: Number of simulated visits to each variant, four per shopper.
        utility: The shoppers' utility. `own` is the demo shop's. `reference` has another form (a usual price,
            thresholds of stars, a fold, a favourite brand). With `hidden_quality`, dearer goods are better in a way
            that no page shows.
        seeds: Seeds of the populations of shoppers; the visits of all populations are pooled.
        true_visits: Number of visits of the known shoppers that measure the true effect.
        logs: Number of sessions of the shop as it is that agents learn from.
        max_steps: The maximum number of replies in one visit.
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
        """The names of the variants that are compared with A."""
        names = [name for text in self.variants for name in text.split(",") if name]
        return [name for name in dict.fromkeys(names or VARIANTS) if name != A]
