"""What an element's tag, its class attribute and the place where it stands decide: looked up once for all of it.

A page has far more elements than different ones, and the pages of a shop share theirs; so a table is kept for the next
page that is styled by the same sheets.
"""

import functools
from collections.abc import Callable

from replay_sessions.simplify.recipes.selectors import Choice, Memo, SelectorSet
from replay_sessions.simplify.tags import TAGS, UNKNOWN

_Decision = tuple[Choice | None, bool, int]
_Place = Memo[int, tuple[str, int, Memo[str | None, _Decision]]]


class ElementTable(Memo[int, _Place]):
    """The bits of the recipe's selectors that hold where an element stands -> what is decided there.

    `table[inside][tag_number]` is the tag, its kind, and what to look the class attribute up in, which gives the choice
    of the recipe's rules, whether a style rule that hides may be about it, and the triggers (`StyleRules.trigger`).

    Attributes:
        size: How much has been worked out.
    """

    def __init__(self, selectors: SelectorSet, decide_style: Callable[[str, str | None], tuple[bool, int]]) -> None:
        super().__init__(self._place)
        self._selectors = selectors
        self._decide_style = decide_style
        self.size = 0

    def _place(self, inside: int) -> _Place:
        # Pages number the tags that HTML does not know as they like; all of them are the same.
        unknown = self._tag(*UNKNOWN, inside)
        return Memo(lambda number: self._tag(*TAGS[number], inside) if number in TAGS else unknown)

    def _tag(self, tag: str, kind: int, inside: int) -> tuple[str, int, Memo[str | None, _Decision]]:
        return tag, kind, Memo(functools.partial(self._decide, tag, inside))

    def _decide(self, tag: str, inside: int, classes: str | None) -> _Decision:
        self.size += 1
        may_hide, triggers = self._decide_style(tag, classes)
        return self._selectors.choices[tag, classes, inside], may_hide, triggers
