"""Finds hidden elements by the cascade of the page's `<style>` rules that set `display` or `visibility`.

Hiding by default (`hidden`, a closed dialog or popover) is weaker than any rule. Then come, from weak to strong: rules
in layers, other rules, the element's `style`, and the same in reverse for `!important`. External style sheets are not
part of a page and are unknown. style_sheets.py reads the sheets; lexbor matches the selectors.

A rule that is not understood may show an element, but never hides it.
"""

import functools
from collections.abc import Iterable, Sequence

import tinycss2
from selectolax.lexbor import LexborHTMLParser, LexborNode, SelectolaxError
from tinycss2.ast import FunctionBlock, IdentToken

from replay_sessions.simplify.cascade import STYLED, UNLAYERED, Attributes, Fitting, Rank, cascade_of
from replay_sessions.simplify.css_selectors import Selector, get_bits, own_words
from replay_sessions.simplify.declarations import (
    HIDE,
    INHERIT,
    PROPERTIES,
    SHOW,
    Declared,
    declared_in,
    is_too_deep,
    outcome_of,
)
from replay_sessions.simplify.media import DESKTOP, Viewport, split
from replay_sessions.simplify.style_sheets import sheets_of

_MANY_TESTS = 50  # after this many tests of a selector, one search finds all elements that it matches
_MAX_SUBSTITUTIONS = 20
_NOWHERE: Rank = (False, False, (-2,), (0, 0, 0), 0, 0)
_BY_DEFAULT: Rank = (False, False, (-1,), (0, 0, 0), 0, 0)
# An element without any of these does not hide itself and is not hidden from screen readers.
HIDING_ATTRIBUTES = frozenset({"hidden", "aria-hidden", "inert", "popover", "style", STYLED})


class StyleRules:
    """The rules of one tree of a page, a document or a shadow tree.

    Args:
        styles: The tree's `<style>` elements.
        root: Node in which selectors are searched for; None if no sheet is given.
        viewport: The window for which the sheets are evaluated.
        is_slotted: If True, only rules for elements in the tree's slots count; otherwise only rules for the tree.

    Attributes:
        ids, attribute_names: The ids and attributes in the selectors of hiding rules.
        table: The properties of tags (`Cascade.table`).
    """

    def __init__(
        self,
        styles: Iterable[LexborNode],
        root: LexborHTMLParser | LexborNode | None = None,
        viewport: Viewport = DESKTOP,
        *,
        is_slotted: bool = False,
    ) -> None:
        self._cascade = cascade_of(sheets_of(styles, viewport), is_slotted=is_slotted)
        self._root = root
        self._tests: dict[str, int] = {}
        self._matches: dict[str, frozenset[int] | None] = {}  # matches of each selector that was searched for
        self._bits: dict[int, int] = {}  # Bloom filter of the words of an element and its ancestors
        self.ids = self._cascade.ids
        self.attribute_names = self._cascade.attribute_names
        self.table = self._cascade.table
        # Matches of hiding selectors without class, id and attribute are marked, to spare a test of each element.
        for node in search(root, self._cascade.searched) if root is not None else ():
            node.attrs[STYLED] = ""

    def hide(self, node: LexborNode, attributes: Attributes) -> bool:
        """Returns whether an element is hidden or cannot be clicked (`inert`), with all of its content.

        If only parts of an element with hidden `visibility` are visible, the other parts are marked as `inert`, and the
        result is False.
        """
        if "inert" in attributes:
            return True
        tag = node.tag or ""
        by_default = "hidden" in attributes or "popover" in attributes or (tag == "dialog" and "open" not in attributes)
        fitting = self._cascade.fitting[self._cascade.keys(tag, attributes)]
        style = attributes.get("style")
        if not (fitting or by_default or style):
            return False
        style_declarations = declared_in(style) if style else ()
        if self._hides("display", node, fitting, style_declarations, by_default=by_default):
            return True
        return self._hides("visibility", node, fitting, style_declarations) and not self._reveal(node)

    def _hides(
        self, name: str, node: LexborNode, fitting: dict[str, Fitting], style_declarations: Sequence[Declared], *,
        by_default: bool = False,
    ) -> bool:  # fmt: skip
        """Returns whether a property hides an element; computes the cascade only if some declaration may hide it."""
        is_hidden = by_default or any(item.name == name for item in style_declarations)
        for _, selector, value in () if is_hidden or name not in fitting else fitting[name][1]:
            if self._is_match(selector, node) and self._resolve(name, value, node) == HIDE:
                is_hidden = True
                break
        return is_hidden and self.compute(name, node, by_default=by_default) == HIDE

    def compute(self, name: str, node: LexborNode, *, by_default: bool = False) -> str:
        """Computes the cascaded value of a property for an element.

        Args:
            name: `display`, `visibility` or a custom property.
            node: The element.
            by_default: Whether the browser hides the element by default.

        Returns:
            HIDE, SHOW or INHERIT; for a custom property its text; "" if no declaration applies.
        """
        attributes = node.attributes
        rank, best_value = (_BY_DEFAULT, HIDE) if by_default else (_NOWHERE, "")
        for item in declared_in(style) if (style := attributes.get("style")) else ():
            item_rank: Rank = (item.is_important, True, (UNLAYERED,), (0, 0, 0), 0, 0)
            if item.name == name and item_rank >= rank:
                rank, best_value = item_rank, self._resolve(name, item.value, node)
        fitting = self._cascade.fitting[self._cascade.keys(node.tag or "", attributes)]
        for entry_rank, selector, value in fitting[name][0] if name in fitting else ():
            if entry_rank < rank:
                break
            is_match = self._is_match(selector, node)
            if is_match is not False and (value := self._resolve(name, value, node)) and (is_match or value != HIDE):
                return value
        return best_value

    def _is_match(self, selector: Selector, node: LexborNode) -> bool | None:
        """Returns whether a selector matches an element with its tag, id and classes; None if it is not understood."""
        if selector.is_simple:
            return True
        if selector.around and selector.around & ~self._bits_around(node.parent):
            return False
        text = selector.text
        if text in self._matches:
            matches = self._matches[text]
            return None if matches is None else node.mem_id in matches
        try:
            tests = self._tests[text] = self._tests.get(text, 0) + 1
            if tests < _MANY_TESTS or self._root is None:
                first = node.css_first(text)  # the element itself comes before its content
                return first is not None and first.mem_id == node.mem_id
            self._matches[text] = matches = frozenset([match.mem_id for match in self._root.css(text)])
            return node.mem_id in matches
        except SelectolaxError:
            self._matches[text] = None
            return None

    def _bits_around(self, node: LexborNode | None) -> int:
        """Returns the Bloom filter of the words of an element and its ancestors."""
        unknown: list[LexborNode] = []
        bits: int | None = 0
        while node is not None and (bits := self._bits.get(node.mem_id)) is None:
            unknown.append(node)
            node = node.parent
        bits = bits or 0
        while unknown:
            node = unknown.pop()
            attributes = node.attributes
            bits |= _bits_of(node.tag or "", attributes.get("class"), attributes.get("id"))
            self._bits[node.mem_id] = bits
        return bits

    def _resolve(self, name: str, value: str, node: LexborNode) -> str:
        """Returns the value of a declaration with its variables replaced; an invalid value counts as `unset`."""
        if name not in PROPERTIES or value in (HIDE, SHOW, INHERIT):
            return value
        for _ in range(_MAX_SUBSTITUTIONS):
            if "var(" not in value or is_too_deep(value):
                break
            value = self._substitute(value, node)
        return outcome_of(name, value) or (INHERIT if name == "visibility" else SHOW)

    def _substitute(self, value: str, node: LexborNode) -> str:
        """Replaces the first `var()` in a value, by "" if the variable has neither a value nor a fallback."""
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
        """Returns a custom property of an element, inherited if the element does not set it; "" if none does."""
        while node is not None and node.is_element_node:
            value = self.compute(name, node)
            if value and value not in ("inherit", "unset"):
                return value if value != "initial" else ""
            node = node.parent
        return ""

    def _reveal(self, node: LexborNode) -> bool:
        """Marks the hidden parts of an element with hidden `visibility` as `inert`; returns False if all are hidden."""
        visible: set[int] = set()
        around_visible: set[int] = set()
        for inner in node.css("*"):
            if self.compute("visibility", inner) == SHOW:
                visible.add(inner.mem_id)
                outer = inner.parent
                while outer is not None and outer.mem_id not in around_visible:
                    around_visible.add(outer.mem_id)
                    outer = outer.parent if outer.mem_id != node.mem_id else None
        stack = [node] if visible else []
        while stack:
            for child in stack.pop().iter(include_text=True):
                if child.is_text_node:
                    child.remove()
                elif child.mem_id in around_visible and child.mem_id not in visible:
                    stack.append(child)
                elif child.mem_id not in visible and child.is_element_node:  # a comment has no attributes
                    child.attrs["inert"] = ""
        return bool(visible)


def search(root: LexborHTMLParser | LexborNode, selectors: list[str]) -> list[LexborNode]:
    """Returns the matches of selectors by a single search, or by one search each if one of them is not understood."""
    if not selectors:
        return []
    try:
        return root.css(", ".join(selectors))
    except SelectolaxError:
        if len(selectors) == 1:
            return []
        return [node for selector in selectors for node in search(root, [selector])]


@functools.lru_cache(20_000)
def _bits_of(tag: str, classes: str | None, identifier: str | None) -> int:
    return get_bits(own_words(tag, identifier, (classes or "").split()))
