"""Parses declarations of style sheets and `style` attributes with tinycss2: whether they hide or show an element."""

import functools
import re
from typing import NamedTuple

import tinycss2
from tinycss2.ast import Declaration

HIDE, SHOW, INHERIT = "hide", "show", "inherit"  # values of a declaration; all other values contain a `var()`
PROPERTIES = ("display", "visibility")
_DISPLAY_VALUES = (
    "block contents flex flow flow-root grid initial inline inline-block inline-flex inline-grid inline-table "
    "list-item math none revert revert-layer ruby ruby-text run-in table table-caption table-cell table-column "
    "table-column-group table-footer-group table-header-group table-row table-row-group unset inherit "
    "-webkit-box -webkit-flex -webkit-inline-box -webkit-inline-flex"
)
_DISPLAYS = frozenset(_DISPLAY_VALUES.split())
_VISIBILITIES = {
    "hidden": HIDE, "collapse": HIDE, "visible": SHOW, "initial": SHOW,
    "inherit": INHERIT, "unset": INHERIT, "revert": INHERIT, "revert-layer": INHERIT,
}  # fmt: skip
MOST_NESTED = 50  # parentheses or rules; what nests deeper is not read, because the parser recurses
_BRACKET = re.compile(r"[(\[]|([)\]])")
_SET = re.compile(r"(?:\A|;)\s*(display|visibility|--[^\s:]+)(\s*:[^;]*)", re.IGNORECASE)
VARIABLE = re.compile(r"var\(\s*(--[^\s,)]+)")  # group 1: the custom property that a value uses


class Declared(NamedTuple):
    """A declaration; its value is HIDE, SHOW, INHERIT, a text with `var()`, or the text of a custom property."""

    name: str
    value: str
    is_important: bool


def is_too_deep(css: str) -> bool:
    """Returns whether a text of CSS nests parentheses or brackets too deeply to be parsed."""
    if css.count("(") + css.count("[") <= MOST_NESTED:
        return False
    depth = 0
    for end in _BRACKET.findall(css):
        depth = max(depth - 1, 0) if end else depth + 1
        if depth > MOST_NESTED:
            return True
    return False


@functools.lru_cache(10_000)
def declared_in(declarations: str) -> tuple[Declared, ...]:
    """Parses the `display`, `visibility` and custom properties in declarations.

    >>> [item.value for item in declared_in("color: red; display: none !important; visibility: var(--v); display: x")]
    ['hide', 'var(--v)']
    """
    parsed = [_declared(name + value) for name, value in _SET.findall(declarations)]
    return tuple(item for item in parsed if item is not None)


@functools.lru_cache(10_000)
def _declared(text: str) -> Declared | None:
    """Parses one declaration; returns None if a browser drops it, or if it nests too deeply."""
    item = None if is_too_deep(text) else tinycss2.parse_one_declaration(text)
    if not isinstance(item, Declaration):
        return None
    name = item.name if item.name[:2] == "--" else item.lower_name
    text = tinycss2.serialize(item.value).strip()
    if name[:2] == "--":
        return Declared(name, text, item.important)
    value = text.lower() if "var(" in text.lower() else outcome_of(name, text)
    return None if value is None else Declared(name, value, item.important)


def outcome_of(name: str, value: str) -> str | None:
    """Returns HIDE, SHOW or INHERIT for a value of a property; None if a browser does not know the value."""
    words = value.lower().split()
    if name == "visibility":
        return _VISIBILITIES.get(words[0]) if len(words) == 1 else None
    if not words or not _DISPLAYS.issuperset(words):
        return None
    return HIDE if words == ["none"] else SHOW
