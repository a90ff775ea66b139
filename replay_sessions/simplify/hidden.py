"""What of a page a shopper does not see though no style says so: what is in closed details, what only repeats.

What styles hide is in `style_rules`. Style sheets in other files are not known: an element that only one of those hides
stays (as Amazon's `a-offscreen` must, since it carries the price); a recipe's `drop` takes out what a site hides by
class.

`aria-hidden` hides from screen readers, not from the eye: texts that are hidden so repeat what is said elsewhere and
are left out, but what can be clicked there stays.
"""

from collections.abc import Iterable, Mapping

from selectolax.lexbor import LexborNode


def is_unread(attributes: Mapping[str, str | None]) -> bool:
    """Returns whether an element is hidden from screen readers."""
    return (attributes.get("aria-hidden") or "").strip().lower() == "true"


def is_behind_dialog(node: LexborNode) -> bool:
    """Returns whether what is hidden from screen readers is the page itself, as it is while a dialog is open."""
    return node.tag in ("div", "main", "section") and node.css_first("h1") is not None


def hide_closed_details(details: Iterable[LexborNode]) -> None:
    """Marks as `inert` what is in closed details, all but their summaries."""
    for closed in details:
        has_summary = False
        child = closed.first_child if "open" not in closed.attributes else None
        while child is not None:
            following = child.next
            if child.is_text_node:
                child.remove()
            elif child.is_element_node and (child.tag != "summary" or has_summary):
                child.attrs["inert"] = ""
            else:
                has_summary = has_summary or child.tag == "summary"
            child = following
