"""Turns a simplified page into a static HTML document that is safe to look at.

    simplified page ─► lexbor's tree ─► only what is listed here, written anew ─► document for <iframe sandbox srcdoc=…>

Threat model: a page in a store may hold anything, because logs come from the open web, and a store may come from a
third party. Viewing a page in a report must not run its code, load anything (which reveals that, when and from where
the page was viewed), send a form, navigate to another page, or cover anything outside the frame. So

1. nothing is copied: the page is parsed as a browser would parse it, and only the tags and attributes listed below are
   written. No script, frame, object, style sheet, image, URL or handler is among them; forms become plain boxes; text
   and attribute values are escaped, so that a second parser reads the same elements;
2. the document's own Content-Security-Policy allows one style sheet, by its hash, and nothing else;
3. the caller puts it into an `<iframe sandbox>` (without `allow-scripts`), so 1 and 2 would both have to fail before
   anything runs. In an attribute the document is escaped: `srcdoc="{html.escape(document)}"`.

The policy of the page around a `srcdoc` frame also applies to the frame: if it has a `style-src` without
'unsafe-inline', it must contain STYLE_SOURCE.

The content stays: words, title, fields with their choices, and the `name` of each element. Content that a browser would
not show (closed details, options of a list, descriptions of images) is shown, because a model reads it too.
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
# All other tags become spans, such as those that would hide their content (select) or load (img), and custom elements.
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
_PARTS = frozenset({"body", "select"})  # replaced tags for which the style sheet has rules
_INPUT_TYPES = _words(
    "button checkbox color date datetime-local email hidden month number password radio range reset search submit tel "
    "text time url week"
)
_CHOICES = frozenset({"checkbox", "radio", "range"})  # fields that do not show their own label
_BUTTON_TYPES = frozenset({"file", "image"})  # shown as buttons: they would open a file dialog, or load


def page_document(html: str, *, marks: Mapping[str, str] = _NO_MARKS, style: str = _CARDS) -> str:
    """Returns a static document that shows a simplified page (threat model: see the module).

    Args:
        html: A simplified page, or any other HTML: only the tags and attributes listed in this module are written.
        marks: Mark of each element to be marked, by its name. A mark is one or more words, which are also its label.
            The style sheet knows `logged` (blue, solid), `chosen` (orange, dashed) and both together (green, double),
            and gives other words a dotted grey outline. The mark becomes the attribute `data-mark` of the element, or
            of a span around it if the element is a field. If several elements have the name, the first is marked; names
            that are not on the page are ignored (`replay_sessions.elements.page_names` lists those that are).
        style: A style sheet instead of the default one; it must come from this project, never from a store.

    Returns:
        A self-contained document. Each element of `find_elements(html)` is in it under its `name`, with
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
    """Returns an `<iframe sandbox>` with the document, for a report or a notebook."""
    document = escape(page_document(html, marks=marks))
    return f'<iframe sandbox srcdoc="{document}" style="width:100%;height:70vh;border:1px solid #8886"></iframe>'


class _Writer:
    """Writes the document's body from a parsed page.

    Args:
        elements: Elements of the page that can be acted on.
        marks: Marks by the names of their elements.
    """

    def __init__(self, elements: Sequence[Element], marks: Mapping[str, str]) -> None:
        self._acts = {element.name: element.accepts for element in elements}
        self._marks = dict(marks)  # marks that are not yet written

    def pieces(self, root: LexborNode | None) -> Iterator[str]:
        """Yields the content of the root; keeps its own stack, because pages may exceed Python's recursion limit."""
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
        """Returns the HTML before and behind an element's content, and whether the content is written."""
        attributes = node.attributes
        if tag == "head":
            return "", "", True
        if tag == "title" and not is_foreign:
            text = _escaped(node.text(deep=True).strip())
            named = {"name": name} if (name := attributes.get("name")) else {}
            return self._start("p", named, part="title"), f"{text}</p>", False
        if tag in _LEFT_OUT:
            if attributes.get("name") not in self._acts:
                # Inside svg and math, a style or script is an ordinary element, and may contain elements with names.
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
        """Returns the result of `_element` for an element with its own tag, or with the tag that replaces it."""
        new_tag = _REPLACED.get(tag, tag if tag in _KEPT else "span")
        if is_foreign:
            new_tag = "span"  # for example, a parser ignores parts of a table outside a table
        start = self._start(new_tag, attributes, tag if tag in _PARTS else None)
        if new_tag == "details":
            start = start[:-1] + " open>"
        elif new_tag == "pre":
            start += "\n"  # parsers drop the first line break of a pre
        if new_tag in _VOID:
            return start, "", True
        return start, f"</{new_tag}>", True

    def _field(
        self, node: LexborNode, tag: str, attributes: dict[str, str | None], is_foreign: bool
    ) -> tuple[str, str, bool]:
        """Returns the result of `_element` for a field; a span shows its mark, because a field cannot show a label."""
        mark = self._marks.pop(attributes.get("name") or "", None)
        before, behind = ("", "") if mark is None else (f"<span{_attribute('data-mark', mark)}>", "</span>")
        if tag == "textarea" and is_foreign:  # there it is no field, and may contain elements
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
    """Escapes a text for HTML; a carriage return from a character reference would otherwise become a line break."""
    return escape(text).replace("\r", "&#13;")
