"""A page's own `<style>` sheets -> the rules in them that set `display` or `visibility`.

A rule counts if a browser would apply it in a window 1280 pixels wide; where a media query asks for something else, its
rules can show but not hide. Selectors with a colon (hovering, printing, parts of elements) are passed over, and so are
rules nested in other rules. What the rules say of an element is up to style_rules.py.
"""

import functools
import re
from collections.abc import Iterator
from typing import NamedTuple

from selectolax.lexbor import LexborHTMLParser

from replay_sessions.errors import BadConfig
from replay_sessions.simplify.recipes.selectors import Compound, parse_compound

__all__ = ["SETTING", "Block", "Rule", "blocks_of", "rules_of"]

_WINDOW_WIDTH = 1280
_SHEETS_KEPT, _LONGEST_KEPT = 128, 1_000_000
_COMMENT = re.compile(r"/\*.*?(?:\*/|\Z)", re.DOTALL)
_MAY_HIDE = re.compile("none|hidden|collapse", re.IGNORECASE)
SETTING = re.compile(r"(?:\A|;)\s*(display|visibility)\s*:\s*[\w-]+\s*(!\s*important)?", re.IGNORECASE)
_STEP = re.compile(r"\s*([\s>])\s*")
_CONDITION = re.compile(r"\(\s*([\w-]+)\s*(?::\s*([\w.]+)\s*)?\)")
_LENGTH = re.compile(r"([\d.]+)(px|em|rem)?")
_HIDING = re.compile(
    r"(?:\A|;)\s*(display(?=\s*:\s*none)|visibility(?=\s*:\s*(?:hidden|collapse)))\s*:\s*\w+\s*(!\s*important)?",
    re.IGNORECASE,
)

_Steps = tuple[tuple[str, Compound], ...]  # what stands before a compound (a blank or ">"), and the compound


class Rule(NamedTuple):
    """One selector of a rule that hides or shows.

    Attributes:
        properties: `display`, `visibility` or both: what it sets, or for a rule that hides what it hides by.
        weight: What decides between rules: importance, specificity, place on the page.
    """

    selector: str
    steps: _Steps
    properties: frozenset[str]
    weight: tuple[bool, int, int, int, int]

    def is_about(self, key: str) -> bool:
        """Whether it asks for a class, an id, or a tag alone."""
        last = self.steps[-1][1]
        if key[:1] == ".":
            return key[1:] in last.classes
        return last.id == key[1:] if key[:1] == "#" else not last.classes and not last.id and last.tag == key


class Block(NamedTuple):
    """A rule as it is written: its selectors, and what it sets."""

    selectors: str
    declarations: str
    place: int
    hides: bool
    may_hide: bool


def blocks_of(document: LexborHTMLParser) -> Iterator[Block]:
    """The rules of a page that set `display` or `visibility`, in the order of the page."""
    place = 0
    for style in document.css("style"):
        written = style.text()
        applies = _applies(style.attributes.get("media") or "all")
        if applies is False or not _sets(written) or (style.parent is not None and style.parent.tag == "noscript"):
            continue
        read = _known_sheet if len(written) <= _LONGEST_KEPT else _read_sheet
        for block in read(written):
            place += 1
            selectors, declarations, _, hides, may_hide = block
            yield Block(selectors, declarations, place, hides, may_hide and applies is True)


@functools.lru_cache(_SHEETS_KEPT)
def _known_sheet(written: str) -> tuple[Block, ...]:
    """The pages of a shop repeat their style sheets."""
    return _read_sheet(written)


def _read_sheet(written: str) -> tuple[Block, ...]:
    blocks: list[Block] = []
    around: list[bool | None] = [True]  # for each open block, whether what is in it applies
    for chunk in (_COMMENT.sub("", written) if "/*" in written else written).split("}"):
        opened = chunk.count("{")
        if opened == 1 and "display" not in chunk and "visibility" not in chunk:
            continue
        if not opened:
            if len(around) > 1:
                around.pop()
            continue
        *outer, prelude, declarations = chunk.split("{")
        for block in outer:
            around.append(_applies_in(block, around[-1]))
        if _sets(declarations) and around[-1] is not False:
            hides = bool(_MAY_HIDE.search(declarations)) and bool(_HIDING.search(declarations))
            blocks.append(Block(prelude.rpartition(";")[2], declarations, 0, hides, around[-1] is True))
    return tuple(blocks)


def _sets(css: str) -> bool:
    return "display" in css or "visibility" in css


@functools.lru_cache(1_000)
def _applies_in(opened: str, around: bool | None) -> bool | None:
    """Whether the rules in a block apply; None where the window does not decide it."""
    name, _, condition = opened.rpartition(";")[2].strip().partition(" ")
    if around is False or name not in ("@media", "@supports", "@layer"):
        return False
    applies = _applies(condition) if name == "@media" else True
    return around if applies else applies


def _applies(media: str) -> bool | None:
    """Whether a list of media queries holds in the window; None where it does not decide it.

    >>> [_applies(query) for query in ("screen and (min-width: 48em)", "print, (max-width: 767px)", "(hover: none)")]
    [True, False, None]
    """
    found = [_holds(query.strip().lower()) for query in media.split(",")]
    return True if True in found else None if None in found else False


def _holds(query: str) -> bool | None:
    known: bool | None = True
    for part in re.split(r"\s+and\s+", query):
        condition = _CONDITION.fullmatch(part)
        length = _LENGTH.fullmatch(condition[2] or "") if condition else None
        if part in ("all", "screen", "only screen", "only all"):
            continue
        if part in ("print", "only print", "speech", "tty"):
            return False
        if condition and length and condition[1] in ("min-width", "max-width"):
            pixels = float(length[1]) * (1 if length[2] == "px" else 16)
            if (pixels > _WINDOW_WIDTH) if condition[1] == "min-width" else (pixels < _WINDOW_WIDTH):
                return False
            continue
        known = None
    return known


@functools.lru_cache(10_000)
def rules_of(selectors: str, declarations: str) -> tuple[Rule, ...]:
    """The rules of a block, one for each selector that is understood."""
    said = _HIDING.findall(declarations) or SETTING.findall(declarations)
    rules: list[Rule] = []
    properties = frozenset(name.lower() for name, _ in said)
    is_important = any(important for _, important in said)
    for selector in selectors.split(",") if said else ():
        first, *others = _STEP.split(selector.strip())
        try:
            steps = [("", _compound(first))]
            steps += [(others[i], _compound(others[i + 1])) for i in range(0, len(others), 2)]
        except BadConfig:
            continue
        ids, classes, tags = (sum(counts) for counts in zip(*(_specificity(step) for _, step in steps), strict=True))
        rules.append(Rule(selector.strip(), tuple(steps), properties, (is_important, ids, classes, tags, 0)))
    return tuple(rules)


@functools.lru_cache(10_000)
def _compound(written: str) -> Compound:
    return parse_compound(written, written)


def _specificity(compound: Compound) -> tuple[int, int, int]:
    return bool(compound.id), len(compound.classes) + len(compound.conditions), bool(compound.tag)
