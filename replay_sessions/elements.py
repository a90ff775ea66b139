"""Finds the named elements of a simplified page that a shopper can click or type into.

In simplified HTML (Shop-R1, section 3.1) a `name` marks an element that can be acted on, and an action carries that
name. Agents that choose among elements, and the audit that checks whether a logged name is on its page, read pages
through `find_elements`; the policy itself reads the page's text.
"""

from typing import TYPE_CHECKING, Literal

import msgspec

if TYPE_CHECKING:  # the page engine is imported when the first page is parsed
    from selectolax.lexbor import LexborHTMLParser, LexborNode

Accepts = Literal["click", "type"]

# Named elements of these tags cannot be acted on.
_NEVER = frozenset({"html", "head", "meta", "param", "map", "script", "style", "template", "slot"})
_TYPED_ROLES = frozenset({"searchbox", "textbox"})
_CLICKED_INPUTS = frozenset({"button", "checkbox", "color", "file", "image", "radio", "range", "reset", "submit"})
_BUTTON_INPUTS = frozenset({"button", "reset", "submit"})
_LABEL_ATTRIBUTES = ("aria-label", "placeholder", "title", "alt", "value")


class Element(msgspec.Struct, frozen=True):
    """A named element as a shopper perceives it.

    Attributes:
        name: The name that an action carries.
        text: The visible text, or the label if the element has no text; white space is collapsed.
        accepts: "type" for inputs that take text, "click" for everything else.
    """

    name: str
    tag: str
    role: str | None
    text: str
    accepts: Accepts


def find_elements(page: str) -> list[Element]:
    """Returns the named elements of a simplified page in document order.

    If several elements have the same name, the first is returned. A container whose name is a dotted prefix of a
    descendant's name (`refinements` around `refinements.color.red`) is not returned, because it only lends its name.

    >>> page = '<div name="cart"><a name="cart.pay">Pay</a><input name="search" placeholder="Search"></div>'
    >>> for element in find_elements(page):
    ...     print(element.name, element.text, element.accepts)
    cart.pay Pay click
    search Search type
    """
    document = _parse(page)
    named = [(name, node) for node in document.css("[name]") if (name := node.attributes["name"])]
    scopes = _scopes(named)
    labels = _labels(document)
    elements: dict[str, Element] = {}
    for name, node in named:
        if name in elements or node.mem_id in scopes:
            continue
        attributes, tag = node.attributes, node.tag or ""
        if tag not in _NEVER and (tag != "input" or attributes.get("type") != "hidden"):
            text = _text(node, tag, attributes, labels)
            elements[name] = Element(name, tag, attributes.get("role"), text, _accepts(tag, attributes))
    return list(elements.values())


def page_names(page: str) -> set[str]:
    """Returns all names on the page, including those of containers; several times faster than `find_elements`.

    >>> sorted(page_names('<ul name="menu"><a name="menu.cart">Cart</a></ul>'))
    ['menu', 'menu.cart']
    """
    return {name for node in _parse(page).css("[name]") if (name := node.attributes["name"])}


def _parse(page: str) -> "LexborHTMLParser":
    from selectolax.lexbor import LexborHTMLParser  # noqa: PLC0415 - see above

    return LexborHTMLParser(page)


def _scopes(named: "list[tuple[str, LexborNode]]") -> set[int]:
    """Returns the ids of the nodes that only lend their name to a descendant.

    Args:
        named: The names and their nodes, in document order.
    """
    continued: dict[str, LexborNode] = {}  # dotted prefix -> the nearest node after the current one that continues it
    scopes: set[int] = set()
    for name, node in reversed(named):
        # A node's descendants follow it directly, so the nearest continuation decides.
        if name in continued and _is_inside(continued[name], node):
            scopes.add(node.mem_id)
            continued[name] = node  # an outer container also contains the continuation, so deep nests take linear time
        end = name.rfind(".")
        while end > 0:
            continued[name[:end]] = node
            end = name.rfind(".", 0, end)
    return scopes


def _is_inside(node: "LexborNode", container: "LexborNode") -> bool:
    parent = node.parent
    while parent is not None and parent.mem_id != container.mem_id:  # `==` would serialize both nodes as HTML
        parent = parent.parent
    return parent is not None


def _accepts(tag: str, attributes: dict[str, str | None]) -> Accepts:
    if tag == "textarea":
        return "type"
    if tag == "input":
        return "click" if (attributes.get("type") or "text").lower() in _CLICKED_INPUTS else "type"
    if attributes.get("role") in _TYPED_ROLES:
        return "type"
    return "type" if attributes.get("contenteditable", "false") != "false" else "click"


def _text(node: "LexborNode", tag: str, attributes: dict[str, str | None], labels: dict[str, str]) -> str:
    if tag == "input" and attributes.get("type") in _BUTTON_INPUTS and attributes.get("value"):
        return _collapse(attributes["value"] or "")
    if visible := _collapse(node.text(deep=True, separator=" ")):
        return visible
    if label := labels.get(attributes.get("id") or ""):
        return label
    return next((_collapse(value) for key in _LABEL_ATTRIBUTES if (value := attributes.get(key))), "")


def _labels(document: "LexborHTMLParser") -> dict[str, str]:
    """Returns the texts of `<label for=…>` by the id of the labelled element."""
    return {
        target: _collapse(label.text(deep=True, separator=" "))
        for label in document.css("label[for]")
        if (target := label.attributes["for"])
    }


def _collapse(text: str) -> str:
    return " ".join(text.split())


def normal_text(text: str) -> str:
    """Normalizes case and white space of a text for comparisons."""
    return " ".join(text.split()).casefold()
