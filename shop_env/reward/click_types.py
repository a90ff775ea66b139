"""Derives OPeRA's 13 kinds of click from the name of the clicked element.

A log may give the kind of each click, as OPeRA does. If it does not, or if a predicted click is not the logged one, the
kind follows from the name. Customer-R1 weighs rewards by the kind (section 4.3) and reports fine type accuracy ("we
first calculate the click subtype from the predicted target element", section 4.2). Its rules are unpublished. We wrote
ours (click_types.toml) from 407 labelled clicks of 7 of OPeRA's test users, and from the element names of OPeRA's
published recorder. Every run on a log with kinds reports how often the rules agree with them (`click_rule_agreement`).
"""

from functools import lru_cache
from importlib.resources import files

import msgspec

_TYPES = """
review search product_option product_link other purchase nav_bar page_related quantity suggested_term cart_side_bar
cart_page_select filter"""
CLICK_TYPES = tuple(_TYPES.split())


class _Rule(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A rule of click_types.toml: it matches a name that fulfils all of its conditions."""

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
    """Returns the kind of a click on the element called `name`.

    >>> click_type_of("4_stars_and_above.tiger_jbv_s18u_10_cup_rice_cooker_white.product_title")
    'product_link'
    >>> click_type_of("refinements.customer_reviews.4_stars_up")
    'filter'
    """
    parts = name.lower().replace(" ", "_").split(".")
    return next((rule.type for rule in _RULES if rule.matches(parts)), "other")
