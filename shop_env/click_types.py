"""The 13 kinds of click of OPeRA, told from the name of the clicked element.

Used where the log gives no `click_type` or where the click is a predicted one: Customer-R1 weighs rewards by it
(section 4.3) and reports fine-grained type accuracy ("we first calculate the click subtype from the predicted target
element", section 4.2). Its rules are unpublished; these read the hierarchical names of OPeRA, ShopCART and the demo
shop, first match first, and call the rest `other`. How often they agree with a log's own kinds is a figure of every run
on a log that has them (`click_rule_agreement`): a predicted click that is not the logged one is judged by the rule, the
logged one by the log.
"""

from functools import lru_cache
from typing import Literal

__all__ = ["CLICK_TYPES", "click_type_of"]

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

# First match first. Names are compared part by part (between dots), so that what a product's own title says
# (`search_results.cart_with_size_chart.view_product`) does not decide; `place` tells which part is looked at.
_RULES: tuple[tuple[str, Literal["first", "last", "any"], frozenset[str]], ...] = (
    ("cart_side_bar", "first", frozenset({"cart_side_bar", "cart_sidebar"})),
    ("filter", "first", frozenset({"refinements", "refinement", "filters", "filter", "sort", "sort_by"})),
    ("suggested_term", "first", frozenset({"suggested_terms", "suggested_term", "search_suggestions", "autocomplete"})),
    ("page_related", "first", frozenset({"pagination", "page", "next_page", "previous_page", "next_>", "<_prev"})),
    ("product_link", "last", frozenset({"view_product", "product_title", "product_link", "product_image"})),
    (
        "purchase",
        "any",
        frozenset(
            {"buy_now", "add_to_cart", "checkout", "proceed_to_checkout", "place_order", "purchase", "subscribe"}
        ),
    ),
    ("quantity", "any", frozenset({"quantity", "qty", "quantity_selector"})),
    ("cart_page_select", "last", frozenset({"select", "select_all", "deselect_all", "select_item", "item_checkbox"})),
    ("review", "any", frozenset({"reviews", "review", "customer_reviews", "product_reviews", "see_all_reviews"})),
    (
        "product_option",
        "any",
        frozenset({"options", "option", "product_options", "variations", "size", "color", "style"}),
    ),
    (
        "search",
        "last",
        frozenset({"search", "search_input", "search_button", "search_bar", "search_box", "search_text"}),
    ),
    ("nav_bar", "first", frozenset({"nav_bar", "nav", "navigation", "departments", "home", "homepage"})),
)


@lru_cache(maxsize=65536)
def click_type_of(name: str) -> str:
    """The kind of click that clicking the element called `name` is.

    >>> click_type_of("4_stars_and_above.tiger_jbv_s18u_10_cup_rice_cooker_white.product_title")
    'product_link'
    >>> click_type_of("refinements.customer_reviews.4_stars_up")
    'filter'
    """
    parts = name.lower().replace(" ", "_").split(".")
    looked_at = {"first": parts[:1], "last": parts[-1:], "any": parts}
    for click_type, place, words in _RULES:
        if not words.isdisjoint(looked_at[place]):
            return click_type
    return "other"
