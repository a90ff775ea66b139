"""What an element's tag, its class attribute and the place where it stands decide: looked up once for all of it.

A page has far more elements than different ones, and the pages of a shop share theirs; so a table is kept for the next
page that is styled by the same sheets.
"""

import functools
from collections.abc import Callable

from replay_sessions.simplify.recipes.selectors import Choice, Memo, SelectorSet
from replay_sessions.simplify.tags import TAGS, UNKNOWN

_Decision = tuple[Choice | None, bool]
_Place = Memo[int, tuple[str, int, Memo[str | None, _Decision]]]


class ElementTable(Memo[int, _Place]):
    """The bits of the recipe's selectors that hold where an element stands -> what is decided there.

    `table[inside][tag_number]` is the tag, its kind, and what to look the class attribute up in, which gives the choice
    of the recipe's rules and whether a style rule that hides may be about it.

    Attributes:
        size: How much has been worked out.
    """

    def __init__(self, selectors: SelectorSet, may_hide: Callable[[str, str | None], bool]) -> None:
        super().__init__(self._place)
        self._selectors = selectors
        self._may_hide = may_hide
        self.size = 0

    def _place(self, inside: int) -> _Place:
        # Pages number the tags that HTML does not know as they like; all of them are the same.
        unknown = self._tag(*UNKNOWN, inside, is_known=False)
        return Memo(lambda number: self._tag(*TAGS[number], inside) if number in TAGS else unknown)

    def _tag(
        self, tag: str, kind: int, inside: int, *, is_known: bool = True
    ) -> tuple[str, int, Memo[str | None, _Decision]]:
        return tag, kind, Memo(functools.partial(self._decide, tag, inside, is_known))

    def _decide(self, tag: str, inside: int, is_known: bool, classes: str | None) -> _Decision:
        self.size += 1
        return self._selectors.choices[tag, classes, inside], self._may_hide(tag if is_known else "", classes)
