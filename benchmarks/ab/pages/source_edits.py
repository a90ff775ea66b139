"""Edits in the source of a page: what a selector selects is changed, and every other byte stays as it was.

A parser that writes the page out anew would change more than was asked for (white space, quotes, closing slashes), and
an agent that reads the page as text could answer that. So a parser only says which elements a selector selects:

    source ─► tags, numbered ─► a copy with the numbers as attributes ─► Lexbor: selector -> numbers ─► places in source
"""

import html
import re
from bisect import bisect_left
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from selectolax.lexbor import LexborHTMLParser, LexborNode, SelectolaxError

from replay_sessions.foundation.errors import BadConfig, BadSession

_MARK = "shop-r1-at"
_ATTRIBUTES = r"""(?:[^>"']|"[^"]*"|'[^']*')*"""
_TAG = re.compile(rf"<!--.*?-->|<!{_ATTRIBUTES}>|<(?P<end>/?)(?P<name>[a-zA-Z][^\s/>]*){_ATTRIBUTES}>", re.DOTALL)
_ATTRIBUTE = re.compile(r"""([^\s=>"'/]+)(?:\s*=\s*("[^"]*"|'[^']*'|[^\s>"']+))?""")
_RAW = re.compile(r"script|style|textarea|title", re.IGNORECASE)  # no tags inside
_VOID = re.compile("area|base|br|col|embed|hr|img|input|link|meta|param|source|track|wbr")

Edit = tuple[int, int, str]  # from where to where in the source, and what comes there


class ElementSpan(NamedTuple):
    """Offsets of an element in the source: `<a …>` from start to inner, its end tag from inner_end to end."""

    start: int
    inner: int
    inner_end: int
    end: int


class SourcePage:
    """A page whose elements can be found in its source."""

    def __init__(self, source: str) -> None:
        self.source = source
        self._spans, marked = _read(source)
        self._document = LexborHTMLParser(marked)

    def select(self, selector: str) -> list[ElementSpan]:
        """Where the elements that a CSS selector selects stand, in the order of the page.

        Raises:
            BadConfig: It is no selector.
            BadSession: The page's end tags do not show where such an element ends.
        """
        try:
            nodes = self._document.css(selector)
        except SelectolaxError as error:
            raise BadConfig(f"{selector!r} is no CSS selector that is understood") from error
        numbered = {number: node for node in nodes if (number := _number(node)) is not None}
        for number, node in numbered.items():
            self._check(number, node)
        return [self._spans[number] for number in sorted(numbered)]

    def _check(self, number: int, node: LexborNode) -> None:
        """What a browser puts inside an element must be what stands between its tags."""
        span = self._spans[number]
        inside = {_number(child) for child in node.css(f"[{_MARK}]")} - {number}
        if inside != set(range(number + 1, bisect_left(self._spans, (span.inner_end,)))):
            raise BadSession(
                f"{self.source[span.start : span.inner]!r:.80} has no end tag of its own, so rules cannot change it: "
                "give the change as a function"
            )


def _read(source: str) -> tuple[list[ElementSpan], str]:
    """The spans of all elements in the order of their start tags, and the source with their numbers in them."""
    spans: list[ElementSpan] = []
    marked: list[str] = []
    opened: list[tuple[str, int]] = []  # name and number of what has no end yet
    done = at = 0
    while tag := _TAG.search(source, at):
        at = tag.end()
        name = (tag["name"] or "").lower()
        if not name:  # a comment or a doctype
            continue
        if tag["end"]:
            _close(name, opened, spans, tag)
            continue
        number, after_name = len(spans), tag.end("name")
        marked += [source[done:after_name], f' {_MARK}="{number}"']
        done = after_name
        spans.append(ElementSpan(tag.start(), at, at, at))
        if _VOID.fullmatch(name):
            continue
        opened.append((name, number))
        if _RAW.fullmatch(name):
            end = re.compile(rf"</{name}", re.IGNORECASE).search(source, at)
            at = end.start() if end else len(source)
    for _, number in opened:
        spans[number] = spans[number]._replace(inner_end=len(source), end=len(source))
    return spans, "".join([*marked, source[done:]])


def _close(name: str, opened: list[tuple[str, int]], spans: list[ElementSpan], tag: re.Match[str]) -> None:
    """An end tag closes the last open element of its name, and what was opened inside it and never closed."""
    if all(name != other for other, _ in opened):
        return
    while opened:
        other, number = opened.pop()
        own = other == name
        spans[number] = spans[number]._replace(inner_end=tag.start(), end=tag.end() if own else tag.start())
        if own:
            return


def _number(node: LexborNode) -> int | None:
    number = node.attributes.get(_MARK)
    return int(number) if number else None


def spliced(source: str, edits: Iterable[Edit]) -> str:
    """The source with pieces of it replaced; they do not overlap.

    >>> spliced("a red kettle", [(2, 5, "blue"), (0, 1, "one")])
    'one blue kettle'
    """
    for start, end, new in sorted(edits, reverse=True):
        source = source[:start] + new + source[end:]
    return source


def attribute_of(tag: str, name: str) -> str | None:
    """The value of an attribute in a start tag; None where it has none."""
    match = _attributes(tag).get(name)
    return None if match is None else html.unescape((match[2] or "").strip("\"'"))


def with_attributes(tag: str, values: Mapping[str, str]) -> str:
    """A start tag with attributes set.

    >>> with_attributes('<input name="q" value=""/>', {"value": 'a "b"'})
    '<input name="q" value="a &quot;b&quot;"/>'
    >>> with_attributes("<a href=x>", {"title": "New"})
    '<a href=x title="New">'
    """
    for name, value in values.items():
        text = f'{name}="{html.escape(value, quote=False).replace(chr(34), "&quot;")}"'
        if match := _attributes(tag).get(name):
            tag = tag[: match.start()] + text + tag[match.end() :]
        else:
            end = len(tag) - len("/>" if tag.endswith("/>") else ">")
            tag = f"{tag[:end].rstrip()} {text}{tag[end:]}"
    return tag


def _attributes(tag: str) -> dict[str, re.Match[str]]:
    """The attributes of a start tag, by name; of two of one name the first counts."""
    start = re.match(r"<[^\s/>]+", tag)
    assert start is not None  # it is a start tag
    attributes: dict[str, re.Match[str]] = {}
    for attribute in _ATTRIBUTE.finditer(tag, start.end()):
        attributes.setdefault(attribute[1].lower(), attribute)
    return attributes


def replaced_in_texts(inner: str, words: Mapping[str, str]) -> str:
    """The source between two tags with words replaced in its texts, never in its tags.

    >>> replaced_in_texts('Buy <a title="Buy">Buy now</a> &amp; run', {"Buy": "Run", "run": "<buy>"})
    'Run <a title="Buy">Run now</a> &amp; &lt;buy&gt;'
    """
    olds = re.compile("|".join(re.escape(old) for old in sorted(words, key=len, reverse=True)))
    pieces, at = [], 0
    for tag in _TAG.finditer(inner):
        pieces += [_replaced(inner[at : tag.start()], olds, words), tag[0]]
        at = tag.end()
    return "".join([*pieces, _replaced(inner[at:], olds, words)])


def _replaced(text: str, olds: re.Pattern[str], words: Mapping[str, str]) -> str:
    plain = html.unescape(text)
    new = olds.sub(lambda match: words[match[0]], plain)
    return text if new == plain else html.escape(new, quote=False)
