"""Click subtypes from element names."""

import pytest

from shop_env.reward.similarity import CLICK_TYPES, click_type_of


@pytest.mark.parametrize(
    ("name", "click_type"),
    [
        ("4_stars_and_above.tiger_jbv_s18u_10_cup_rice_cooker_white.product_title", "product_link"),
        ("search_results.cart_with_reviews_and_size.view_product", "product_link"),
        ("refinements.customer_reviews.4_stars__up", "filter"),
        ("search_button", "search"),
        ("search_input", "search"),
        ("pagination.2", "page_related"),
        ("product.options.size.small", "product_option"),
        ("product.reviews", "review"),
        ("reviews.next", "review"),
        ("product.buy_now", "purchase"),
        ("cart.checkout", "purchase"),
        ("Buy Now", "purchase"),
        ("Next >", "page_related"),
        ("cart_side_bar.red_kettle.delete", "cart_side_bar"),
        ("cart.red_kettle.select", "cart_page_select"),
        ("cart.red_kettle.quantity", "quantity"),
        ("suggested_terms.red_kettle", "suggested_term"),
        ("nav_bar.cart", "nav_bar"),
        ("footer.help", "other"),
        ("", "other"),
    ],
)  # fmt: skip
def test_the_kind_of_click_is_told_from_the_name(name: str, click_type: str) -> None:
    assert click_type in CLICK_TYPES
    assert click_type_of(name) == click_type
