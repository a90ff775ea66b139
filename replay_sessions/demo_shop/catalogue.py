"""Defines the goods of the demo shops, and loads the phrases (phrases.toml) and the small shop's policy (policy.toml).

Two products of one page differ in brand *and* style: their element names then share at most five of seven words
(ROUGE-L 0.71). So a wrong product stays under the reward's threshold of 0.75 (Shop-R1, section 3).
"""

import tomllib
from importlib.resources import files
from itertools import product
from random import Random
from typing import NamedTuple

from replay_sessions.schema import Persona

PHRASES, POLICY = (
    tomllib.loads((files(__package__) / f"{name}.toml").read_text(encoding="utf-8")) for name in ("phrases", "policy")
)


def personas(shop: str) -> tuple[Persona, ...]:
    """Builds the persona of each combination of traits; a model reads its text."""
    traits: dict[str, dict[str, str]] = PHRASES[shop]["traits"]
    return tuple(
        Persona(
            text="This shopper {}, {} and {}.".format(*map(dict.__getitem__, traits.values(), values)),
            traits=dict(zip(traits, values, strict=True)),
        )
        for values in product(*traits.values())
    )


def get_reason(shop: str, name: str) -> str:
    """Returns the reason for which a shopper clicks on an element, by the beginning of its name."""
    reasons: dict[str, str] = PHRASES[shop]["reasons"]
    return next((reason for start, reason in reasons.items() if name.startswith(start)), "I look around.")


BRANDS: list[str] = PHRASES["brands"]
STYLES: list[str] = PHRASES["styles"]
SIZES: list[str] = PHRASES["sizes"]
DEPARTMENTS: dict[str, list[str]] = PHRASES["departments"]
DEPARTMENT_OF = {noun: department for department, nouns in DEPARTMENTS.items() for noun in nouns}
NOUNS = list(DEPARTMENT_OF)


class Product(NamedTuple):
    """One article: "_".join(product) in element names, " ".join(product) in texts."""

    brand: str
    style: str
    noun: str


def draw_other_products(wanted: Product, count: int, random: Random) -> list[Product]:
    """Draws `count` products with the noun of `wanted`; all of them and `wanted` differ in brand and in style."""
    brands = random.sample([brand for brand in BRANDS if brand != wanted.brand], count)
    styles = random.sample([style for style in STYLES if style != wanted.style], count)
    return [Product(brand, style, wanted.noun) for brand, style in zip(brands, styles, strict=True)]
