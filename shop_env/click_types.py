"""The 13 kinds of click of OPeRA, derived from the name of the clicked element.

Used where the log gives no `click_type` or where the click is a predicted one: Customer-R1 weighs rewards by it
(section 4.3) and reports fine-grained type accuracy ("we first calculate the click subtype from the predicted target
element", section 4.2). Its rules are unpublished; these read the hierarchical names of OPeRA, ShopCART and the demo
shop, first match first, and call the rest `other`. How often they agree with a log's own kinds is a figure of every run
on a log that has them (`click_rule_agreement`): a predicted click that is not the logged one is judged by the rule, the
logged one by the log.
"""

from functools import lru_cache
from importlib.resources import files
from typing import Literal

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


class _Rule(msgspec.Struct, frozen=True):
    type: str
    part: Literal["first", "last", "any"]
    words: frozenset[str]


class _Rules(msgspec.Struct, frozen=True):
    rules: list[_Rule]


_RULES = msgspec.toml.decode((files("shop_env") / "click_types.toml").read_bytes(), type=_Rules).rules


@lru_cache(maxsize=65536)
def click_type_of(name: str) -> str:
    """The kind of click that clicking the element called `name` is.

    >>> click_type_of("4_stars_and_above.tiger_jbv_s18u_10_cup_rice_cooker_white.product_title")
    'product_link'
    >>> click_type_of("refinements.customer_reviews.4_stars_up")
    'filter'
    """
    parts = name.lower().replace(" ", "_").split(".")
    compared = {"first": parts[:1], "last": parts[-1:], "any": parts}
    for rule in _RULES:
        if not rule.words.isdisjoint(compared[rule.part]):
            return rule.type
    return "other"
