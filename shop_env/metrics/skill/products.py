"""Which product is clicked, and who will buy: what is left when it does not matter by which link.

    hit@k     share of logged clicks on a product where it is among the agent's k likeliest products of that page;
              a product's probability is the sum over its links, of equals each has the worst rank, and one
              without probability is never hit                                       range 0–1
    will buy  average precision of telling sessions that end in a purchase from all others, after t steps:
              Σ_n (R_n - R_n-1) P_n over the sessions by falling score    range 0–1, the share that buys by chance

A product is known by its ASIN where its name holds one, else by the part of the name before the last, as
`search_results.red_kettle.view_product`. The score of a session after t steps is the mean over these of how likely the
agent holds a click on a purchase (or how often it did so, without probabilities); the purchase itself is no part of it.
"""

import re
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from shop_env.click_types import click_type_of

_ASIN = re.compile(r"(?<![a-z0-9])b0[a-z0-9]{8}(?![a-z0-9])", re.IGNORECASE)


def product_of(name: str) -> str | None:
    """The product that a link leads to; None for what is no link to one.

    >>> product_of("search_results.red_kettle.view_product"), product_of("nav_bar.home")
    ('red_kettle', None)
    """
    if click_type_of(name) != "product_link":
        return None
    asin = _ASIN.search(name)
    return asin.group().upper() if asin else name.lower().rpartition(".")[0].rpartition(".")[2] or None


def product_hits(probabilities: Sequence[Mapping[str, float]], logged: Sequence[str], k: int) -> float | None:
    """The share of clicked products that are among the k likeliest; None where no product was clicked.

    Args:
        probabilities: For each logged click how likely the agent holds a click on each name of the page; 0 where it
            names it not.
        logged: The names that were clicked.
    """
    hits = []
    for held, name in zip(probabilities, logged, strict=True):
        product = product_of(name)
        if product is None:
            continue
        of_products: dict[str, float] = {product: 0.0}
        for other, probability in held.items():
            if (named := product_of(other)) is not None:
                of_products[named] = of_products.get(named, 0.0) + probability
        rank = sum(value >= of_products[product] for value in of_products.values())
        hits.append(of_products[product] > 0 and rank <= k)
    return sum(hits) / len(hits) if hits else None


def will_buy(scores: Sequence[Sequence[float]], bought: Sequence[bool]) -> list[float | None]:
    """After 1, 2, … steps the average precision over sessions that then go on; None where all or none of them buys.

    Args:
        scores: For each session, at each of its steps, how likely the agent holds a purchase.
        bought: Whether its last step is one.
    """
    precisions: list[float | None] = []
    for steps in range(1, max(map(len, scores), default=0)):
        going_on = [index for index, own in enumerate(scores) if len(own) > steps]
        held = np.array([np.mean(scores[index][:steps]) for index in going_on])
        labels = np.array([bought[index] for index in going_on], dtype=np.bool_)
        precisions.append(average_precision(held, labels) if 0 < labels.sum() < len(labels) else None)
    return precisions


def average_precision(scores: NDArray[np.float64], labels: NDArray[np.bool_]) -> float:
    """The area under the curve of precision and recall, in steps; equal scores are one threshold.

    >>> average_precision(np.array([0.9, 0.8, 0.3]), np.array([True, False, True]))  # 1/2 · 1 + 1/2 · 2/3
    0.8333333333333333
    """
    order = np.argsort(-scores, kind="stable")
    last_of_equals = np.append(np.diff(scores[order]) != 0, True)
    right = np.cumsum(labels[order])[last_of_equals]
    named = (np.arange(len(labels)) + 1)[last_of_equals]
    gained = np.diff(right, prepend=0) / labels.sum()
    return float(np.sum(gained * right / named))
