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

from replay_sessions.simplify.cascade import STYLED, UNLAYERED, Attributes, Entry, Keys, Rank, Side, cascade_of
from replay_sessions.simplify.css_selectors import Reach, Selector, get_bits, own_words
from replay_sessions.simplify.declarations import HIDE, INHERIT, PROPERTIES, SHOW, declared_in, outcome_of
from replay_sessions.simplify.media import DESKTOP, Viewport, split
from replay_sessions.simplify.style_sheets import sheets_of

_MAX_REVEALED = 200_000  # elements of a page that are looked at for `visible` inside `hidden`
_MANY_SELECTORS = 200  # more are searched for by their tags
_MANY_ENTRIES = 10  # of more, those that may match are chosen once for all elements with the same around them
_MANY_TESTS = 50  # after which all elements that a selector matches are searched for
_MAX_SUBSTITUTIONS = 20
_NOWHERE: Rank = (False, False, (-2,), (0, 0, 0), 0, 0)
_BY_DEFAULT: Rank = (False, False, (-1,), (0, 0, 0), 0, 0)
# An element with none of these neither hides itself nor is hidden from screen readers.
HIDING_ATTRIBUTES = frozenset({"hidden", "aria-hidden", "inert", "popover", "style", STYLED})


class StyleRules:
    """The rules of one tree of a page, a document or a shadow tree; read as far as an element asks for them.

    Args:
        styles: The tree's `<style>` elements.
        root: Where selectors are searched for.
        reach: Which rules count: those about the tree itself, its slots, or the parts of its shadow trees.

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
        reach: Reach = "tree",
    ) -> None:
        self._cascade = cascade_of(sheets_of(styles, viewport), reach)
        self._root = root
        self._tests: dict[str, int] = {}
        self._matches: dict[str, frozenset[int] | None] = {}  # selector -> the elements that it matches, once searched
        self._around: dict[int, int] = {}  # element -> the bits of its words and of all around it
        self._allowed: dict[
            tuple[bool, Keys, str, int], tuple[int, list[Entry]]
        ] = {}  # with how often it was asked for
        self._revealed = 0
        self._passed = 0  # the bits of the triggers that were passed
        self._waiting = self._cascade.searched
        self.ids = self._cascade.ids
        self.attribute_names = self._cascade.hiding_attributes
        self.table = self._cascade.table
        self.trigger(0)

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
            texts = [selector.text for selector in ready]
            if len(ready) > _MANY_SELECTORS:
                tags = {"", *[(node.tag or "").lower() for node in self._root.css("*")]}
                texts = _by_tag([selector for selector in ready if tags.issuperset(selector.tags())])
            for node in search(self._root, texts):
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
        self, name: str, node: LexborNode, keys: Keys, style: str | None, *, by_default: bool = False,
        is_asked: bool = False,
    ) -> str:  # fmt: skip
        """The value that wins.

        Args:
            by_default: Whether the browser hides it.
            is_asked: Whether other values than HIDE count where nothing hides it; else it is "" then.
        """
        rank, value = (_BY_DEFAULT, HIDE) if by_default else (_NOWHERE, "")
        for entry in self._entries(self._cascade.hiding, keys, name, node):
            if self._is_match(entry[1], node) and self._resolve(name, entry[2], node) == HIDE:
                rank, value = entry[0], HIDE
                break
        for item in declared_in(style) if style else ():
            own: Rank = (item.is_important, True, (UNLAYERED,), (0, 0, 0), 0, 0)
            if item.name == name and own >= rank:
                rank, value = own, self._resolve(name, item.value, node)
        if value == HIDE or is_asked:
            for entry in self._entries(self._cascade.others, keys, name, node):
                if entry[0] < rank:
                    break
                if self._is_match(entry[1], node) is not False:
                    other = self._resolve(name, entry[2], node)
                    if other != HIDE:
                        return other
        return value

    def _entries(self, side: Side, keys: Keys, name: str, node: LexborNode) -> Sequence[Entry]:
        """The declarations that may be about an element; of many, those that what is around it allows."""
        entries = side.fitting[keys].get(name, ())
        if len(entries) < _MANY_ENTRIES:
            return entries
        bits = self._bits_around(node.parent)
        key = (side.is_hiding, keys, name, bits)
        uses, allowed = self._allowed.get(key) or (0, [entry for entry in entries if entry[1].bits & ~bits == 0])
        if uses == 2 * _MANY_TESTS:  # most were searched for by now: what matches nothing on the page is left out
            allowed = [entry for entry in allowed if self._matches.get(entry[1].text) != frozenset()]
        self._allowed[key] = uses + 1, allowed
        return allowed

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
                elif child.mem_id not in visible and child.is_element_node:  # a comment has no attributes
                    child.attrs["inert"] = ""
        return bool(visible)


def _by_tag(selectors: Iterable[Selector]) -> list[str]:
    """One selector for each tag: an element is compared only with those about its tag, not with all."""
    by_tag: dict[str, list[str]] = {}
    for selector in selectors:
        tag = selector.tag if selector.tag.isalnum() else "*"  # `o\\:p` would have to be escaped
        by_tag.setdefault(tag, []).append(selector.text)
    return [f"{tag}:is({', '.join(texts)})" for tag, texts in by_tag.items()]


def search(root: LexborHTMLParser | LexborNode, selectors: list[str]) -> list[LexborNode]:
    """What some selectors match: by one search for all of them, or by one each if one of them is not understood."""
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
