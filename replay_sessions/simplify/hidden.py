"""What of a page a shopper does not see: scripts, templates, what says itself that it is hidden or closed.

Rules of the page's own `<style>` are in `style_rules`. Style sheets in other files are not known: an element that only
one of those hides stays (as Amazon's `a-offscreen` must, since it carries the price); a recipe's `drop` takes out what
a site hides by class.

`aria-hidden` hides from screen readers, not from the eye: texts that are hidden so repeat what is said elsewhere and
are left out, but what can be clicked there stays.
"""

import re
from collections.abc import Iterable, Mapping

from selectolax.lexbor import LexborHTMLParser, LexborNode

from replay_sessions.simplify.style_rules import StyleRules

# An element with none of these neither hides itself nor is hidden from screen readers.
HIDING_ATTRIBUTES = frozenset({"hidden", "aria-hidden", "inert", "popover", "style"})

_HIDING_STYLE = re.compile(r"(?:^|;)\s*(?:display\s*:\s*none|visibility\s*:\s*(?:hidden|collapse))\b")


def is_hidden(attributes: Mapping[str, str | None]) -> bool:
    """Whether an element's own attributes hide it and all inside it, or keep it from being clicked (`inert`).

    Not `hidden`: it holds only while no style rule says otherwise.

    >>> is_hidden({"style": "color: red; display : none !important"}), is_hidden({"class": "a-offscreen"})
    (True, False)
    """
    if "inert" in attributes or "popover" in attributes:
        return True
    style = (attributes.get("style") or "").lower()
    if "none" not in style and "hidden" not in style and "collapse" not in style:
        return False
    return _HIDING_STYLE.search(style) is not None


def is_unread(attributes: Mapping[str, str | None]) -> bool:
    """Whether an element is hidden from screen readers."""
    return (attributes.get("aria-hidden") or "").strip().lower() == "true"


def is_behind_dialog(node: LexborNode) -> bool:
    """Whether what is hidden from screen readers is the page itself, as it is while a dialog is open."""
    return node.tag in ("div", "main", "section") and node.css_first("h1") is not None


def hide_closed_parts(document: LexborHTMLParser, closing: Iterable[LexborNode], styles: StyleRules) -> None:
    """Marks as `inert` what is in closed dialogs and details, and what style rules about tags alone hide.

    Args:
        closing: The page's dialogs and details.
    """
    for node in closing:
        if "open" in node.attributes:
            continue
        if node.tag == "dialog":
            node.attrs["inert"] = ""
        else:
            _hide_all_but_summary(node)
    for node in styles.search(document):
        if node.tag not in ("html", "body"):
            node.attrs["inert"] = ""


def _hide_all_but_summary(details: LexborNode) -> None:
    has_summary = False
    child = details.first_child
    while child is not None:
        following = child.next
        if child.is_text_node:
            child.remove()
        elif child.is_element_node and (child.tag != "summary" or has_summary):
            child.attrs["inert"] = ""
        else:
            has_summary = has_summary or child.tag == "summary"
        child = following
