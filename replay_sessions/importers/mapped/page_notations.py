"""Converts pages in other notations to simplified HTML, so that `find_elements` works on every store.

    html                unchanged
    bracket_lines       WebShop as in ReAct: `[Buy Now]` alone on a line, options as `color [red][blue]`
    nested_angles       AutoWebGLM: `<a[SA]| text <span| more> >`, where [SA] is the name and a bare `< >` groups
    accessibility_tree  WebArena and BrowserGym (accessibility_tree.py)

Names and texts stay the same; only the notation changes.
"""

import re
from collections import Counter
from collections.abc import Callable
from html import escape

from replay_sessions.importers.mapped.accessibility_tree import accessibility_tree

_BUTTON_LINE = re.compile(r"\[([^\[\]]+)\]")
# Options begin in lower case and end with a bracket, because titles have brackets too ("Cable [2-Pack] red").
_OPTION_LINE = re.compile(r"([a-z][\w /&-]*?) ?((?:\[[^\[\]]+\])+)")
_PRODUCT_ID = re.compile(r"B[0-9A-Z]{9}")

_OPEN = r"<(?:(?P<tag>[A-Za-z][\w-]*)(?:\[(?P<name>[^\[\]]*)\])?\|)?"
_TOKEN = re.compile(rf"(?:{_OPEN}|(?P<close>>))(?P<text>[^<>]*)")
# An HTML parser drops these tags or their content outside a table, a document or a media player.
_DIV_TAGS = """
body caption col colgroup frame frameset head html iframe noembed noframes noscript object option optgroup
plaintext script style svg table tbody td template tfoot th thead title tr video xmp"""
_AS_DIV = frozenset(_DIV_TAGS.split())
_VOID = frozenset({"area", "br", "hr", "img", "input", "textarea"})
_VOID_TEXT = {"img": "alt", "area": "alt", "input": "placeholder", "textarea": "placeholder"}
# A parser closes these when another of the same tag opens.
_NOT_NESTED = {"a": "link", "button": "button"}
_LEAF_ONLY = frozenset({"p", "h1", "h2", "h3", "h4", "h5", "h6"})


def _bracket_lines(page: str) -> str:
    """Converts a page of WebShop in the notation of ReAct.

    >>> _bracket_lines("[Back to Search] \\ncolor [red][blue]\\nKettle [2-Pack] steel")
    '<button name="Back to Search">Back to Search</button>\\n<div><span>color</span> <button name="red">red</button> <button name="blue">blue</button></div>\\n<p>Kettle [2-Pack] steel</p>'
    """  # noqa: E501 - a doctest's output is one line
    return "\n".join(_bracket_line(line.strip()) for line in page.split("\n") if line.strip())


def _bracket_line(line: str) -> str:
    if match := _BUTTON_LINE.fullmatch(line):
        name = match[1]
        if name == "Search":
            # Actions of the log type into `search`, but the notation does not show the field.
            return f'<form role="search"><input type="search" name="search">{_named("button", name)}</form>'
        return _named("a" if _PRODUCT_ID.fullmatch(name) else "button", name)
    if match := _OPTION_LINE.fullmatch(line):
        options = " ".join(_named("button", option) for option in _BUTTON_LINE.findall(match[2]))
        return f"<div><span>{escape(match[1], quote=False)}</span> {options}</div>"
    return f"<p>{escape(line, quote=False)}</p>"


def _named(tag: str, name: str) -> str:
    return f'<{tag} name="{escape(name)}">{escape(name, quote=False)}</{tag}>'


def _nested_angles(page: str) -> str:
    """Converts a page in the notation of AutoWebGLM.

    >>> _nested_angles("< <img| logo> <a[SA]| <span| Amazon> > <input[E]| >  >")
    '<div><img alt="logo"><a name="SA"><span>Amazon</span></a><input name="E"></div>'
    """
    first = page.find("<")
    parts: list[str] = [escape(page[:first].strip() if first >= 0 else page, quote=False)]
    open_tags: list[str] = []
    open_counts: Counter[str] = Counter()  # counted, because a search of `open_tags` is slow on deep pages
    for match in _TOKEN.finditer(page, max(first, 0)):
        text = " ".join(match["text"].split())
        if match["close"]:
            if open_tags:
                open_counts[open_tags[-1]] -= 1
            parts.append(_closing(open_tags.pop()) if open_tags else "&gt;")
        else:
            is_leaf = page.startswith(">", match.end())
            tag, attributes = _tag(match["tag"], match["name"], open_counts, is_leaf=is_leaf)
            if tag in _VOID_TEXT and text:
                attributes += f' {_VOID_TEXT[tag]}="{escape(text)}"'
                text = ""
            parts.append(f"<{tag}{attributes}>" + ("</textarea>" if tag == "textarea" else ""))
            open_tags.append(tag)
            open_counts[tag] += 1
        parts.append(escape(text, quote=False))
        if text and page.startswith("<", match.end()):
            parts.append(" ")
    parts.extend(_closing(tag) for tag in reversed(open_tags))
    return "".join(parts)


def _closing(tag: str) -> str:
    return "" if tag in _VOID else f"</{tag}>"


def _tag(tag_name: str | None, name: str | None, open_counts: Counter[str], *, is_leaf: bool) -> tuple[str, str]:
    """Returns a tag and attributes with which an HTML parser keeps the nesting of the notation."""
    tag = (tag_name or "div").lower()
    attributes = f' name="{escape(name)}"' if name else ""
    if open_counts["select"]:
        return "option", attributes
    if tag in ("td", "th"):
        return "div", attributes + ' role="cell"'
    if tag in _AS_DIV or (tag in _LEAF_ONLY and not is_leaf):
        return "div", attributes
    if tag in _NOT_NESTED and open_counts[tag]:
        return "span", attributes + f' role="{_NOT_NESTED[tag]}"'
    return tag, attributes


NOTATIONS: dict[str, Callable[[str], str]] = {
    "html": str,
    "bracket_lines": _bracket_lines,
    "nested_angles": _nested_angles,
    "accessibility_tree": accessibility_tree,
}
