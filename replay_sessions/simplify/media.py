"""Evaluates the conditions of style sheets (`@media`, `@supports`, `@container`) for a window of a given size.

Conditions are True, False, or None if they are not understood. tinycss2 parses them into tokens, in which brackets
contain their tokens, so the evaluation is recursive.

Only a layout could tell the width of a container. It is at most that of the window, which decides some conditions.
"""

import functools
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Literal, NamedTuple

import tinycss2
from tinycss2.ast import DimensionToken, FunctionBlock, IdentToken, LiteralToken, Node, NumberToken, ParenthesesBlock


class Viewport(NamedTuple):
    """The window in which a page is looked at.

    Attributes:
        width, height: Size in CSS pixels.
        is_touch: Whether it has a touch screen and no mouse.
        wide_layout: Layout width of pages without `<meta name=viewport>`; 0 means the width of the window.
    """

    width: float
    height: float
    is_touch: bool = False
    wide_layout: float = 0


ViewportName = Literal["desktop", "phone"]
DESKTOP = Viewport(1280, 800)
VIEWPORTS: dict[ViewportName, Viewport] = {
    "desktop": DESKTOP,
    "phone": Viewport(390, 844, is_touch=True, wide_layout=980),
}

_PIXELS = {"px": 1.0, "em": 16.0, "rem": 16.0, "in": 96.0, "cm": 96 / 2.54, "mm": 9.6 / 2.54}
_COMPARISONS: dict[str, Callable[[float, float], bool]] = {
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "=": operator.eq,
}  # fmt: skip
_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "="}
_MEDIA_TYPES = {"all": True, "and": True, "only": True, "screen": True}
_VALUES: dict[
    str, float | str
] = {  # a usual browser on a usual screen; "none", "no-preference" and 0 are false as conditions without a value
    "prefers-color-scheme": "light",
    "prefers-reduced-motion": "no-preference",
    "prefers-contrast": "no-preference",
    "forced-colors": "none",
    "inverted-colors": "none",
    "color-gamut": "srgb",
    "display-mode": "browser",
    "scripting": "enabled",
    "grid": "0",
    "monochrome": "0",
}
_FALSE = frozenset({"none", "no-preference", "0"})
_OTHER_VENDORS = ("-moz-", "-ms-", "-o-", "-khtml-")
# Properties of WebKit only; Chromium has the others that begin with -webkit-.
_APPLE = frozenset({"-webkit-overflow-scrolling", "-webkit-touch-callout"})

_CONTAINER_STEP = 64  # distance of the widths at which a condition is evaluated, in pixels

Features = Mapping[str, float | str]  # numbers can be compared
Evaluate = Callable[[list[Node]], bool | None]


@functools.lru_cache(2_000)
def matches_media(queries: str, viewport: Viewport) -> bool | None:
    """Returns whether a list of media queries matches; None if it is not understood.

    >>> phone = VIEWPORTS["phone"]
    >>> [matches_media(query, phone) for query in ("(width >= 40rem)", "print, (max-width: 767px)", "(unheard-of: 1)")]
    [False, True, None]
    >>> matches_media("print and screen", phone)
    False
    """
    evaluate = functools.partial(_feature, _features_of(viewport))
    results = [_query(query, evaluate) for query in split(_tokens(queries))]
    return _any(results) if results else True


@functools.lru_cache(2_000)
def matches_container(query: str, viewport: Viewport) -> bool | None:
    """Returns whether a container matches a query; None if that depends on a width up to that of the viewport.

    >>> [matches_container(f"card ({query})", DESKTOP) for query in ("width > 80em", "width < 90em", "width > 9em")]
    [False, True, None]
    """
    tokens = _tokens(query)
    if tokens and isinstance(tokens[0], IdentToken) and not _is_not(tokens[0]):
        del tokens[0]  # the name of the container
    widths = [viewport.width, *range(0, int(viewport.width), _CONTAINER_STEP)]
    results = [
        _condition(tokens, functools.partial(_feature, dict.fromkeys(("width", "inline-size"), width)))
        for width in widths
    ]
    return results[0] if len(set(results)) == 1 else None


@functools.lru_cache(2_000)
def supports(condition: str) -> bool | None:
    """Returns whether a browser meets an `@supports` condition: it has all properties but those of other vendors."""
    return _condition(_tokens(condition), _supports_feature)


def split(tokens: Sequence[Node], separator: str = ",") -> list[list[Node]]:
    """Splits a list of tokens at a separator, and removes the white space around the parts."""
    parts: list[list[Node]] = [[]]
    for token in tokens:
        if token == separator:
            parts.append([])
        elif token.type != "whitespace" or parts[-1]:
            parts[-1].append(token)
    for part in parts:
        while part and part[-1].type == "whitespace":
            part.pop()
    return parts if any(parts) else []


def _tokens(text: str) -> list[Node]:
    return list(tinycss2.parse_component_value_list(text, skip_comments=True))


def _query(tokens: list[Node], evaluate: Evaluate) -> bool | None:
    """Evaluates one media query: an optional type, and conditions."""
    words = [token for token in tokens if token.type != "whitespace"]
    is_negated = len(words) > 1 and _is_not(words[0]) and isinstance(words[1], IdentToken)
    if is_negated:
        words = words[1:]
    result: bool | None = True
    while words and isinstance(words[0], IdentToken) and not _is_not(words[0]):
        result = _MEDIA_TYPES.get(words.pop(0).lower_value, False) and result
    if words:
        result = all_of([result, _condition(words, evaluate)])
    return _not(result) if is_negated else result


def _condition(tokens: list[Node], evaluate: Evaluate) -> bool | None:
    """Evaluates terms in brackets that are joined by `and` or `or`, each possibly after `not`."""
    results: list[bool | None] = []
    is_negated, is_any = False, False
    for token in tokens:
        if isinstance(token, IdentToken) and token.lower_value in ("and", "or", "not"):
            is_negated = token.lower_value == "not"
            is_any = is_any or token.lower_value == "or"
        elif isinstance(token, (ParenthesesBlock, FunctionBlock)):
            result = _term(token, evaluate)
            results.append(_not(result) if is_negated else result)
            is_negated = False
        elif token.type != "whitespace":
            return None
    return None if not results else _any(results) if is_any else all_of(results)


def _term(token: ParenthesesBlock | FunctionBlock, evaluate: Evaluate) -> bool | None:
    if isinstance(token, FunctionBlock):
        return True if token.lower_name == "selector" else None
    words = [inner for inner in token.content if inner.type != "whitespace"]
    is_nested = words and (isinstance(words[0], (ParenthesesBlock, FunctionBlock)) or _is_not(words[0]))
    return _condition(words, evaluate) if is_nested else evaluate(words)


def _is_not(token: Node) -> bool:
    return isinstance(token, IdentToken) and bool(token.lower_value == "not")


def _supports_feature(words: list[Node]) -> bool | None:
    name = words[0].lower_value if words and isinstance(words[0], IdentToken) else ""
    return None if not name else not (name.startswith(_OTHER_VENDORS) or name in _APPLE)


def _features_of(viewport: Viewport) -> Features:
    ratio = viewport.width / viewport.height
    resolution = 3.0 if viewport.is_touch else 1.0
    return _VALUES | {
        "width": viewport.width,
        "height": viewport.height,
        "device-width": viewport.width,
        "device-height": viewport.height,
        "aspect-ratio": ratio,
        "device-aspect-ratio": ratio,
        "resolution": resolution,
        "-webkit-device-pixel-ratio": resolution,
        "color": 8.0,
        "orientation": "portrait" if ratio <= 1 else "landscape",
        **dict.fromkeys(("hover", "any-hover"), "none" if viewport.is_touch else "hover"),
        **dict.fromkeys(("pointer", "any-pointer"), "coarse" if viewport.is_touch else "fine"),
    }


def _feature(features: Features, words: list[Node]) -> bool | None:
    """Evaluates one pair of brackets: `name`, `name: value`, `name >= value`, `value <= name < value`."""
    parts: list[str | float | None] = []  # names, numbers, and comparisons
    for word in words:
        if isinstance(word, IdentToken):
            parts.append(word.lower_value)
        elif isinstance(word, LiteralToken) and parts and word.value == "=" and parts[-1] in ("<", ">"):
            parts[-1] = f"{parts[-1]}="
        elif isinstance(word, LiteralToken):
            parts.append(word.value)
        else:
            number = _number(word)
            if len(parts) > 1 and parts[-1] == "/":
                parts.pop()
                above = parts.pop()
                number = above / number if isinstance(above, float) and number else None
            parts.append(number)
    match parts:
        case [str(name)]:
            value = features.get(name)
            return _unknown(name) if value is None else value not in _FALSE
        case [str(name), ":", value]:
            return _compare_plain(features, name, value)
        case [str(name), str(comparison), value]:
            return _compare(features, name, comparison, value)
        case [value, str(comparison), str(name)]:
            return _compare(features, name, _MIRRORED.get(comparison, ""), value)
        case [low, str(first), str(name), str(second), high]:
            is_above = _compare(features, name, _MIRRORED.get(first, ""), low)
            return all_of([is_above, _compare(features, name, second, high)])
    return None


def _number(token: Node) -> float | None:
    """Returns a number, a length in pixels, or a resolution in device pixels per pixel; None for other tokens."""
    if isinstance(token, NumberToken):
        return float(token.value)
    if not isinstance(token, DimensionToken):
        return None
    scale = _PIXELS.get(token.lower_unit) or {"dppx": 1.0, "x": 1.0, "dpi": 1 / 96}.get(token.lower_unit)
    return token.value * scale if scale else None


def _compare_plain(features: Features, name: str, value: str | float | None) -> bool | None:
    for bound, comparison in (("min-", ">="), ("max-", "<=")):
        if name.startswith((bound, f"-webkit-{bound}")):
            return _compare(features, name.replace(bound, "", 1), comparison, value)
    return _compare(features, name, "=", value)


def _compare(features: Features, name: str, comparison: str, value: str | float | None) -> bool | None:
    actual = features.get(name)
    if actual is None:
        return _unknown(name)
    if isinstance(actual, str):
        return actual == (f"{value:g}" if isinstance(value, float) else value) if comparison == "=" else None
    return _COMPARISONS[comparison](actual, value) if isinstance(value, float) and comparison in _COMPARISONS else None


def _unknown(name: str) -> bool | None:
    """Returns the value of an unknown feature: False for features of other vendors, otherwise None."""
    return False if name.startswith(_OTHER_VENDORS) or name.startswith(("min--moz", "max--moz")) else None


def _not(result: bool | None) -> bool | None:
    return None if result is None else not result


def all_of(results: list[bool | None]) -> bool | None:
    """Joins conditions by `and`; None means not understood."""
    return False if False in results else None if None in results else True


def _any(results: list[bool | None]) -> bool | None:
    return True if True in results else None if None in results else False
