"""What the sheets of a tree say of elements by their tags, classes and ids, whatever is around them.

The pages of a shop have the same sheets and elements, so what is computed for one page is cached for the next.
"""

import functools
import operator
from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

from replay_sessions.simplify.css_selectors import Reach, Selector, Specificity
from replay_sessions.simplify.declarations import HIDE, INHERIT, SHOW
from replay_sessions.simplify.style_sheets import Block, Cache, Layer, Sheet
from replay_sessions.simplify.tags import TAGS, UNKNOWN

_MAX_FITTING = 200  # rules that are looked at for one element
_LEAST_LENGTH = 200_000  # what caching a cascade takes, however short the sheets are: as much as so many characters
UNLAYERED = 1_000_000
STYLED = "data-shop-r1-styled"  # marks an element that a selector without class and id hides

Attributes = Mapping[str, str | None]
Keys = tuple[str, str | None, str | None, tuple[str, ...]]  # tag, class attribute, id, attributes that rules are about
Rank = tuple[bool, bool, tuple[int, ...], Specificity, int, int]  # importance, `style`, layer, …, sheet, position
Entry = tuple[Rank, Selector, str]  # a declaration

_MEMO_LIMIT = 20_000
_Key = TypeVar("_Key")
_Value = TypeVar("_Value")


class Memo(dict[_Key, _Value]):
    """What is computed once for each key: a site's pages repeat theirs many times over."""

    def __init__(self, compute: Callable[[_Key], _Value]) -> None:
        super().__init__()
        self._compute = compute

    def __missing__(self, key: _Key) -> _Value:
        if len(self) >= _MEMO_LIMIT:
            self.clear()
        value = self[key] = self._compute(key)
        return value


Decision = tuple[bool, int]  # whether a hiding rule may be about an element, and the bits of the triggers
Tag = tuple[str, int, Memo[str | None, Decision]]  # a tag, its kind, and what is decided by its class attribute


class Side:
    """The declarations of a tree's sheets that may hide, or those that may do something else.

    Attributes:
        is_hiding: Whether it has those that may hide.
        words: Those that its rules are filed under.
        fitting: Tag, classes, id and attributes of an element -> property -> the declarations that may be about it, the
            strongest first. Whatever is around the element is not looked at yet.
    """

    def __init__(self, filed: list[dict[str, list[Block]]], ranker: "_Ranker", *, is_hiding: bool) -> None:
        self._filed = filed
        self._ranker = ranker
        self.is_hiding = is_hiding
        self.words = frozenset[str]().union(*filed)
        self.about: Memo[str, list[tuple[int, Block, Selector]]] = Memo(self._selectors)
        self.fitting: Memo[Keys, dict[str, list[Entry]]] = Memo(self._fit)

    def _selectors(self, word: str) -> list[tuple[int, Block, Selector]]:
        return [
            (number, block, selector)
            for number, filed in enumerate(self._filed)
            for block in filed.get(word, ())
            for selector in block.nest.parse()
            if word in selector.words and selector.reach == self._ranker.reach
        ]

    def _fit(self, keys: Keys) -> dict[str, list[Entry]]:
        tag, attribute, identifier, names = keys
        classes = frozenset((attribute or "").split())
        words = [f".{name}" for name in classes] + [f"#{identifier}"] + [f"[{name}" for name in names]
        if not self.is_hiding or STYLED in names:
            words += [tag, "*"]
        fitting: dict[str, list[Entry]] = {}
        for word in sorted(self.words.intersection(words)):
            for number, block, selector in self.about[word]:
                if not (selector.classes <= classes and selector.tag in ("", tag) and selector.id in ("", identifier)):
                    continue
                for item in block.declared:
                    if item.value not in ((SHOW, INHERIT) if self.is_hiding else (HIDE,)):
                        rank = self._ranker.rank(item.is_important, block, selector, number)
                        fitting.setdefault(item.name, []).append((rank, selector, item.value))
        for name, entries in fitting.items():
            entries.sort(key=operator.itemgetter(0), reverse=True)
            fitting[name] = entries[:_MAX_FITTING]
        return fitting


class _Ranker:
    """What decides between rules: the layers of a tree."""

    def __init__(self, sheets: tuple[Sheet, ...], reach: Reach) -> None:
        self.reach = reach
        self._layers = _order(layer for sheet in sheets for layer in sheet.layers)

    def rank(self, is_important: bool, block: Block, selector: Selector, number: int) -> Rank:
        layer = (*[self._layers[block.layer[: depth + 1]] for depth in range(len(block.layer))], UNLAYERED)
        if is_important:
            layer = tuple([-place for place in layer])
        return is_important, False, layer, selector.specificity, number, block.position


class Cascade:
    """What the sheets of a tree say of elements by their tags, classes and ids, whatever is around them.

    The pages of a shop have the same sheets and elements, so what is computed for one page is cached for the next.

    Attributes:
        ids, hiding_attributes: The ids and attributes that hiding rules are about, and ids that are triggers.
        triggers, trigger_ids: Classes and ids that the selectors without both ask for around their elements, with a bit
            for each.
        searched: Those selectors and the triggers that they need.
        may_reveal: Whether a rule shows by `visibility`.
        table: Tag number -> what is decided about elements of that tag.
    """

    def __init__(self, sheets: tuple[Sheet, ...], reach: Reach) -> None:
        ranker = _Ranker(sheets, reach)
        self.hiding = Side([sheet.hiding for sheet in sheets], ranker, is_hiding=True)
        self.others = Side([sheet.others for sheet in sheets], ranker, is_hiding=False)
        hiding = self.hiding.words
        words = hiding | self.others.words
        self.searched: list[tuple[Selector, int]] = []
        self.triggers: dict[str, int] = {}
        for word in sorted(hiding):
            if word[0] not in ".#[":
                for _, _, selector in self.hiding.about[word]:
                    needed = 0
                    for around in selector.around:
                        if around[0] in ".#":
                            needed |= self.triggers.setdefault(around, 1 << len(self.triggers))
                    self.searched.append((selector, needed))
        self.trigger_ids = frozenset(word[1:] for word in self.triggers if word[0] == "#")
        self._ids = frozenset(word[1:] for word in words if word[0] == "#")
        self._attributes = frozenset([word[1:] for word in words if word[0] == "["] + [STYLED])
        self.ids = frozenset(word[1:] for word in hiding if word[0] == "#") | self.trigger_ids
        self.hiding_attributes = frozenset(word[1:] for word in hiding if word[0] == "[")
        self.may_reveal = any(
            item.name == "visibility" and item.value not in (HIDE, INHERIT)
            for sheet in sheets for blocks in sheet.others.values() for block in blocks for item in block.declared
        )  # fmt: skip
        unknown = self._tag(*UNKNOWN)  # pages number the tags that HTML does not know as they like
        self.table: Memo[int, Tag] = Memo(lambda number: self._tag(*TAGS[number]) if number in TAGS else unknown)

    def _tag(self, tag: str, kind: int) -> Tag:
        return tag, kind, Memo(functools.partial(self._decide, tag))

    def _decide(self, tag: str, classes: str | None) -> Decision:
        words = [f".{name}" for name in (classes or "").split()]
        triggers = 0
        for word in words:
            triggers |= self.triggers.get(word, 0)
        return tag == "dialog" or not self.hiding.words.isdisjoint(words), triggers

    def keys(self, tag: str, attributes: Attributes) -> Keys:
        """What of an element rules may be filed under."""
        identifier = attributes.get("id")
        names: tuple[str, ...] = ()
        if not self._attributes.isdisjoint(attributes):
            names = tuple(sorted(self._attributes.intersection(attributes)))
        return tag, attributes.get("class"), identifier if identifier in self._ids else None, names


def _order(layers: Iterable[Layer]) -> dict[Layer, int]:
    """Layer -> its place among those beside it, by the order in which they are first named."""
    places: dict[Layer, int] = {}
    counts: dict[Layer, int] = {}
    for layer in layers:
        if layer not in places:
            places[layer] = counts[layer[:-1]] = counts.get(layer[:-1], -1) + 1
    return places


_CASCADES: Cache[tuple[tuple[Sheet, ...], Reach], Cascade] = Cache()


def cascade_of(sheets: tuple[Sheet, ...], reach: Reach) -> Cascade:
    """What some sheets say together: as it was computed for the last page that had them."""
    length = _LEAST_LENGTH + sum(sheet.length for sheet in sheets)
    return _CASCADES.get((sheets, reach), length, functools.partial(Cascade, sheets, reach))
