"""The figures of one page."""

import random
import re

from selectolax.lexbor import LexborHTMLParser

from benchmarks.pages.changes import CHANGES
from benchmarks.pages.visit import Change, Visit, is_marked, mark, marked
from replay_sessions.simplify import simplify

__all__ = ["agreement", "numbered", "stability"]

_NAMED = re.compile(r'<\w+ name="([^"]+)"')
_MARKED = re.compile(r'<\w+ name="([^"]+)"[^>]*? aria-current="(shopr[a-j]+)"')
_MARK = re.compile(r' aria-current="(shopr[a-j]+)"')
_NAME = re.compile(r' name="[^"]+"')
_NUMBERED = re.compile(r"(.*)_\d+")
_CONTROLS = "a, button, input, select, textarea"


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


def stability(page: bytes, seed: str) -> dict[str, dict[str, float] | None]:
    """For each change how many elements there are besides those that it touches, and the share that bears the same
    name afterwards; of the touched ones likewise. None where the change does not apply (see `visit`)."""
    source = marked(page)
    unchanged = _Seen(source)
    return {name: _stayed(unchanged, change, random.Random(f"{seed} {name}")) for name, change in CHANGES.items()}


def _stayed(unchanged: "_Seen", change: Change, chance: random.Random) -> dict[str, float] | None:
    visit = Visit(unchanged.source, chance)
    change(visit)
    before = unchanged if visit.before == unchanged.source else _Seen(visit.before)
    after = _Seen(visit.after)
    if before.source == after.source or (visit.is_shown and (before.shown, before.names) == (after.shown, after.names)):
        return None
    there = before.names.keys() & set(_MARK.findall(after.source))
    others, touched = there - visit.touched, there & visit.touched
    if not others:
        return None
    stayed = {mark for mark in there if after.names.get(mark) == before.names[mark]}
    return {
        "elements": len(others),
        "stayed": len(others & stayed) / len(others),
        "touched": len(touched),
        "touched_stayed": len(touched & stayed) / len(touched) if touched else 1.0,
    }


class _Seen:
    """A marked page as it is simplified: the name of each mark, and what is shown besides names."""

    def __init__(self, source: str) -> None:
        self.source = source
        html = simplify(source, private_data=False).html
        self.names = {mark: name for name, mark in _MARKED.findall(html)}
        self.shown = _NAME.sub("", html)


def agreement(page: bytes, truth: dict[str, str]) -> dict[str, int]:
    """How many of a page's controls the browser shows, and of those and of the hidden ones how many are kept."""
    document = LexborHTMLParser(page, encoding=True)
    for unread in document.css("noscript"):
        unread.decompose()  # a browser with scripts takes it for text
    nodes = document.css(_CONTROLS)
    if "".join((node.tag or " ")[0] for node in nodes) != truth["tags"]:
        return {"unlike": 1}
    kept = set(_Seen(marked((document.html or "").encode(), _CONTROLS)).names)
    seen = [(truth["seen"][index], mark(index) in kept) for index, node in enumerate(nodes) if is_marked(node)]
    return {
        "visible": sum(what == "v" for what, _ in seen),
        "visible_kept": sum(what == "v" and is_kept for what, is_kept in seen),
        "without_box": sum(what == "e" for what, _ in seen),
        "without_box_kept": sum(what == "e" and is_kept for what, is_kept in seen),
        "hidden": sum(what == "h" for what, _ in seen),
        "hidden_kept": sum(what == "h" and is_kept for what, is_kept in seen),
    }
