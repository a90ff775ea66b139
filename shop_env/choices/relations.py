"""Relations of a page's choices to the session so far, from the session's own past alone.

elements of a page ─► the list and place of each (lists.py) ─► with the past clicks: RELATIONS of each click
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from math import log1p, nan
from typing import Any, NamedTuple

from shop_env.lists import Place, list_of

RELATIONS = (
    "place", "length of the list", "distance from the last click", "distance from the farthest click", "last movement",
    "times opened", "opened last", "last click is on the page", "clicks on the list", "price, log",
)  # fmt: skip
PLACE, LENGTH, DISTANCE, FROM_FARTHEST, MOVEMENT, TIMES, IS_LAST, IS_SAME_PAGE, CLICKS, PRICE = range(len(RELATIONS))
NO_RELATIONS = (nan,) * len(RELATIONS)  # of a choice that is no click


class _Trail(NamedTuple):
    """The past clicks on a list."""

    last: float = nan
    farthest: float = nan
    movement: float = nan
    clicks: int = 0
    is_same_page: bool = False
    last_name: str = ""


def relate_clicks(
    names: Sequence[str],
    places: Mapping[str, Place],
    past: Sequence[Mapping[str, Any]],
    prices: Mapping[str, float],
) -> list[tuple[float, ...]]:
    """Computes the relations of clicks on these names, one tuple (RELATIONS) for each; nan is unknown.

    Args:
        places: The places of all elements of the page.
        past: The actions so far, oldest first.
        prices: The prices of the elements that have one.
    """
    clicked = [str(action.get("name", "")) for action in past if action.get("type") == "click"]
    times, trails = Counter(clicked), _read_trails(places, clicked)
    lengths = Counter(place.list_name for place in places.values())
    relations: list[tuple[float, ...]] = []
    for name in names:
        list_name, rank = places[name]
        trail = trails.get(list_name, _Trail())
        relations.append((
            rank, lengths[list_name], rank - trail.last, rank - trail.farthest, trail.movement, times[name],
            name == trail.last_name, trail.is_same_page, trail.clicks, log1p(prices[name]) if name in prices else nan,
        ))  # fmt: skip
    return relations


def _read_trails(places: Mapping[str, Place], clicked: Sequence[str]) -> dict[str, _Trail]:
    """Returns the trail of each list of the page that was clicked on."""
    by_list: dict[str, list[str]] = {}
    for name in clicked:
        by_list.setdefault(list_of(name), []).append(name)
    lists = {place.list_name for place in places.values()}
    trails = {}
    for list_name, names in by_list.items():
        ranks = [places[name].rank for name in names if name in places]
        if list_name in lists and ranks:
            is_here = [name in places for name in names[-2:]]
            moved = len(is_here) == 2 and all(is_here)
            trails[list_name] = _Trail(
                ranks[-1], max(ranks), ranks[-1] - ranks[-2] if moved else nan, len(ranks), is_here[-1], names[-1]
            )
    return trails
