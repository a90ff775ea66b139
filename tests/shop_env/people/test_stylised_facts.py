"""Stylised facts counted by hand."""

import pytest
from scipy import stats

from shop_env.metrics.people import StylisedFacts, facts_of_sessions, product_ranks, rank_click_curve
from shop_env.metrics.populations import wasserstein


def click(name: str) -> dict[str, str]:
    return {"type": "click", "name": name}


def search(text: str) -> dict[str, str]:
    return {"type": "type_and_submit", "name": "q", "text": text}


LEAVE = {"type": "terminate"}


def test_facts_of_three_sessions_by_hand() -> None:
    sessions = [
        [search("kettle"), click("refinements.brand.acme"), search("red kettle"), search("Red  Kettle"), LEAVE],
        [search("pan"), click("results.pan.view_product"), click("product.back_to_results"), None],
        [click("cart.remove"), click("nav_bar.home"), LEAVE],
    ]
    assert facts_of_sessions(sessions, [1, 3]) == StylisedFacts(
        filter_use=1 / 3,
        reformulation_rate=1 / 4,  # another spelling of the same search is none
        back_rate=1 / 5,
        cart_removals=1 / 3,
        mean_clicked_rank=2,
    )


def test_what_is_not_there_is_not_counted_as_0() -> None:
    nothing = StylisedFacts(
        filter_use=None, reformulation_rate=None, back_rate=None, cart_removals=None, mean_clicked_rank=None
    )
    assert facts_of_sessions([]) == nothing
    only_left = facts_of_sessions([[LEAVE]])
    assert (only_left.filter_use, only_left.reformulation_rate, only_left.back_rate) == (0, None, None)


PAGE = """
<a name="nav_bar.home">home</a>
<div><a name="results.cup.product_image"></a><a name="results.cup.view_product">cup</a></div>
<div><a name="results.pan.product_image"></a><a name="results.pan.view_product">pan</a></div>
"""


@pytest.mark.parametrize(
    ("name", "rank"),
    [
        ("results.cup.product_image", 1),
        ("results.pan.view_product", 2),
        ("nav_bar.home", None),
        ("results.pot.view_product", None),
    ],
)
def test_the_rank_counts_products_and_not_links(name: str, rank: int | None) -> None:
    assert product_ranks(PAGE).get(name) == rank


def test_the_rank_click_curve_is_the_share_of_clicks_by_place() -> None:
    assert rank_click_curve([1, 1, 2, 12], positions=3) == [0.5, 0.25, 0]
    assert rank_click_curve([], positions=2) == [0, 0]


def test_ranks_are_compared_by_scipys_wasserstein_distance() -> None:
    ours, theirs = [1, 1, 2, 5], [1, 2, 2, 9, 10]
    assert wasserstein(ours, theirs) == pytest.approx(stats.wasserstein_distance(ours, theirs))
