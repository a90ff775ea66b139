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

from replay_sessions.simplify.css_selectors import Selector, Specificity, get_bits
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
from replay_sessions.simplify.tags import TAGS

_MAX_FITTING = 200  # rules that are looked at for one element
_MAX_REVEALED = 200_000  # elements of a page that are looked at for `visible` inside `hidden`
_MANY_TESTS = 50  # after which all elements that a selector matches are searched for
_MAX_SUBSTITUTIONS = 20
_LEAST_LENGTH = 200_000  # what caching a cascade takes, however short the sheets are: as much as so many characters
_UNLAYERED = 1_000_000

Attributes = Mapping[str, str | None]
_Keys = tuple[str, str | None, str | None, tuple[str, ...]]  # tag, class attribute, id, attributes that rules are about
_Rank = tuple[bool, bool, tuple[int, ...], Specificity, int, int]  # importance, `style`, layer, …, sheet, position
_Entry = tuple[_Rank, Selector, str]  # a declaration, the strongest first
_Entries = tuple[list[_Entry], list[_Entry]]  # those that hide, and the others

_NOWHERE: _Rank = (False, False, (-2,), (0, 0, 0), 0, 0)
_BY_DEFAULT: _Rank = (False, False, (-1,), (0, 0, 0), 0, 0)
_NO_ENTRIES: _Entries = ([], [])
_KNOWN_TAGS = frozenset(tag for tag, _ in TAGS.values())


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
        self.ids = self._cascade.ids
        self.attribute_names = self._cascade.hiding_attributes

    def table(self, selectors: SelectorSet) -> ElementTable:
        """What these rules and a recipe's selectors decide by the tags and classes of elements."""
        table = self._cascade.tables.get(selectors)
        if table is None or table.size > MEMO_LIMIT:
            table = self._cascade.tables[selectors] = ElementTable(selectors, self._cascade.may_hide)
        return table

    def hide(self, node: LexborNode, attributes: Attributes) -> bool:
        """Whether an element is hidden, or keeps itself from being clicked (`inert`), with all inside it.

        What is visible in an element whose `visibility` is hidden is left alone there: all else in it is marked.
        """
        if "inert" in attributes:
            return True
        by_default = "hidden" in attributes or "popover" in attributes
        by_default = by_default or (node.tag == "dialog" and "open" not in attributes)
        if self.compute("display", node, attributes, by_default=by_default) == HIDE:
            return True
        return self.compute("visibility", node, attributes) == HIDE and not self._reveal(node)

    def compute(
        self, name: str, node: LexborNode, attributes: Attributes, *, by_default: bool = False, is_asked: bool = False
    ) -> str:
        """The value that wins for an element: HIDE, SHOW, INHERIT or, of a custom property, what is written; "" for none.

        Args:
            by_default: Whether the browser hides it.
            is_asked: Whether other values than HIDE count where nothing hides it; else it is "" then.
        """
        hiding, showing = self._cascade.find(node.tag or "", attributes).get(name, _NO_ENTRIES)
        rank, value = (_BY_DEFAULT, HIDE) if by_default else (_NOWHERE, "")
        for entry in hiding:
            if self._is_match(entry[1], node) and self._resolve(name, entry[2], node) == HIDE:
                rank, value = entry[0], HIDE
                break
        style = attributes.get("style")
        if style:
            for item in declared_in(style):
                own: _Rank = (item.is_important, True, (_UNLAYERED,), (0, 0, 0), 0, 0)
                if item.name == name and own >= rank:
                    rank, value = own, self._resolve(name, item.value, node)
        if value == HIDE or is_asked:
            for entry in showing:
                if entry[0] < rank:
                    break
                if self._is_match(entry[1], node) is not False:
                    shown = self._resolve(name, entry[2], node)
                    if shown != HIDE:
                        return shown
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
            value = self.compute(name, node, node.attributes, is_asked=True)
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
            attributes = inner.attributes
            if self.compute("visibility", inner, attributes, is_asked=True) == SHOW:
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


@functools.lru_cache(20_000)
def _bits_of(tag: str, classes: str | None, identifier: str | None) -> int:
    return get_bits([tag, *(classes or "").split(), identifier or ""])


class _Cascade:
    """What the sheets of a tree say of elements by their tags, classes and ids, whatever is around them.

    The pages of a shop have the same sheets and elements, so what is computed for one page is cached for the next.

    Attributes:
        ids, hiding_attributes: The ids and attributes that hiding rules are about.
        may_reveal: Whether a rule shows by `visibility`.
        tables: What is decided by tags and classes, for each recipe.
    """

    def __init__(self, sheets: tuple[Sheet, ...], is_slotted: bool) -> None:
        self._sheets = sheets
        self._is_slotted = is_slotted
        self._layers = _order(layer for sheet in sheets for layer in sheet.layers)
        self._entries: Memo[_Keys, dict[str, _Entries]] = Memo(self._fitting)
        self._about: Memo[str, list[tuple[int, Block, Selector]]] = Memo(self._filed)
        words = frozenset[str]().union(*(sheet.by_word for sheet in sheets))
        hiding = frozenset(word for sheet in sheets for word, blocks in sheet.by_word.items() if any(map(_hides, blocks)))
        self._words = words
        self._hiding = hiding
        self._hides_all = "*" in hiding
        self._hides_unknown = any(word[:1] not in ".#[*" and word not in _KNOWN_TAGS for word in hiding)
        self._attributes = frozenset(word[1:] for word in words if word[0] == "[")
        self.hiding_attributes = frozenset(word[1:] for word in hiding if word[0] == "[")
        self.ids = frozenset(word[1:] for word in hiding if word[0] == "#")
        self.may_reveal = any(
            item.name == "visibility" and item.value not in (HIDE, INHERIT)
            for sheet in sheets for blocks in sheet.by_word.values() for block in blocks for item in block.declared
        )  # fmt: skip
        self.tables: dict[SelectorSet, ElementTable] = {}

    def may_hide(self, tag: str, classes: str | None) -> bool:
        """Whether a hiding rule is about a tag ("" for those that HTML does not know) or one of some classes."""
        if self._hides_all or tag in self._hiding or tag == "dialog" or (not tag and self._hides_unknown):
            return True
        return any(f".{name}" in self._hiding for name in (classes or "").split())

    def find(self, tag: str, attributes: Attributes) -> dict[str, _Entries]:
        """Property -> the declarations of it that may be about an element."""
        names: tuple[str, ...] = ()
        if not self._attributes.isdisjoint(attributes):
            names = tuple(sorted(self._attributes.intersection(attributes)))
        return self._entries[tag, attributes.get("class"), attributes.get("id"), names]

    def _filed(self, word: str) -> list[tuple[int, Block, Selector]]:
        return [
            (number, block, selector)
            for number, sheet in enumerate(self._sheets)
            for block in sheet.by_word.get(word, ())
            for selector in block.nest.parse()
            if word in selector.words and selector.is_slotted == self._is_slotted
        ]

    def _fitting(self, keys: _Keys) -> dict[str, _Entries]:
        tag, attribute, identifier, names = keys
        classes = frozenset((attribute or "").split())
        words = (*[f".{name}" for name in sorted(classes)], f"#{identifier}", tag, *[f"[{name}" for name in names], "*")
        fitting: dict[str, list[_Entry]] = {}
        for word in words:
            for number, block, selector in self._about[word] if word in self._words else ():
                if (
                    selector.classes <= classes
                    and selector.tag in ("", tag)
                    and selector.id in ("", identifier)
                ):  # fmt: skip
                    for item in block.declared:
                        rank = self._rank(item.is_important, block, selector, number)
                        fitting.setdefault(item.name, []).append((rank, selector, item.value))
        return {name: _split(name, entries) for name, entries in fitting.items()}

    def _rank(self, is_important: bool, block: Block, selector: Selector, number: int) -> _Rank:
        layer = (*[self._layers[block.layer[: depth + 1]] for depth in range(len(block.layer))], _UNLAYERED)
        if is_important:
            layer = tuple([-place for place in layer])
        return is_important, False, layer, selector.specificity, number, block.position


def _split(name: str, entries: list[_Entry]) -> _Entries:
    """Those that hide or may hide, and those that may do something else; the strongest first."""
    strongest = sorted(entries, key=operator.itemgetter(0), reverse=True)[:_MAX_FITTING]
    if name not in PROPERTIES:
        return [], strongest
    hiding = [entry for entry in strongest if entry[2] not in (SHOW, INHERIT)]
    return hiding, [entry for entry in strongest if entry[2] != HIDE]


def _hides(block: Block) -> bool:
    return any(item.name in PROPERTIES and item.value not in (SHOW, INHERIT) for item in block.declared)


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
