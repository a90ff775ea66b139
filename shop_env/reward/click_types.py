"""The 13 kinds of click of OPeRA, by the name of the clicked element.

A log may give the kind of each click (OPeRA does); where it does not, and for a predicted click that is not the logged
one, the kind follows from the name: Customer-R1 weighs rewards by it (section 4.3) and reports fine type accuracy ("we
first calculate the click subtype from the predicted target element", section 4.2). Its rules are unpublished. Ours
(click_types.toml) were written beside 407 labelled clicks of 7 of OPeRA's test users, and the element names of OPeRA's
published recorder. How often they agree with a log's own kinds is a metric of every run on a log that has them
(`click_rule_agreement`).
"""

from functools import lru_cache
from importlib.resources import files

import msgspec

CLICK_TYPES = (
    "review",
    "search",
    "product_option",
    "product_link",
    "other",
    "purchase",
    "nav_bar",
    "page_related",
    "quantity",
    "suggested_term",
    "cart_side_bar",
    "cart_page_select",
    "filter",
)


class _Rule(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A rule of click_types.toml: all conditions that it has must hold."""

    type: str
    first: frozenset[str] = frozenset()
    last: frozenset[str] = frozenset()
    any: frozenset[str] = frozenset()

    def matches(self, parts: list[str]) -> bool:
        conditions = ((self.first, parts[:1]), (self.last, parts[-1:]), (self.any, parts))
        return all(words.intersection(compared) for words, compared in conditions if words)


class _Rules(msgspec.Struct, frozen=True):
    rules: list[_Rule]


_RULES = msgspec.toml.decode((files("shop_env.reward") / "click_types.toml").read_bytes(), type=_Rules).rules


@lru_cache(maxsize=65536)
def click_type_of(name: str) -> str:
    """Returns the kind of click that clicking the element called `name` is.

    >>> click_type_of("4_stars_and_above.tiger_jbv_s18u_10_cup_rice_cooker_white.product_title")
    'product_link'
    >>> click_type_of("refinements.customer_reviews.4_stars_up")
    'filter'
    """
    parts = name.lower().replace(" ", "_").split(".")
    return next((rule.type for rule in _RULES if rule.matches(parts)), "other")
