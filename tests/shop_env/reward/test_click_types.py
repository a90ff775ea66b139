"""Click subtypes from element names."""

import csv

import pytest

from shop_env.reward.click_types import CLICK_TYPES, click_type_of


@pytest.mark.parametrize(
    ("name", "click_type"),
    [
        ("4_stars_and_above.tiger_jbv_s18u_10_cup_rice_cooker_white.product_title", "product_link"),
        ("search_results.cart_with_reviews_and_size.view_product", "product_link"),
        ("refinements.customer_reviews.4_stars__up", "filter"),
        ("product_options.count.drop_down_list.next", "product_option"),
        ("search_input", "search"),
        ("pagination.2", "page_related"),
        ("product.options.size.small", "product_option"),
        ("product.reviews", "review"),
        ("search_results.red_kettle.product_rating", "review"),
        ("product.buy_now", "purchase"),
        ("cart.checkout", "purchase"),
        ("Buy Now", "purchase"),
        ("Next >", "page_related"),
        ("cart_side_bar.red_kettle.decrease_quantity_by_one", "quantity"),
        ("cart_side_bar.go_to_cart", "cart_side_bar"),
        ("active_item_list.red_kettle.checkbox", "cart_page_select"),
        ("coupon.checkbox", "other"),
        ("refinements.reviews_refinements.4_stars_up", "review"),
        ("picks_for_you.carousel_next_slide", "page_related"),
        ("cart.red_kettle.select", "cart_page_select"),
        ("active_item_list.red_kettle.quantity_drop_down_list", "quantity"),
        ("suggested_terms.red_kettle", "suggested_term"),
        ("nav_bar.cart", "nav_bar"),
        ("more_to_consider.next_level_shirt", "other"),
        ("", "other"),
    ],
)  # fmt: skip
def test_the_kind_of_click_is_told_from_the_name(name, click_type):
    assert click_type in CLICK_TYPES
    assert click_type_of(name) == click_type


def test_the_rules_agree_with_opera_s_own_kinds_of_click(shared_data):
    """The labels that the rules were written beside: 407 clicks of 7 test users."""
    labels = shared_data / "opera" / "test_actions_part1.tsv"
    with labels.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
    clicks = [row for row in rows if row["gt_type"] == "click"]
    wrong = [row["gt_name"] for row in clicks if click_type_of(row["gt_name"]) != row["gt_click_type"]]
    assert len(clicks) > 400
    assert len(wrong) <= 0.01 * len(clicks), wrong
