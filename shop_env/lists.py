"""Reads a page's elements as lists, such as the products of a result page, with a place for each element.

Elements whose names differ in their inner parts alone are a *list* (`results.*.view_product`). People go on in a list
from where they last clicked, mostly forwards.
"""

from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from replay_sessions.elements import Element


class Place(NamedTuple):
    """The place of an element in its list on a page, from 0."""

    list_name: str
    rank: int


@lru_cache(maxsize=65_536)
def list_of(name: str) -> str:
    """Returns the name of the list that an element belongs to.

    >>> list_of("results.kettle.view_product"), list_of("menu.cart"), list_of("help")
    ('results.*.view_product', 'menu.*', '*')
    """
    first, *inner = name.split(".")
    return f"{first}.*.{inner[-1]}" if len(inner) > 1 else f"{first}.*" if inner else "*"


def read_places(elements: Sequence[Element]) -> dict[str, Place]:
    """Returns the place of each element by its name."""
    lengths = Counter[str]()
    places = {}
    for element in elements:
        name = list_of(element.name)
        places[element.name] = Place(name, lengths[name])
        lengths[name] += 1
    return places
