"""All changes that names are measured under: those of a page's source and those that a shop makes."""

from benchmarks.pages.shop_changes import SHOP_CHANGES
from benchmarks.pages.source_changes import SOURCE_CHANGES
from benchmarks.pages.visit import Change

__all__ = ["CHANGES"]

CHANGES: dict[str, Change] = {**SOURCE_CHANGES, **SHOP_CHANGES}
