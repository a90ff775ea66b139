"""Converts an accessibility tree in the notation of WebArena and BrowserGym to simplified HTML.

    [1] RootWebArea 'One Stop Market' focused: True
        [12] link 'My Account', clickable           the id becomes the name of the element
        StaticText '$12.00'

Each line is a node, indented below its parent. Ids of nodes that cannot be acted on are dropped, and so are texts that
repeat the text of their parent. States (checked, disabled, selected …) are written as raw pages have them.
"""

import ast
import re
from html import escape
from typing import NamedTuple

_NODE = re.compile(r"(?:\[(?P<id>[\w-]+)\] )?(?P<role>[A-Za-z]\w*)(?P<rest>| ['\"].*|,.*)")
_QUOTED = r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\""
_NAME = re.compile(rf" ({_QUOTED})")
_VALUE = re.compile(rf"\bvalue[=:] ?({_QUOTED})")
_STATE = re.compile(
    rf"{_QUOTED}|\b(checked|disabled|expanded|pressed|selected)[=:] ?(['\"]?)(true|mixed)\b\2", re.IGNORECASE
)
_FLAGS = {"checked": ("input",), "disabled": ("input", "button")}  # states that are attributes of these tags
_ICONS = re.compile("[\ue000-\uf8ff]")  # private-use characters of icon fonts
_INPUTS = {
    "combobox": "text", "searchbox": "search", "spinbutton": "number", "textbox": "text",
    "checkbox": "checkbox", "radio": "radio", "slider": "range", "switch": "checkbox",
}  # fmt: skip
_CLICKED = {"button": "button", "link": "a", "menuitem": "span", "option": "span", "tab": "span", "treeitem": "span"}
_TAGS = {"RootWebArea": "title", "StaticText": "span", "heading": "h2", "paragraph": "p"}
_LEAVES = ("title", "h2", "p")


class _Open(NamedTuple):
    """A node with further lines to come: its indentation, its text, and its end tag."""

    indent: int
    text: str
    end: str


def accessibility_tree(page: str) -> str:
    """Converts an accessibility tree to simplified HTML.

    >>> accessibility_tree("[1] RootWebArea 'Shop'\\n\\t[2] link 'Mug', clickable\\n\\t\\tStaticText 'Mug'\\n\\tStaticText '$3'")
    '<title>Shop</title><a name="2">Mug</a><span>$3</span>'
    """  # noqa: E501 - a doctest's input is one line
    parts: list[str] = []
    around: list[_Open] = []
    for line in page.split("\n"):
        if not (text := line.strip()):
            continue
        indent = len(line) - len(line.lstrip())
        while around and around[-1].indent >= indent:
            parts.append(around.pop().end)
        node = _NODE.fullmatch(text)
        if node is None:
            parts.append(f"<p>{escape(text, quote=False)}</p>")
            continue
        name = _unquoted(_NAME.match(node["rest"]))
        shown = "" if around and name in around[-1].text else name
        start, end = _tags(node, shown, {part.end for part in around})
        parts.append(start)
        around.append(_Open(indent, name or (around[-1].text if around else ""), end))
    return "".join(parts + [part.end for part in reversed(around)])


def _tags(node: re.Match[str], text: str, open_ends: set[str]) -> tuple[str, str]:
    """Returns the HTML before and after a node's children; children of a void element follow it."""
    role, rest, content = node["role"], node["rest"], escape(text, quote=False)
    is_clicked = role in _CLICKED or "clickable" in rest.rpartition("'")[2]
    name = f' name="{escape(node["id"])}"' if node["id"] and (is_clicked or role in _INPUTS) else ""
    if kind := _INPUTS.get(role):
        value = _unquoted(_VALUE.search(rest))
        filled = (f' value="{escape(value)}"' if value else "") + _states("input", rest)
        return f'<input type="{kind}"{name} placeholder="{escape(text)}"{filled}>', ""
    if role in ("img", "image") and not name:
        return f'<img alt="{escape(text)}">' if text else "", ""
    tag = _CLICKED.get(role) or _TAGS.get(role, "div")
    if tag in _LEAVES or role == "StaticText":
        return f"<{tag}>{content}</{tag}>" if text else "", ""
    if f"</{tag}>" in open_ends and tag in ("a", "button"):  # a parser would close the outer element
        tag = "span"
    kept_role = f' role="{role}"' if tag == "span" and name else ""
    states = _states(tag, rest) if name else ""
    return f"<{tag}{name}{kept_role}{states}>{content}", f"</{tag}>"


def _states(tag: str, rest: str) -> str:
    """Returns the attributes for the states of a node, which are on its line behind the name."""
    states = {name.lower(): value.lower() for name, _, value in _STATE.findall(rest) if name}
    return "".join(
        f" {name}" if value == "true" and tag in _FLAGS.get(name, ()) else f' aria-{name}="{value}"'
        for name, value in sorted(states.items())
    )


def _unquoted(match: re.Match[str] | None) -> str:
    """Returns the text of a name or a value that Python's `repr` wrote; "" without a match."""
    if match is None:
        return ""
    try:
        text = str(ast.literal_eval(match[1]))
    except (ValueError, SyntaxError):
        text = match[1][1:-1]
    return " ".join(_ICONS.sub("", text).split())
