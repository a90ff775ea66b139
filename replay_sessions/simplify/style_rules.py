"""Which elements are hidden: the page's own `<style>` rules that set `display` or `visibility`, cascaded as CSS says.

What hides an element by default (`hidden`, a closed dialog or popover) is weaker than any rule; then come, from weak to
strong: rules in layers, rules, the element's `style`, and the same reversed for `!important`. Style sheets in files of
their own are no part of a page and are not known. style_sheets.py reads the sheets; lexbor matches the selectors.

A rule that is not understood may show an element, never hide it.
"""

import functools
import operator
from collections.abc import Iterable, Mapping

import tinycss2
from selectolax.lexbor import LexborHTMLParser, LexborNode, SelectolaxError
from tinycss2.ast import FunctionBlock, IdentToken

from replay_sessions.simplify.css_selectors import Selector, Specificity, get_bits, own_words
from replay_sessions.simplify.element_table import ElementTable
from replay_sessions.simplify.media import DESKTOP, Viewport, split
from replay_sessions.simplify.recipes.selectors import MEMO_LIMIT, Memo, SelectorSet
from replay_sessions.simplify.style_sheets import (
    HIDE,
    INHERIT,
    PROPERTIES,
    SHOW,
    Block,
    Cache,
    Layer,
    Sheet,
    declared_in,
    outcome_of,
    sheets_of,
)

_MAX_FITTING = 200  # rules that are looked at for one element
_MAX_REVEALED = 200_000  # elements of a page that are looked at for `visible` inside `hidden`
_MANY_SELECTORS = 200  # more are searched for only if the page has their tags
_MANY_TESTS = 50  # after which all elements that a selector matches are searched for
_MAX_SUBSTITUTIONS = 20
_LEAST_LENGTH = 200_000  # what caching a cascade takes, however short the sheets are: as much as so many characters
_UNLAYERED = 1_000_000

Attributes = Mapping[str, str | None]
_Keys = tuple[str, str | None, str | None, tuple[str, ...]]  # tag, class attribute, id, attributes that rules are about
_Rank = tuple[bool, bool, tuple[int, ...], Specificity, int, int]  # importance, `style`, layer, …, sheet, position
_Entry = tuple[_Rank, Selector, str]  # a declaration

_NOWHERE: _Rank = (False, False, (-2,), (0, 0, 0), 0, 0)
_BY_DEFAULT: _Rank = (False, False, (-1,), (0, 0, 0), 0, 0)
# An element with none of these neither hides itself nor is hidden from screen readers.
HIDING_ATTRIBUTES = frozenset({"hidden", "aria-hidden", "inert", "popover", "style", "data-shop-r1-styled"})
STYLED = "data-shop-r1-styled"  # marks an element that a selector without class and id hides


class StyleRules:
    """The rules of one tree of a page, a document or a shadow tree; read as far as an element asks for them.

    Args:
        styles: The tree's `<style>` elements.
        root: Where selectors are searched for.
        is_slotted: Whether these are the rules of a shadow tree about what stands in its slots, and no others.

    Attributes:
        ids, attribute_names: The ids and attributes that hiding rules are about.
    """

    def __init__(
        self,
        styles: Iterable[LexborNode],
        root: LexborHTMLParser | LexborNode | None = None,
        viewport: Viewport = DESKTOP,
        *,
        is_slotted: bool = False,
    ) -> None:
        self._cascade = _cascade_of(sheets_of(styles, viewport), is_slotted)
        self._root = root
        self._tests: dict[str, int] = {}
        self._matches: dict[str, frozenset[int] | None] = {}  # selector -> the elements that it matches, once searched
        self._around: dict[int, int] = {}  # element -> the bits of its words and of all around it
        self._revealed = 0
        self._passed = 0  # the bits of the triggers that were passed
        self._waiting = self._cascade.searched
        self.ids = self._cascade.ids
        self.attribute_names = self._cascade.hiding_attributes
        self.trigger(0)

    def table(self, selectors: SelectorSet) -> ElementTable:
        """What these rules and a recipe's selectors decide by the tags and classes of elements."""
        table = self._cascade.tables.get(selectors)
        if table is None or table.size > MEMO_LIMIT:
            table = self._cascade.tables[selectors] = ElementTable(selectors, self._cascade.decide)
        return table

    def trigger(self, triggers: int) -> None:
        """Searches for what some selectors hide, since words that they ask for were passed; marks what is found.

        These have neither class nor id, so any element would have to be asked about. Most ask for a class or an id
        around theirs that no element of the page has.

        Args:
            triggers: The bits of the words that were passed; all of them, -1, for a tree that is not walked.
        """
        if not self._waiting or (triggers and triggers & ~self._passed == 0):
            return
        self._passed |= triggers
        ready = [selector for selector, needed in self._waiting if needed & self._passed == needed]
        if ready and self._root is not None:
            self._waiting = [waiting for waiting in self._waiting if waiting[1] & self._passed != waiting[1]]
            if len(ready) > _MANY_SELECTORS:
                tags = {"", *[node.tag or "" for node in self._root.css("*")]}
                ready = [selector for selector in ready if selector.tag in tags]
            for node in _search(self._root, [selector.text for selector in ready]):
                node.attrs[STYLED] = ""

    def hide(self, node: LexborNode, attributes: Attributes) -> bool:
        """Whether an element is hidden, or keeps itself from being clicked (`inert`), with all inside it.

        What is visible in an element whose `visibility` is hidden is left alone there: all else in it is marked.
        """
        if "inert" in attributes:
            return True
        tag = node.tag or ""
        by_default = "hidden" in attributes or "popover" in attributes or (tag == "dialog" and "open" not in attributes)
        style = attributes.get("style")
        if attributes.get("id") in self._cascade.trigger_ids:
            self.trigger(self._cascade.triggers[f"#{attributes['id']}"])
        keys = self._cascade.keys(tag, attributes)
        hiding = self._cascade.hiding.fitting[keys]
        if not (hiding or by_default or (style and declared_in(style))):
            return False
        if self._compute("display", node, keys, style, by_default=by_default) == HIDE:
            return True
        return self._compute("visibility", node, keys, style) == HIDE and not self._reveal(node)

    def compute(self, name: str, node: LexborNode) -> str:
        """The value that wins for an element: HIDE, SHOW, INHERIT or, of a custom property, what is written.

        "" if nothing but the browser says anything.
        """
        attributes = node.attributes
        keys = self._cascade.keys(node.tag or "", attributes)
        return self._compute(name, node, keys, attributes.get("style"), is_asked=True)

    def _compute(
        self, name: str, node: LexborNode, keys: _Keys, style: str | None, *, by_default: bool = False,
        is_asked: bool = False,
    ) -> str:  # fmt: skip
        """The value that wins.

        Args:
            by_default: Whether the browser hides it.
            is_asked: Whether other values than HIDE count where nothing hides it; else it is "" then.
        """
        rank, value = (_BY_DEFAULT, HIDE) if by_default else (_NOWHERE, "")
        for entry in self._cascade.hiding.fitting[keys].get(name, ()):
            if self._is_match(entry[1], node) and self._resolve(name, entry[2], node) == HIDE:
                rank, value = entry[0], HIDE
                break
        for item in declared_in(style) if style else ():
            own: _Rank = (item.is_important, True, (_UNLAYERED,), (0, 0, 0), 0, 0)
            if item.name == name and own >= rank:
                rank, value = own, self._resolve(name, item.value, node)
        if value == HIDE or is_asked:
            for entry in self._cascade.others.fitting[keys].get(name, ()):
                if entry[0] < rank:
                    break
                if self._is_match(entry[1], node) is not False:
                    other = self._resolve(name, entry[2], node)
                    if other != HIDE:
                        return other
        return value

    def _is_match(self, selector: Selector, node: LexborNode) -> bool | None:
        """Whether an element that has what a selector says of it is matched; None if that is not understood."""
        if selector.is_simple:
            return True
        if selector.bits and selector.bits & self._bits_around(node.parent) != selector.bits:
            return False
        text = selector.text
        if text in self._matches:
            matches = self._matches[text]
            return None if matches is None else node.mem_id in matches
        try:
            tests = self._tests[text] = self._tests.get(text, 0) + 1
            if tests < _MANY_TESTS or self._root is None:
                first = node.css_first(text)  # the element itself comes before what is in it
                return first is not None and first.mem_id == node.mem_id
            self._matches[text] = matches = frozenset([match.mem_id for match in self._root.css(text)])
            return node.mem_id in matches
        except SelectolaxError:
            self._matches[text] = None
            return None

    def _bits_around(self, node: LexborNode | None) -> int:
        """The bits of the words of an element and of all around it."""
        unknown: list[LexborNode] = []
        bits: int | None = 0
        while node is not None and (bits := self._around.get(node.mem_id)) is None:
            unknown.append(node)
            node = node.parent
        bits = bits or 0
        while unknown:
            node = unknown.pop()
            attributes = node.attributes
            bits |= _bits_of(node.tag or "", attributes.get("class"), attributes.get("id"))
            self._around[node.mem_id] = bits
        return bits

    def _resolve(self, name: str, value: str, node: LexborNode) -> str:
        """What a declaration says, its variables replaced; one without a value counts as `unset`."""
        if name not in PROPERTIES or value in (HIDE, SHOW, INHERIT):
            return value
        for _ in range(_MAX_SUBSTITUTIONS):
            if "var(" not in value:
                break
            value = self._substitute(value, node)
        return outcome_of(name, value) or (INHERIT if name == "visibility" else SHOW)

    def _substitute(self, value: str, node: LexborNode) -> str:
        """A value with the first of its variables replaced; "" if that has neither a value nor a fallback."""
        parts: list[str] = []
        is_done = False
        for token in tinycss2.parse_component_value_list(value):
            if is_done or not isinstance(token, FunctionBlock) or token.lower_name != "var":
                parts.append(token.serialize())
                continue
            is_done = True
            arguments = split(token.arguments)
            variable = arguments[0][0] if arguments and arguments[0] else None
            text = self._variable(variable.value, node) if isinstance(variable, IdentToken) else ""
            if not text:
                text = ", ".join(tinycss2.serialize(argument) for argument in arguments[1:])
            parts.append(text)
        return "".join(parts)

    def _variable(self, name: str, node: LexborNode | None) -> str:
        """A custom property of an element, inherited where it sets none; "" if nothing sets it."""
        while node is not None and node.is_element_node:
            value = self.compute(name, node)
            if value and value not in ("inherit", "unset"):
                return value if value != "initial" else ""
            node = node.parent
        return ""

    def _reveal(self, node: LexborNode) -> bool:
        """Marks as `inert` what stays hidden in an element whose visibility is; False if all of it does."""
        if not self._cascade.may_reveal and node.css_first("[style*=visibility i]") is None:
            return False
        visible: set[int] = set()
        around: set[int] = set()
        for inner in node.css("*") if self._revealed < _MAX_REVEALED else ():
            self._revealed += 1
            if self.compute("visibility", inner) == SHOW:
                visible.add(inner.mem_id)
                outer = inner.parent
                while outer is not None and outer.mem_id not in around:
                    around.add(outer.mem_id)
                    outer = outer.parent if outer.mem_id != node.mem_id else None
        left = [node] if visible else []
        while left:
            for child in left.pop().iter(include_text=True):
                if child.is_text_node:
                    child.remove()
                elif child.mem_id in around and child.mem_id not in visible:
                    left.append(child)
                elif child.mem_id not in visible:
                    child.attrs["inert"] = ""
        return bool(visible)


def _search(root: LexborHTMLParser | LexborNode, selectors: list[str]) -> list[LexborNode]:
    """What some selectors match: by one search for all of them, or by one each if one of them is not understood."""
    if not selectors:
        return []
    try:
        return root.css(", ".join(selectors))
    except SelectolaxError:
        if len(selectors) == 1:
            return []
        return [node for selector in selectors for node in _search(root, [selector])]


@functools.lru_cache(20_000)
def _bits_of(tag: str, classes: str | None, identifier: str | None) -> int:
    return get_bits(own_words(tag, identifier, (classes or "").split()))


class _Side:
    """The declarations of a tree's sheets that may hide, or those that may do something else.

    Attributes:
        words: Those that its rules are filed under.
        fitting: Tag, classes, id and attributes of an element -> property -> the declarations that may be about it, the
            strongest first. Whatever is around the element is not looked at yet.
    """

    def __init__(self, filed: list[dict[str, list[Block]]], ranker: "_Ranker", *, is_hiding: bool) -> None:
        self._filed = filed
        self._ranker = ranker
        self._is_hiding = is_hiding
        self.words = frozenset[str]().union(*filed)
        self.about: Memo[str, list[tuple[int, Block, Selector]]] = Memo(self._selectors)
        self.fitting: Memo[_Keys, dict[str, list[_Entry]]] = Memo(self._fit)

    def _selectors(self, word: str) -> list[tuple[int, Block, Selector]]:
        return [
            (number, block, selector)
            for number, filed in enumerate(self._filed)
            for block in filed.get(word, ())
            for selector in block.nest.parse()
            if word in selector.words and selector.is_slotted == self._ranker.is_slotted
        ]

    def _fit(self, keys: _Keys) -> dict[str, list[_Entry]]:
        tag, attribute, identifier, names = keys
        classes = frozenset((attribute or "").split())
        words = [f".{name}" for name in classes] + [f"#{identifier}"] + [f"[{name}" for name in names]
        if not self._is_hiding or STYLED in names:
            words += [tag, "*"]
        fitting: dict[str, list[_Entry]] = {}
        for word in sorted(self.words.intersection(words)):
            for number, block, selector in self.about[word]:
                if not (selector.classes <= classes and selector.tag in ("", tag) and selector.id in ("", identifier)):
                    continue
                for item in block.declared:
                    if item.value not in ((SHOW, INHERIT) if self._is_hiding else (HIDE,)):
                        rank = self._ranker.rank(item.is_important, block, selector, number)
                        fitting.setdefault(item.name, []).append((rank, selector, item.value))
        for name, entries in fitting.items():
            entries.sort(key=operator.itemgetter(0), reverse=True)
            fitting[name] = entries[:_MAX_FITTING]
        return fitting


class _Ranker:
    """What decides between rules: the layers of a tree."""

    def __init__(self, sheets: tuple[Sheet, ...], is_slotted: bool) -> None:
        self.is_slotted = is_slotted
        self._layers = _order(layer for sheet in sheets for layer in sheet.layers)

    def rank(self, is_important: bool, block: Block, selector: Selector, number: int) -> _Rank:
        layer = (*[self._layers[block.layer[: depth + 1]] for depth in range(len(block.layer))], _UNLAYERED)
        if is_important:
            layer = tuple([-place for place in layer])
        return is_important, False, layer, selector.specificity, number, block.position


class _Cascade:
    """What the sheets of a tree say of elements by their tags, classes and ids, whatever is around them.

    The pages of a shop have the same sheets and elements, so what is computed for one page is cached for the next.

    Attributes:
        ids, hiding_attributes: The ids and attributes that hiding rules are about, and ids that are triggers.
        triggers, trigger_ids: Classes and ids that the selectors without both ask for around their elements, with a bit
            for each.
        searched: Those selectors and the triggers that they need.
        may_reveal: Whether a rule shows by `visibility`.
        tables: What is decided by tags and classes, for each recipe.
    """

    def __init__(self, sheets: tuple[Sheet, ...], is_slotted: bool) -> None:
        ranker = _Ranker(sheets, is_slotted)
        self.hiding = _Side([sheet.hiding for sheet in sheets], ranker, is_hiding=True)
        self.others = _Side([sheet.others for sheet in sheets], ranker, is_hiding=False)
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
        self.tables: dict[SelectorSet, ElementTable] = {}

    def decide(self, tag: str, classes: str | None) -> tuple[bool, int]:
        """Whether a hiding rule is about one of some classes, and the bits of the triggers among them."""
        words = [f".{name}" for name in (classes or "").split()]
        triggers = 0
        for word in words:
            triggers |= self.triggers.get(word, 0)
        return tag == "dialog" or not self.hiding.words.isdisjoint(words), triggers

    def keys(self, tag: str, attributes: Attributes) -> _Keys:
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


_CASCADES: Cache[tuple[tuple[Sheet, ...], bool], _Cascade] = Cache()


def _cascade_of(sheets: tuple[Sheet, ...], is_slotted: bool) -> _Cascade:
    """What some sheets say together: as it was computed for the last page that had them."""
    length = _LEAST_LENGTH + sum(sheet.length for sheet in sheets)
    return _CASCADES.get((sheets, is_slotted), length, functools.partial(_Cascade, sheets, is_slotted))
