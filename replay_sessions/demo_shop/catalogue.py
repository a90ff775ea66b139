"""What the demo shop sells: invented brands, styles, nouns and sizes, and the products made of them.

Two products that may stand on one page differ in brand *and* style: their element names then share at most five of
seven words, ROUGE-L 0.71, so that a wrong product stays under the reward's threshold of 0.75 (Shop-R1, section 3).
"""

from dataclasses import dataclass
from random import Random

__all__ = ["BRANDS", "DEPARTMENTS", "NOUNS", "SIZES", "STYLES", "Product", "department_of", "other_products"]


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


BRANDS = _words(
    "altavo brimla cortena dunvar elmora fendal gostra havelin istrano jorvik kestrel lumaro mirova nordal "
    "ostera pelgrim quarto rivella sandor tarvos ulmari veltra wendel xanthe yarrow zelkova ambrio belcanto "
    "corvina dorset"
)
STYLES = _words(
    "amber azure beige black bronze cobalt copper coral cream crimson emerald golden grey indigo ivory khaki "
    "lilac maroon mint navy olive orange pearl plum purple scarlet silver teal turquoise violet"
)
DEPARTMENTS: dict[str, tuple[str, ...]] = {
    "kitchen": _words("kettle toaster blender skillet teapot grinder"),
    "clothing": _words("jacket sweater scarf hoodie parka cardigan"),
    "outdoor": _words("tent backpack hammock lantern canteen cooler"),
    "office": _words("lamp chair desk stapler notebook shredder"),
}
NOUNS = tuple(noun for nouns in DEPARTMENTS.values() for noun in nouns)
SIZES = ("small", "medium", "large")


@dataclass(frozen=True)
class Product:
    """One article; `slug` is what element names call it."""

    brand: str
    style: str
    noun: str

    @property
    def slug(self) -> str:
        return f"{self.brand}_{self.style}_{self.noun}"

    @property
    def title(self) -> str:
        return f"{self.brand} {self.style} {self.noun}"


def department_of(noun: str) -> str:
    """The department that sells `noun`."""
    return next(department for department, nouns in DEPARTMENTS.items() if noun in nouns)


def other_products(wanted: Product, count: int, random: Random) -> list[Product]:
    """`count` products of the same noun; no two of them, nor any and `wanted`, share a brand or a style."""
    brands = random.sample([brand for brand in BRANDS if brand != wanted.brand], count)
    styles = random.sample([style for style in STYLES if style != wanted.style], count)
    return [Product(brand, style, wanted.noun) for brand, style in zip(brands, styles, strict=True)]
