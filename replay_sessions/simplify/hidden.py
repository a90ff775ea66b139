"""What of a page a shopper does not see: scripts, templates, and elements that say themselves that they are hidden.

Style sheets are not applied: an element that only a style sheet hides stays (as Amazon's `a-offscreen` must, since it
carries the price); a recipe's `drop` takes out what a site hides by class.
"""

import re
from collections.abc import Mapping

from selectolax.lexbor import LexborNode

__all__ = ["HIDING_ATTRIBUTES", "NEVER_SEEN", "is_behind_dialog", "is_hidden"]

# Tags that hold nothing to read.
NEVER_SEEN = (
    "area audio base basefont bgsound canvas col colgroup datalist embed frame frameset hr iframe link map math meta "
    "noembed noframes noscript object param progress script source style svg template track video"
)

# An element with none of these is not hidden by itself.
HIDING_ATTRIBUTES = frozenset({"hidden", "aria-hidden", "style"})

_HIDING_STYLE = re.compile(r"(?:^|;)\s*(?:display\s*:\s*none|visibility\s*:\s*(?:hidden|collapse))\b")


def is_hidden(attributes: Mapping[str, str | None]) -> bool:
    """Whether an element's own attributes hide it and all inside it.

    >>> is_hidden({"style": "color: red; display : none !important"}), is_hidden({"class": "a-offscreen"})
    (True, False)
    """
    if "hidden" in attributes or (attributes.get("aria-hidden") or "").strip().lower() == "true":
        return True
    style = (attributes.get("style") or "").lower()
    if "none" not in style and "hidden" not in style and "collapse" not in style:
        return False
    return _HIDING_STYLE.search(style) is not None


def is_behind_dialog(node: LexborNode, attributes: Mapping[str, str | None]) -> bool:
    """Whether a hidden element is the page itself, which an open dialog hides from screen readers, not from the eye."""
    if node.tag not in ("div", "main", "section") or node.css_first("h1") is None:
        return False
    return not is_hidden({name: value for name, value in attributes.items() if name != "aria-hidden"})
