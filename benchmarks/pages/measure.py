"""The figures of one page."""

import random
import re

from selectolax.lexbor import LexborHTMLParser

from benchmarks.pages.changes import CHANGES
from replay_sessions.simplify import simplify

__all__ = ["agreement", "numbered", "stability"]

_NAMED = re.compile(r'<\w+ name="([^"]+)"')
_MARKED = re.compile(r'<\w+ name="([^"]+)"[^>]*? aria-current="(shopr[a-j]+)"')
_NUMBERED = re.compile(r"(.*)_\d+")
_CONTROLS = "a, button, input, select, textarea"
_BARE = frozenset({"class", "id", "name", "style"})  # an anchor with nothing else is no link
_LETTERS = str.maketrans("0123456789", "abcdefghij")  # a long number could be taken for somebody's


def numbered(page: bytes) -> dict[str, int]:
    """How many names a page has, how many end on a number only because another one is the same without it, and how
    many do so at that place or at the place of a card."""
    names = _NAMED.findall(simplify(page).html)
    known = set(names)
    for name in names:
        parts = name.split(".")
        known.update(".".join(parts[:length]) for length in range(1, len(parts)))
    ends = sum((match := _NUMBERED.fullmatch(name)) is not None and match[1] in set(names) for name in names)
    anywhere = sum(any(_is_numbered(part, known) for part in _beginnings(name)) for name in names)
    return {"names": len(names), "numbered": ends, "numbered_or_in_a_numbered_card": anywhere}


def _beginnings(name: str) -> list[str]:
    parts = name.split(".")
    return [".".join(parts[:length]) for length in range(1, len(parts) + 1)]


def _is_numbered(name: str, known: set[str]) -> bool:
    match = _NUMBERED.fullmatch(name)
    return match is not None and match[1] in known


def stability(page: bytes, seed: str) -> dict[str, dict[str, float]]:
    """For each change: how many elements kept were there before and after, and the share of names that stayed."""
    marked = _marked(page)
    before = _names(marked)
    found: dict[str, dict[str, float]] = {}
    for name, change in CHANGES.items():
        after = _names(change(marked, random.Random(f"{seed} {name}")))
        both = before.keys() & after.keys()
        stayed = sum(before[mark] == after[mark] for mark in both)
        found[name] = {"elements": len(both), "stayed": stayed / len(both) if both else 1.0}
    return found


def agreement(page: bytes, truth: dict[str, str]) -> dict[str, int]:
    """How many of a page's controls the browser shows, and of those and of the hidden ones how many are kept."""
    document = LexborHTMLParser(page, encoding=True)
    for unread in document.css("noscript"):
        unread.decompose()  # a browser with scripts takes it for text
    nodes = document.css(_CONTROLS)
    if "".join((node.tag or " ")[0] for node in nodes) != truth["tags"]:
        return {"unlike": 1}
    kept = set(_names(_marked((document.html or "").encode())))
    seen = [(truth["seen"][index], _mark(index) in kept) for index, node in enumerate(nodes) if _counts(node)]
    return {
        "visible": sum(what == "v" for what, _ in seen),
        "visible_kept": sum(what == "v" and is_kept for what, is_kept in seen),
        "without_box": sum(what == "e" for what, _ in seen),
        "without_box_kept": sum(what == "e" and is_kept for what, is_kept in seen),
        "hidden": sum(what == "h" for what, _ in seen),
        "hidden_kept": sum(what == "h" and is_kept for what, is_kept in seen),
    }


def _counts(node: object) -> bool:
    attributes = getattr(node, "attributes", {})
    return getattr(node, "tag", "") != "a" or not _BARE.issuperset(attributes)


def _mark(index: int) -> str:
    return f"shopr{index}".translate(_LETTERS)


def _marked(page: bytes) -> str:
    """A page whose controls are numbered in an attribute that the simplifier keeps."""
    document = LexborHTMLParser(page, encoding=True)
    for index, node in enumerate(document.css(_CONTROLS)):
        if _counts(node):
            node.attrs["aria-current"] = _mark(index)
    return document.html or ""


def _names(page: str) -> dict[str, str]:
    return {mark: name for name, mark in _MARKED.findall(simplify(page, private_data=False).html)}
