"""What an element's tag, its class attribute and the place where it stands decide: looked up once for all of it.

A page has far more elements than different ones, and the pages of a shop share theirs; so a table is kept for the next
page that is styled by the same sheets.
"""

from collections.abc import Mapping

from replay_sessions.simplify.recipes.selectors import Choice, SelectorSet
from replay_sessions.simplify.tags import TAGS, UNKNOWN


class ElementTable(dict[int, "_Place"]):
    """The bits of the recipe's selectors that hold where an element stands -> what is decided there.

    `table[inside][tag_number]` is the tag, its kind, and what to look the class attribute up in, which gives the choice
    of the recipe's rules and whether a style rule that hides is about one of the classes.

    Attributes:
        size: How much has been worked out.
    """

    def __init__(self, selectors: SelectorSet, is_styled: Mapping[str | None, bool]) -> None:
        super().__init__()
        self.selectors = selectors
        self.is_styled = is_styled
        self.size = 0

    def __missing__(self, inside: int) -> "_Place":
        row = self[inside] = _Place(self, inside)
        return row


class _Place(dict[int, tuple[str, int, "_Classes"]]):
    """Tag number -> the tag, its kind, and what its class attribute decides."""

    def __init__(self, table: ElementTable, inside: int) -> None:
        super().__init__()
        self._table = table
        self._inside = inside
        # Pages number the tags that HTML does not know as they like; all of them are one.
        self._unknown = (*UNKNOWN, _Classes(table, UNKNOWN[0], inside))

    def __missing__(self, number: int) -> "tuple[str, int, _Classes]":
        if number not in TAGS:
            return self._unknown
        tag, kind = TAGS[number]
        decision = self[number] = (tag, kind, _Classes(self._table, tag, self._inside))
        return decision


class _Classes(dict[str | None, tuple[Choice | None, bool]]):
    """Class attribute -> the choice of the recipe's rules, and whether a style rule is about one of the classes."""

    def __init__(self, table: ElementTable, tag: str, inside: int) -> None:
        super().__init__()
        self._table = table
        self._tag = tag
        self._inside = inside

    def __missing__(self, classes: str | None) -> tuple[Choice | None, bool]:
        table = self._table
        table.size += 1
        decision = self[classes] = (
            table.selectors.choices[self._tag, classes, self._inside],
            table.is_styled[classes],
        )
        return decision
