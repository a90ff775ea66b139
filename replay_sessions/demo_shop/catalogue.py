"""What the demo shops sell: invented brands, styles, nouns and sizes, and the products that combine them.

Two products that may stand on one page differ in brand *and* style: their element names then share at most five of
seven words, ROUGE-L 0.71, so that a wrong product stays under the reward's threshold of 0.75 (Shop-R1, section 3).
"""

from random import Random
from typing import NamedTuple

from replay_sessions.demo_shop.phrases import PHRASES

BRANDS: list[str] = PHRASES["brands"]
STYLES: list[str] = PHRASES["styles"]
SIZES: list[str] = PHRASES["sizes"]
DEPARTMENTS: dict[str, list[str]] = PHRASES["departments"]
DEPARTMENT_OF = {noun: department for department, nouns in DEPARTMENTS.items() for noun in nouns}
NOUNS = list(DEPARTMENT_OF)


class Product(NamedTuple):
    """One article; element names call it "_".join(product), pages " ".join(product)."""

    brand: str
    style: str
    noun: str


def other_products(wanted: Product, count: int, random: Random) -> list[Product]:
    """`count` products of the same noun; no two of them, nor any and `wanted`, share a brand or a style."""
    brands = random.sample([brand for brand in BRANDS if brand != wanted.brand], count)
    styles = random.sample([style for style in STYLES if style != wanted.style], count)
    return [Product(brand, style, wanted.noun) for brand, style in zip(brands, styles, strict=True)]
