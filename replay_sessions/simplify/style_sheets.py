r"""Parses a page's `<style>` sheets: the rules that set `display` or `visibility`, for a window of a given size.

tinycss2 parses only conditions, selectors and declarations that matter. It takes 0.4 s for a megabyte, a hundred times
as long as the rest of the page, and nearly all of a sheet is about colors and sizes. So a sheet is first split into
blocks at its braces (after those in strings are escaped), and only blocks with one of the property names are parsed.
lightningcss is faster, but its Python bindings only return an entire sheet as text.

Rules under a condition that is not understood (`@scope`, an unknown media feature), or that depends on the width of a
container, may show but not hide. Rules that nest too deeply do not count. Layers and nested rules count as in a
browser. The pages of a shop have the same sheets, so everything is cached by their content. A block's selectors are
parsed when an element has one of their words.
"""

import functools
import re
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from selectolax.lexbor import LexborNode

from replay_sessions.simplify.css_selectors import Parents, parse_selectors
from replay_sessions.simplify.declarations import (
    HIDE,
    INHERIT,
    MOST_NESTED,
    PROPERTIES,
    SHOW,
    VARIABLE,
    Declared,
    declared_in,
    is_too_deep,
)
from replay_sessions.simplify.media import Viewport, all_of, matches_container, matches_media, supports

_SHEETS_KEPT = 1_000

_OPAQUE = re.compile(r"\"(?:[^\"\\\n]|\\.)*\"|'(?:[^'\\\n]|\\.)*'|/\*.*?(?:\*/|\Z)|\\[{};\"']", re.DOTALL)
_CDATA = re.compile(r"<!\[CDATA\[.*?(?:\]\]|\Z)", re.DOTALL)  # to a browser a block in the selector of the next rule
_ESCAPES = {"{": r"\7b ", "}": r"\7d ", ";": r"\3b "}
_COMBINATORS = re.compile(r"[\s>+~]+")
_WORDS = re.compile(r"([.#]?)([\w-]+)")
_NEEDS_PARSER = frozenset("([\\&|*")
_CONDITIONS: dict[str, Callable[[str, Viewport], bool | None]] = {
    "media": matches_media,
    "supports": lambda condition, viewport: supports(condition),
    "layer": lambda condition, viewport: True,
    "container": matches_container,
    "scope": lambda condition, viewport: None,
}

Layer = tuple[str, ...]  # the names of a layer and of those around it, outermost first; () means no layer


class _Nest(NamedTuple):
    """A style rule's selectors, and the rule around it; None for a rule that is not nested."""

    selectors: str
    parent: "_Nest | None"

    def parse(self) -> Parents:
        return parse_selectors(self.selectors, None if self.parent is None else self.parent.parse())


class _Context(NamedTuple):
    """The conditions of an open block.

    Attributes:
        applies: Whether its rules apply; None if a condition is not understood.
        layer: The layer of its rules.
        nest: The innermost style rule around its declarations; None outside style rules.
    """

    applies: bool | None
    layer: Layer
    nest: _Nest | None


class Block(NamedTuple):
    """The relevant declarations of one style rule."""

    position: int
    layer: Layer
    nest: _Nest
    declared: tuple[Declared, ...]

    @property
    def may_hide(self) -> bool:
        return any(item.name in PROPERTIES and item.value not in (SHOW, INHERIT) for item in self.declared)

    def words(self) -> Iterable[str]:
        """Returns the index keys of its selectors (`Selector.words`)."""
        text = self.nest.selectors
        if self.nest.parent is not None or not _NEEDS_PARSER.isdisjoint(text) or ":host" in text:
            return {word for selector in self.nest.parse() for word in selector.words}
        return map(_word, text.split(","))


class Sheet:
    """The relevant blocks of one style sheet.

    Args:
        written: Text of the sheet.
        applies: Whether the sheet applies; None if its condition is not understood.
        viewport: The window for which conditions are evaluated.
        names: Custom properties that are relevant.

    Attributes:
        layers: The layers in the order in which they are first named.
        filed: The blocks of each index key (`Selector.words`).
        hiding: The index keys of blocks that may hide.
        variables: The custom properties that values use.
    """

    def __init__(self, written: str, applies: bool | None, viewport: Viewport, names: frozenset[str]) -> None:
        self.layers: dict[Layer, None] = {}
        self.filed: dict[str, list[Block]] = {}
        self.hiding: set[str] = set()
        self._viewport = viewport
        self._names = names
        self.variables: set[str] = set()
        for block in self._blocks(_flatten(written), _Context(applies, (), None)):
            self.variables.update(name for item in block.declared for name in VARIABLE.findall(item.value))
            words = set(block.words())
            for word in words:
                self.filed.setdefault(word, []).append(block)
            if block.may_hide:
                self.hiding |= words

    def _is_relevant(self, css: str) -> bool:
        if "display" in css or "visibility" in css:
            return True
        return bool(self._names) and any(name in css for name in self._names)

    def _blocks(self, written: str, context: _Context) -> Iterator[Block]:
        stack = [context]
        position = 0
        for chunk in written.split("}"):
            if chunk.count("{") == 1 and "@" not in chunk and not self._is_relevant(chunk):
                continue  # as most chunks do
            *openings, last = chunk.split("{")
            for opening in openings:
                declarations, _, prelude = opening.rpartition(";")
                if block := self._block(declarations, stack[-1], stack[-1].nest, position):
                    yield block
                stack.append(self._enter(prelude.strip(), stack[-1], len(stack)))
                position += 1
            if block := self._block(last, stack[-1], stack[-1].nest, position):
                yield block
            if len(stack) > 1:
                stack.pop()

    def _enter(self, prelude: str, context: _Context, depth: int) -> _Context:
        if depth > MOST_NESTED or is_too_deep(prelude):
            return context._replace(applies=False)
        if prelude[:1] != "@":
            return context._replace(nest=_Nest(prelude, context.nest))
        name, _, condition = prelude[1:].partition(" ")
        if "(" in name:  # @media(width>9px)
            name, _, condition = prelude[1:].partition("(")
            condition = f"({condition}"
        evaluate = _CONDITIONS.get(name.lower())
        applies = False if evaluate is None else evaluate(condition.strip(), self._viewport)
        if name.lower() == "layer":
            names = condition.split(".") if condition.strip() else [f"#{len(self.layers)} of {id(self)}"]
            layer = (*context.layer, *map(str.strip, names))
            self._name_layer(layer)
            context = context._replace(layer=layer)
        return context._replace(applies=all_of([context.applies, applies]))

    def _name_layer(self, layer: Layer) -> None:
        for depth in range(len(layer)):
            self.layers.setdefault(layer[: depth + 1])

    def _block(self, declarations: str, context: _Context, nest: _Nest | None, position: int) -> Block | None:
        if context.applies is False:
            return None
        if nest is None:
            for statement in declarations.split(";") if "@layer" in declarations else ():
                if statement.strip()[:6] == "@layer":
                    for name in statement.strip()[6:].split(","):
                        self._name_layer((*context.layer, *name.strip().split(".")))
            return None
        if not self._is_relevant(declarations):
            return None
        declared = [item for item in declared_in(declarations) if item.name in PROPERTIES or item.name in self._names]
        if context.applies is None:
            declared = [item for item in declared if item.value != HIDE]
        last = {(item.name, item.is_important): item for item in declared}
        return Block(position, context.layer, nest, tuple(last.values())) if declared else None


def _flatten(written: str) -> str:
    """Removes comments from a sheet, and escapes the braces and semicolons in strings."""
    if "DISPLAY" in written or "VISIBILITY" in written:
        written = written.replace("DISPLAY", "display").replace("VISIBILITY", "visibility")
    return _CDATA.sub("]", _OPAQUE.sub(_escaped, written.replace("<!--", "").replace("-->", "")))


def _escaped(opaque: re.Match[str]) -> str:
    text = opaque[0]
    if text[0] == "/":
        return " "
    if text[0] == "\\":
        return _ESCAPES.get(text[1], text)
    for sign, escape in _ESCAPES.items() if not _ESCAPES.keys().isdisjoint(text) else ():
        text = text.replace(sign, escape)
    return text


@functools.lru_cache(50_000)
def _word(selector: str) -> str:
    """Returns the index key of a selector without brackets, escapes and the like, without a parser."""
    subject = _COMBINATORS.split(selector.strip())[-1].partition(":")[0]
    words = _WORDS.findall(subject)
    classes = [name for mark, name in words if mark == "."]
    ids = [name for mark, name in words if mark == "#"]
    tags = [name.lower() for mark, name in words if not mark]
    return f"#{ids[-1]}" if ids else f".{min(classes)}" if classes else tags[0] if tags else "*"


_sheet = functools.lru_cache(_SHEETS_KEPT)(Sheet)


def sheets_of(styles: Iterable[LexborNode], viewport: Viewport) -> tuple[Sheet, ...]:
    """Parses the relevant sheets of a page, in order, given its `<style>` elements.

    Repeats this with the custom properties that their values use, until no further ones are used.
    """
    texts: list[tuple[str, bool | None]] = []
    for style in styles:
        attributes = style.attributes
        if (attributes.get("type") or "text/css").strip().lower() != "text/css":
            continue
        media = attributes.get("media") or "all"
        applies = None if is_too_deep(media) else matches_media(media, viewport)
        if applies is not False and (style.parent is None or style.parent.tag != "noscript"):
            texts.append((style.text(), applies))
    names: frozenset[str] = frozenset()
    while True:
        keys = [
            (text, applies, viewport, frozenset(filter(text.__contains__, names)))
            for text, applies in texts
            if any(map(text.__contains__, (*PROPERTIES, "@layer", *names)))
        ]
        sheets = tuple([_sheet(*key) for key in keys])
        used = frozenset[str]().union(*(sheet.variables for sheet in sheets))
        if used <= names:
            return sheets
        names |= used
