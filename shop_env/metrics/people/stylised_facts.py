"""What is known of how people shop, as shares that any sessions have: those of a log, answered ones, free-running ones.

| figure | formula | range | source |
|---|---|---|---|
| `filter_use` | share of sessions with a click on a filter | 0–1 | Lu et al. 2025: agents overuse filters |
| `reformulation_rate` | share of searches that change the search before them in the session | 0–1 | Lu et al. 2025: agents do not try again |
| `back_rate` | share of clicks on an element that leads back, by its name | 0–1 | of this project |
| `cart_removals` | share of sessions in which something is taken out of the cart, by the element's name | 0–1 | of this project |
| `mean_clicked_rank` | mean place, among the page's products, of the product that is clicked | ≥ 1 | Joachims et al. 2005 |

The rank-click curve is the share of product clicks on each place. What a log does not hold (pages without products, a
browser's own back button) is not counted; a figure without anything to count is None. Compared by their differences, and
ranks by the Wasserstein-1 distance of what was clicked.
"""  # noqa: E501 - a table row is a line

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import pairwise

from replay_sessions.elements import find_elements
from replay_sessions.foundation.records import Record
from shop_env.reward.similarity import click_type_of

Doing = Mapping[str, str] | None  # an action as a reply carries it; None: nothing that could be read
LEADS_BACK = ("back", "previous", "return_to")
TAKES_OUT = ("remove", "delete")


class StylisedFacts(Record):
    """The figures at the head of this module."""

    filter_use: float | None
    reformulation_rate: float | None
    back_rate: float | None
    cart_removals: float | None
    mean_clicked_rank: float | None


def facts_of_sessions(sessions: Sequence[Sequence[Doing]], ranks: Sequence[int] = ()) -> StylisedFacts:
    """The facts of sessions, each a sequence of actions.

    Args:
        ranks: Of each product that was clicked (product_ranks).
    """
    clicks = [[action["name"] for action in of if action and action["type"] == "click"] for of in sessions]
    searches = [[action["text"] for action in of if action and action["type"] == "type_and_submit"] for of in sessions]
    changed = sum(_folded(search) != _folded(other) for of in searches for search, other in pairwise(of))
    names = [name for of in clicks for name in of]
    return StylisedFacts(
        filter_use=_share(sum(any(click_type_of(name) == "filter" for name in of) for of in clicks), len(sessions)),
        reformulation_rate=_share(changed, sum(map(len, searches))),
        back_rate=_share(sum(_last_part(name).startswith(LEADS_BACK) for name in names), len(names)),
        cart_removals=_share(
            sum(any(_last_part(name).startswith(TAKES_OUT) for name in of) for of in clicks), len(sessions)
        ),
        mean_clicked_rank=sum(ranks) / len(ranks) if ranks else None,
    )


def product_ranks(page: str) -> dict[str, int]:
    """The place of each link to a product among the products of the page, 1 for the first.

    >>> product_ranks('<a name="results.cup.view_product">cup</a><a name="results.pan.view_product">pan</a>')
    {'results.cup.view_product': 1, 'results.pan.view_product': 2}
    """
    links = [element.name for element in find_elements(page) if click_type_of(element.name) == "product_link"]
    ranks_of = {product: rank for rank, product in enumerate(dict.fromkeys(map(_product, links)), start=1)}
    return {link: ranks_of[_product(link)] for link in links}


def rank_click_curve(ranks: Sequence[int], positions: int = 10) -> list[float]:
    """The share of product clicks on each of the first places."""
    counts = Counter(ranks)
    return [counts[rank] / len(ranks) if ranks else 0.0 for rank in range(1, positions + 1)]


def _product(link: str) -> str:
    """A product's image and title are two links of one product."""
    return link.rpartition(".")[0]


def _last_part(name: str) -> str:
    return name.lower().rpartition(".")[2]


def _folded(text: str) -> str:
    return " ".join(text.casefold().split())


def _share(count: int, of: int) -> float | None:
    return count / of if of else None
