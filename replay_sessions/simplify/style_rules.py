"""Which elements are hidden: the page's own `<style>` rules that set `display` or `visibility`, cascaded as CSS says.

What hides an element by default (`hidden`, a closed dialog or popover) is weaker than any rule; then come, from weak to
strong: rules in layers, rules, the element's `style`, and the same reversed for `!important`. Style sheets in files of
their own are no part of a page and are not known. style_sheets.py reads the sheets; lexbor matches the selectors.

A rule that is not understood may show an element, never hide it.
"""

import functools
from collections.abc import Iterable, Sequence

import tinycss2
from selectolax.lexbor import LexborHTMLParser, LexborNode, SelectolaxError
from tinycss2.ast import FunctionBlock, IdentToken

from replay_sessions.simplify.cascade import STYLED, UNLAYERED, Attributes, Fitting, Rank, cascade_of
from replay_sessions.simplify.css_selectors import Selector, get_bits, own_words
from replay_sessions.simplify.declarations import HIDE, INHERIT, PROPERTIES, SHOW, Declared, declared_in, outcome_of
from replay_sessions.simplify.media import DESKTOP, Viewport, split
from replay_sessions.simplify.style_sheets import sheets_of

_MANY_TESTS = 50  # after which all elements that a selector matches are searched for
_MAX_SUBSTITUTIONS = 20
_NOWHERE: Rank = (False, False, (-2,), (0, 0, 0), 0, 0)
_BY_DEFAULT: Rank = (False, False, (-1,), (0, 0, 0), 0, 0)
# An element with none of these neither hides itself nor is hidden from screen readers.
HIDING_ATTRIBUTES = frozenset({"hidden", "aria-hidden", "inert", "popover", "style", STYLED})


class StyleRules:
    """The rules of one tree of a page, a document or a shadow tree.

    Args:
        styles: The tree's `<style>` elements.
        root: Where selectors are searched for.
        is_slotted: The rules count that are about what stands in the tree's slots, not those about the tree.

    Attributes:
        ids, attribute_names: The ids and attributes that hiding rules are about.
        table: What is decided by the tags and classes of elements (`Cascade.table`).
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
        self._matches: dict[str, frozenset[int] | None] = {}  # selector -> the elements that it matches, once searched
        self._around: dict[int, int] = {}  # element -> the bits of its words and of all around it
        self.ids = self._cascade.ids
        self.attribute_names = self._cascade.attribute_names
        self.table = self._cascade.table
        # What selectors without class, id and attribute hide is marked: any element would have to be asked about them.
        for node in search(root, self._cascade.searched) if root is not None else ():
            node.attrs[STYLED] = ""

    def hide(self, node: LexborNode, attributes: Attributes) -> bool:
        """Returns whether an element is hidden, or keeps itself from being clicked (`inert`), with all inside it.

        What is visible in an element whose `visibility` is hidden is left alone there: all else in it is marked.
        """
        if "inert" in attributes:
            return True
        tag = node.tag or ""
        by_default = "hidden" in attributes or "popover" in attributes or (tag == "dialog" and "open" not in attributes)
        fitting = self._cascade.fitting[self._cascade.keys(tag, attributes)]
        style = attributes.get("style")
        if not (fitting or by_default or style):
            return False
        own = declared_in(style) if style else ()
        if self._hides("display", node, fitting, own, by_default=by_default):
            return True
        return self._hides("visibility", node, fitting, own) and not self._reveal(node)

    def _hides(
        self, name: str, node: LexborNode, fitting: dict[str, Fitting], own: Sequence[Declared], *,
        by_default: bool = False,
    ) -> bool:  # fmt: skip
        """Returns whether a property hides an element; what else is said of it counts only where something does."""
        is_hidden = by_default or any(item.name == name for item in own)
        for _, selector, value in () if is_hidden or name not in fitting else fitting[name][1]:
            if self._is_match(selector, node) and self._resolve(name, value, node) == HIDE:
                is_hidden = True
                break
        return is_hidden and self.compute(name, node, by_default=by_default) == HIDE

    def compute(self, name: str, node: LexborNode, *, by_default: bool = False) -> str:
        """The value that wins for an element: HIDE, SHOW, INHERIT or, of a custom property, what is written.

        "" if nothing but the browser says anything.

        Args:
            by_default: Whether the browser hides it.
        """
        attributes = node.attributes
        rank, own = (_BY_DEFAULT, HIDE) if by_default else (_NOWHERE, "")
        for item in declared_in(style) if (style := attributes.get("style")) else ():
            own_rank: Rank = (item.is_important, True, (UNLAYERED,), (0, 0, 0), 0, 0)
            if item.name == name and own_rank >= rank:
                rank, own = own_rank, self._resolve(name, item.value, node)
        fitting = self._cascade.fitting[self._cascade.keys(node.tag or "", attributes)]
        for entry_rank, selector, value in fitting[name][0] if name in fitting else ():
            if entry_rank < rank:
                break
            is_match = self._is_match(selector, node)
            if is_match is not False and (value := self._resolve(name, value, node)) and (is_match or value != HIDE):
                return value
        return own

    def _is_match(self, selector: Selector, node: LexborNode) -> bool | None:
        """Returns whether an element that has what a selector says of it is matched; None if that is not understood."""
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
        """Returns the value of a declaration, its variables replaced; one without a value counts as `unset`."""
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
        visible: set[int] = set()
        around: set[int] = set()
        for inner in node.css("*"):
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
                elif child.mem_id not in visible and child.is_element_node:  # a comment has no attributes
                    child.attrs["inert"] = ""
        return bool(visible)


def search(root: LexborHTMLParser | LexborNode, selectors: list[str]) -> list[LexborNode]:
    """Returns the matches of some selectors: by one search, or by one each if one of them is not understood."""
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
