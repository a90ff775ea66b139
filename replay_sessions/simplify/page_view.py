"""A simplified page -> one HTML document that a person can look at and that does nothing.

    simplified page ─► lexbor's tree ─► only what is listed here, written anew ─► document for <iframe sandbox srcdoc=…>

Whose pages these are, and what they must not do. A page in a store may hold anything: logs come from the open web, and
a store may come from somebody else. Whoever looks at one in a report must not thereby run its code, load from anywhere
(which tells somebody that, when and from where the page was looked at), send a form, be led to another page, or be
shown something in front of what is around the frame. So

1. nothing is passed on: the page is parsed as a browser would, and what is written is made of the tags and attributes
   listed below alone. No script, frame, object, style sheet, image, address or handler is among them; forms become
   plain boxes; text and attribute values are escaped, so that a second parser reads the same elements;
2. the document's own Content-Security-Policy allows one style sheet, by its hash, and nothing else at all;
3. the caller's `<iframe sandbox>` (without `allow-scripts`) stands around it, so that 1 and 2 would both have to fail
   before anything runs. In an attribute the document is escaped: `srcdoc="{html.escape(document)}"`.

A frame of `srcdoc` is also held to the policy of the page around it: where that has a `style-src` without
'unsafe-inline', STYLE_SOURCE belongs into it.

What the page tells is kept: its words, its title, its fields and what is chosen in them, and the `name` of all that can
be acted on. What a browser would hold back (closed details, options of a list, descriptions of images) is shown, since
a model that reads the page reads it too.
"""

from base64 import b64encode
from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from html import escape
from importlib.resources import files
from types import MappingProxyType

from selectolax.lexbor import LexborHTMLParser, LexborNode

from replay_sessions.elements import Element, find_elements

_CARDS, _MARKS = ((files("replay_sessions.simplify") / f"page_{of}.css").read_text("utf-8") for of in ("view", "marks"))


def _source(style: str) -> str:
    return f"'sha256-{b64encode(sha256(style.encode()).digest()).decode()}'"


STYLE_SOURCE = _source(_CARDS + _MARKS)
_NO_MARKS: Mapping[str, str] = MappingProxyType({})


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_KEPT = _words(
    "a abbr address article aside b bdi bdo big blockquote br button caption cite code col colgroup dd del details dfn "
    "div dl dt em fieldset figcaption figure footer h1 h2 h3 h4 h5 h6 header hgroup hr i input ins kbd label legend li "
    "main mark meter nav ol p pre progress q rp rt ruby s samp section small span strike strong sub summary sup table "
    "tbody td textarea tfoot th thead time tr tt u ul var wbr"
)
# Every other tag becomes a span, such as what would hide its content (select), load (img) or is a site's own.
_REPLACED = dict.fromkeys(("body", "center", "dialog", "form", "frameset", "menu", "search"), "div") | dict.fromkeys(
    ("listing", "plaintext", "xmp"), "pre"
)
_LEFT_OUT = _words("base embed frame iframe link meta noembed noframes param script source style template track")
_VOID = frozenset({"br", "col", "hr", "input", "wbr"})
_FIELDS = frozenset({"input", "textarea"})
_FOREIGN = frozenset({"svg", "math"})
_ATTRIBUTES = _words(
    "aria-checked aria-current aria-disabled aria-expanded aria-label aria-level aria-pressed aria-selected "
    "aria-valuenow aria-valuetext checked class colspan contenteditable data-letter dir disabled for id lang max min "
    "name placeholder readonly role rows rowspan scope span start step title value"
)
_PARTS = frozenset({"body", "select"})  # tags that are replaced and that the style sheet knows
_INPUT_TYPES = _words(
    "button checkbox color date datetime-local email hidden month number password radio range reset search submit tel "
    "text time url week"
)
_CHOICES = frozenset({"checkbox", "radio", "range"})  # fields that show no label of their own
_BUTTON_TYPES = frozenset({"file", "image"})  # these open a window of the system, or load


def page_document(html: str, *, marks: Mapping[str, str] = _NO_MARKS, style: str = _CARDS) -> str:
    """The document that shows a simplified page and can do nothing (the threat model stands above).

    Args:
        html: A simplified page, or anything else: what is not listed in this module is not written.
        marks: The name of an element -> how it is marked. A mark is one or more words, which also are its label; the
            style sheet knows `logged` (blue, solid), `chosen` (orange, dashed) and both together (green, double), and
            gives other words a dotted grey outline. In the document it is the attribute `data-mark` of the element, or
            of a span around it where the element is a field. Of several elements with one name the first is marked; a
            name that the page lacks marks nothing (`replay_sessions.elements.page_names` tells).
        style: A style sheet in place of the plain cards; it comes from this project, never from a store.

    Returns:
        One document without anything outside it. Each element of `find_elements(html)` is in it under its `name`, with
        `data-acts="click"` or `"type"`.

    >>> document = page_document('<a name="cart" href="/cart" onclick="buy()">Cart</a>', marks={"cart": "logged"})
    >>> '<a name="cart" data-acts="click" data-mark="logged">Cart</a>' in document
    True
    """
    style += _MARKS
    head = (
        "<!DOCTYPE html><html><head>"
        f'<meta http-equiv="Content-Security-Policy" content="default-src \'none\'; style-src {_source(style)}">'
        f'<meta charset="utf-8"><style>{style}</style></head><body>'
    )
    return head + "".join(_Writer(find_elements(html), marks).pieces(LexborHTMLParser(html).root)) + "</body></html>"


def page_frame(html: str, *, marks: Mapping[str, str]) -> str:
    """The document in a frame that runs nothing, for a page of ours or a notebook."""
    document = escape(page_document(html, marks=marks))
    return f'<iframe sandbox srcdoc="{document}" style="width:100%;height:70vh;border:1px solid #8886"></iframe>'


class _Writer:
    """Writes a parsed page anew.

    Args:
        elements: What can be acted on.
        marks: The marks to be placed.
    """

    def __init__(self, elements: Sequence[Element], marks: Mapping[str, str]) -> None:
        self._acts = {element.name: element.accepts for element in elements}
        self._marks = dict(marks)  # those that are not yet placed

    def pieces(self, root: LexborNode | None) -> Iterator[str]:
        """Yields the content of the root; keeps its own stack, since pages may nest deeper than Python does."""
        node = None if root is None else root.first_child
        open_elements: list[tuple[LexborNode, str, bool]] = []
        is_foreign = False
        while True:
            while node is not None:
                if node.is_text_node:
                    yield _escaped(node.text_content or "")
                elif node.is_element_node and node.tag:
                    start, end, goes_inside = self._element(node, node.tag, is_foreign)
                    yield start
                    if goes_inside and node.first_child is not None:
                        open_elements.append((node, end, is_foreign))
                        is_foreign = is_foreign or node.tag in _FOREIGN
                        node = node.first_child
                        continue
                    yield end
                node = node.next
            if not open_elements:
                return
            node, end, is_foreign = open_elements.pop()
            yield end
            node = node.next

    def _element(self, node: LexborNode, tag: str, is_foreign: bool) -> tuple[str, str, bool]:
        """Returns the text before and behind an element's content, and whether the content is written."""
        attributes = node.attributes
        if tag == "head":
            return "", "", True
        if tag == "title" and not is_foreign:
            text = _escaped(node.text(deep=True).strip())
            named = {"name": name} if (name := attributes.get("name")) else {}
            return self._start("p", named, part="title"), f"{text}</p>", False
        if tag in _LEFT_OUT:
            if attributes.get("name") not in self._acts:
                # Within svg and math a style or script is an element like others, and may hold some that are named.
                return "", "", is_foreign and node.css_first("[name]") is not None
            return self._start("span", attributes), "</span>", False
        if tag in _FIELDS:
            return self._field(node, tag, attributes, is_foreign)
        if tag in ("img", "area"):
            alt = attributes.get("alt") or ""
            if not alt and not attributes.get("name"):
                return "", "", False
            return self._start("span", {"role": "img", **attributes}, part="image") + _escaped(alt), "</span>", True
        if tag == "option":
            chosen = {"aria-selected": "true"} if "selected" in attributes else {}
            return self._start("span", {"role": "option", **chosen, **attributes}, part=tag), "</span> ", True
        return self._plain(tag, attributes, is_foreign)

    def _plain(self, tag: str, attributes: Mapping[str, str | None], is_foreign: bool) -> tuple[str, str, bool]:
        """An element that is written as it is, or as the plain box that takes its place."""
        written = _REPLACED.get(tag, tag if tag in _KEPT else "span")
        if is_foreign:
            written = "span"  # table parts, for one, would be ignored where there is no table
        start = self._start(written, attributes, tag if tag in _PARTS else None)
        if written == "details":
            start = start[:-1] + " open>"
        elif written == "pre":
            start += "\n"  # the first line break in it is no text
        if written in _VOID:
            return start, "", True
        return start, f"</{written}>", True

    def _field(
        self, node: LexborNode, tag: str, attributes: dict[str, str | None], is_foreign: bool
    ) -> tuple[str, str, bool]:
        """A field, with a span around it where it is marked: it can hold no label itself."""
        mark = self._marks.pop(attributes.get("name") or "", None)
        before, behind = ("", "") if mark is None else (f"<span{_attribute('data-mark', mark)}>", "</span>")
        if tag == "textarea" and is_foreign:  # not a field there, and may hold elements
            return before + self._start("span", {"role": "textbox", **attributes}), f"</span>{behind}", True
        kind = (attributes.get("type") or "text").strip().lower()
        if kind in _BUTTON_TYPES:
            label = attributes.get("value") or attributes.get("alt") or attributes.get("aria-label") or kind
            attributes, kind = {**attributes, "value": label}, "button"
        start = before + self._start(tag, attributes)
        if tag == "textarea":
            return f"{start}\n{_escaped(node.text(deep=True))}", f"</textarea>{behind}", False
        if kind in _INPUT_TYPES:
            start = start[:-1] + _attribute("type", kind) + ">"
        if kind in _CHOICES and (aria_label := attributes.get("aria-label")):
            behind = f' <small data-part="name">{_escaped(aria_label)}</small>{behind}'
        return start, behind, True

    def _start(self, tag: str, attributes: Mapping[str, str | None], part: str | None = None) -> str:
        written = [_attribute(key, value) for key, value in attributes.items() if key in _ATTRIBUTES]
        if part is not None:
            written.append(_attribute("data-part", part))
        if name := attributes.get("name"):
            if name in self._acts:
                written.append(_attribute("data-acts", self._acts[name]))
            if (mark := self._marks.pop(name, None)) is not None:
                written.append(_attribute("data-mark", mark))
        return f"<{tag}{''.join(written)}>"


def _attribute(key: str, value: str | None) -> str:
    return f" {key}" if value is None else f' {key}="{_escaped(value)}"'


def _escaped(text: str) -> str:
    """Text as HTML; a carriage return that got into a page as a reference would else be read as a line break."""
    return escape(text).replace("\r", "&#13;")
