"""The figures of one page."""

import random
import re
from collections.abc import Container
from itertools import accumulate, chain

from selectolax.lexbor import LexborHTMLParser

from benchmarks.studies.page_names.shop_changes import SHOP_CHANGES
from benchmarks.studies.page_names.source_changes import SOURCE_CHANGES
from benchmarks.studies.page_names.visit import Change, Visit, is_marked, mark, marked
from replay_sessions.simplify import simplify

CHANGES: dict[str, Change] = {**SOURCE_CHANGES, **SHOP_CHANGES}

_NAMED = re.compile(r'<\w+ name="([^"]+)"')
_MARKED = re.compile(r'<\w+ name="([^"]+)"[^>]*? aria-current="(shopr[a-j]+)"')
_MARK = re.compile(r' aria-current="(shopr[a-j]+)"')
_NAME = re.compile(r' name="[^"]+"')
_NUMBERED = re.compile(r"(.*)_\d+")
_CONTROLS = "a, button, input, select, textarea"


def numbered(page: bytes) -> dict[str, int]:
    """The number of names, of those that end on a number only because another name is the same without it, and of those
    that do so there or at the name of a card that they begin with."""
    names = _NAMED.findall(simplify(page).html)
    prefixes = {name: list(accumulate(name.split("."), "{}.{}".format)) for name in names}
    all_prefixes = set(chain.from_iterable(prefixes.values()))
    ends = sum(_is_numbered(name, prefixes) for name in names)
    anywhere = sum(any(_is_numbered(prefix, all_prefixes) for prefix in prefixes[name]) for name in names)
    return {"names": len(names), "numbered": ends, "numbered_or_in_a_numbered_card": anywhere}


def _is_numbered(name: str, others: Container[str]) -> bool:
    match = _NUMBERED.fullmatch(name)
    return match is not None and match[1] in others


def stability(page: bytes, seed: str) -> dict[str, dict[str, float] | None]:
    """For each change the number of elements that it does not touch, and the share of them with the same name
    afterwards; likewise of the touched ones. None where the change does not apply (see `visit`)."""
    unchanged = _SimplifiedPage(marked(page))
    return {name: _compare(unchanged, change, random.Random(f"{seed} {name}")) for name, change in CHANGES.items()}


def _compare(unchanged: "_SimplifiedPage", change: Change, rng: random.Random) -> dict[str, float] | None:
    visit = Visit(unchanged.source, rng)
    change(visit)
    before = unchanged if visit.before == unchanged.source else _SimplifiedPage(visit.before)
    after = _SimplifiedPage(visit.after)
    if before.source == after.source or (visit.is_shown and (before.html, before.names) == (after.html, after.names)):
        return None
    remaining = before.names.keys() & set(_MARK.findall(after.source))
    others, touched = remaining - visit.touched, remaining & visit.touched
    if not others:
        return None
    stayed = {mark for mark in remaining if after.names.get(mark) == before.names[mark]}
    return {
        "elements": len(others),
        "stayed": len(others & stayed) / len(others),
        "touched": len(touched),
        "touched_stayed": len(touched & stayed) / len(touched) if touched else 1.0,
    }


class _SimplifiedPage:
    """A marked page: the name of each mark, and the simplified page without names."""

    def __init__(self, source: str) -> None:
        self.source = source
        html = simplify(source, private_data=False).html
        self.names = {mark: name for name, mark in _MARKED.findall(html)}
        self.html = _NAME.sub("", html)


def agreement(page: bytes, truth: dict[str, str]) -> dict[str, int]:
    """The number of a page's controls that the browser shows and hides, and how many of each the simplifier keeps."""
    document = LexborHTMLParser(page, encoding=True)
    for node in document.css("noscript"):
        node.decompose()  # a browser with scripts takes it for text
    nodes = document.css(_CONTROLS)
    if "".join((node.tag or " ")[0] for node in nodes) != truth["tags"]:
        return {"unlike": 1}
    named = set(_SimplifiedPage(marked((document.html or "").encode(), _CONTROLS)).names)
    counts: dict[str, int] = {}
    for state, code in (("visible", "v"), ("without_box", "e"), ("hidden", "h")):
        marks = [mark(i) for i, node in enumerate(nodes) if is_marked(node) and truth["seen"][i] == code]
        counts |= {state: len(marks), f"{state}_kept": len(named.intersection(marks))}
    return counts
