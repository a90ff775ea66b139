"""Finds the declarations of style sheets for an element by its tag, class, id and attributes, without its ancestors.

The pages of a shop have the same sheets and elements, so results of one page are cached for the next.
"""

import functools
import itertools
import operator
from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

from replay_sessions.simplify.css_selectors import Selector, Specificity
from replay_sessions.simplify.declarations import INHERIT, SHOW
from replay_sessions.simplify.style_sheets import Block, Layer, Sheet
from replay_sessions.simplify.tags import TAGS, UNKNOWN

_MAX_FITTING = 200  # the most declarations of a property that are tested for an element
_CASCADES_KEPT = 100
_MEMO_LIMIT = 20_000
UNLAYERED = 1_000_000
STYLED = "data-shop-r1-styled"  # marks elements that match a hiding selector without class, id and attribute

Attributes = Mapping[str, str | None]
Keys = tuple[str, str | None, str | None, tuple[str, ...]]  # tag, class attribute, id, attributes named in selectors
Rank = tuple[bool, bool, tuple[int, ...], Specificity, int, int]  # importance, `style`, layer, …, sheet, position
Entry = tuple[Rank, Selector, str]  # a declaration with its rank and selector
Fitting = tuple[list[Entry], list[Entry]]
_Key = TypeVar("_Key")
_Value = TypeVar("_Value")


class Memo(dict[_Key, _Value]):
    """A cache that computes each value once, because the pages of a site repeat the same keys many times."""

    def __init__(self, compute: Callable[[_Key], _Value]) -> None:
        super().__init__()
        self._compute = compute

    def __missing__(self, key: _Key) -> _Value:
        if len(self) >= _MEMO_LIMIT:
            self.clear()
        value = self[key] = self._compute(key)
        return value


Tag = tuple[str, int, Memo[str | None, bool]]  # a tag, its kind, and whether a hiding rule may match given classes


class Cascade:
    """The declarations of a tree's sheets, indexed by the conditions of their selectors on the element itself.

    Args:
        is_slotted: If True, only rules for elements in a shadow tree's slots count; otherwise only rules for the tree.

    Attributes:
        ids, attribute_names: The ids and attributes in the selectors of hiding rules.
        searched: The hiding selectors that require no class, id or attribute.
        fitting: Maps the keys of an element and a property to the declarations that may apply, strongest first, and to
            those of them that may hide. The elements around it are not checked yet.
        table: Maps lexbor's number of a tag to its `Tag`.
    """

    def __init__(self, sheets: tuple[Sheet, ...], *, is_slotted: bool) -> None:
        self._sheets = sheets
        self._is_slotted = is_slotted
        self._layers = _order(layer for sheet in sheets for layer in sheet.layers)
        self._words = frozenset[str]().union(*(sheet.filed for sheet in sheets))
        self._hiding = frozenset[str]().union(*(sheet.hiding for sheet in sheets))
        self._about: Memo[str, list[tuple[int, Block, Selector]]] = Memo(self._selectors)
        self.fitting: Memo[Keys, dict[str, Fitting]] = Memo(self._fit)
        searched = sorted(word for word in self._hiding if word[0] not in ".#[")
        self.searched = [
            selector.text for word in searched for _, block, selector in self._about[word] if block.may_hide
        ]
        self._ids = frozenset(word[1:] for word in self._words if word[0] == "#")
        self._attributes = frozenset(word[1:] for word in self._words if word[0] == "[") | {STYLED}
        self.ids = frozenset(word[1:] for word in self._hiding if word[0] == "#")
        self.attribute_names = frozenset(word[1:] for word in self._hiding if word[0] == "[")
        unknown = self._tag(*UNKNOWN)  # the numbers of unknown tags differ from page to page
        self.table: Memo[int, Tag] = Memo(lambda number: self._tag(*TAGS[number]) if number in TAGS else unknown)

    def _tag(self, tag: str, kind: int) -> Tag:
        return tag, kind, Memo(lambda classes: tag == "dialog" or not self._hiding.isdisjoint(_class_words(classes)))

    def _selectors(self, word: str) -> list[tuple[int, Block, Selector]]:
        return [
            (number, block, selector)
            for number, sheet in enumerate(self._sheets)
            for block in sheet.filed.get(word, ())
            for selector in block.nest.parse()
            if word in selector.words and selector.is_slotted == self._is_slotted
        ]

    def _fit(self, keys: Keys) -> dict[str, Fitting]:
        tag, attribute, identifier, names = keys
        classes = frozenset((attribute or "").split())
        words = [*_class_words(attribute), f"#{identifier}", *(f"[{name}" for name in names), tag, "*"]
        fitting: dict[str, Fitting] = {}
        for word in sorted(self._words.intersection(words)):
            for number, block, selector in self._about[word]:
                if selector.classes <= classes and selector.tag in ("", tag) and selector.id in ("", identifier):
                    for item in block.declared:
                        entry = (self._rank(item.is_important, block, selector, number), selector, item.value)
                        entries, hiding = fitting.setdefault(item.name, ([], []))
                        entries.append(entry)
                        if item.value not in (SHOW, INHERIT) and (word[0] in ".#[" or STYLED in names):
                            hiding.append(entry)
        for entries in itertools.chain.from_iterable(fitting.values()):
            entries.sort(key=operator.itemgetter(0), reverse=True)
            del entries[_MAX_FITTING:]
        return fitting

    def _rank(self, is_important: bool, block: Block, selector: Selector, number: int) -> Rank:
        layer = (*[self._layers[block.layer[: depth + 1]] for depth in range(len(block.layer))], UNLAYERED)
        if is_important:
            layer = tuple([-rank for rank in layer])
        return is_important, False, layer, selector.specificity, number, block.position

    def keys(self, tag: str, attributes: Attributes) -> Keys:
        """Returns the keys of an element for `fitting`."""
        identifier = attributes.get("id")
        names: tuple[str, ...] = ()
        if not self._attributes.isdisjoint(attributes):
            names = tuple(sorted(self._attributes.intersection(attributes)))
        return tag, attributes.get("class"), identifier if identifier in self._ids else None, names


def _class_words(attribute: str | None) -> list[str]:
    return [f".{name}" for name in (attribute or "").split()]


def _order(layers: Iterable[Layer]) -> dict[Layer, int]:
    """Returns the rank of each layer among its siblings, by the order in which they are first named."""
    ranks: dict[Layer, int] = {}
    counts: dict[Layer, int] = {}
    for layer in layers:
        if layer not in ranks:
            ranks[layer] = counts[layer[:-1]] = counts.get(layer[:-1], -1) + 1
    return ranks


cascade_of = functools.lru_cache(_CASCADES_KEPT)(Cascade)  # for pages with the same sheets
