"""A page's own `<style>` sheets -> the rules in them that set `display` or `visibility`.

A rule counts if a browser would apply it in a window 1280 pixels wide; where a media query asks for something else, its
rules can show but not hide. Selectors with a colon (hovering, printing, parts of elements) are passed over, and so are
rules nested in other rules. What the rules say of an element is up to style_rules.py.

Sheets are long and the pages of a shop repeat them, so a sheet is only cut into blocks when it is read; a block's
selectors are read when an element asks for one of their words, and all of it is remembered for the next page.
"""

import functools
import re
from collections.abc import Callable, Hashable, Iterable
from typing import Generic, NamedTuple, TypeVar

from selectolax.lexbor import LexborNode

from replay_sessions.foundation.errors import BadConfig
from replay_sessions.simplify.recipes.selectors import Compound, Memo, parse_compound

_MOST_KEPT = 16_000_000  # characters of the sheets that are remembered, and of those that are read together
_COMMENT = re.compile(r"/\*.*?(?:\*/|\Z)", re.DOTALL)
SETTING = re.compile(r"(?:\A|;)\s*(display|visibility)\s*:\s*[\w-]+\s*(!\s*important)?", re.IGNORECASE)
_STEP = re.compile(r"\s*([\s>])\s*")
_HIDING = re.compile(
    r"(?:\A|;)\s*(display(?=\s*:\s*none)|visibility(?=\s*:\s*(?:hidden|collapse)))\s*:\s*\w+\s*(!\s*important)?",
    re.IGNORECASE,
)
_KEY = re.compile(r"((?:[.#]|(?<![\w-]))[\w-]++)(?:\[[^\]]*\])*\s*(?:,|\Z)")  # what a selector ends in
_BITS = 509  # few enough to be one number, and many enough that a page's words leave most of them off
_NOTHING_IN = frozenset({"br", "hr", "i", "iframe", "img", "link", "script", "style", "svg", "template"})

_Steps = tuple[tuple[str, Compound], ...]  # what stands before a compound (a blank or ">"), and the compound


class Rule(NamedTuple):
    """One selector of a rule that hides or shows.

    Attributes:
        properties: `display`, `visibility` or both: what it sets, or for a rule that hides what it hides by.
        weight: What decides between rules before their places do: importance, specificity.
        around: The bits (`bits_of`) of the tags, ids and classes that it asks for around the element.
    """

    selector: str
    steps: _Steps
    properties: frozenset[str]
    weight: tuple[bool, int, int, int]
    around: int

    def is_about(self, word: str) -> bool:
        """Whether it asks for a class, an id, or a tag alone."""
        last = self.steps[-1][1]
        if word[:1] == ".":
            return word[1:] in last.classes
        return last.id == word[1:] if word[:1] == "#" else not last.classes and not last.id and last.tag == word


Placed = tuple[int, Rule]  # a rule, and which of its sheet's blocks it stands in


class _Block(NamedTuple):
    """A rule as it is written: which one of its sheet it is, its selectors, what it sets."""

    position: int
    selectors: str
    declarations: str

    def rules(self) -> list[Placed]:
        return [(self.position, rule) for rule in _rules_of(self.selectors, self.declarations)]


class Blocks:
    """The blocks of a sheet that hide, or those that show.

    Attributes:
        about: A class, an id or a tag alone -> the rules about it.
    """

    def __init__(self) -> None:
        self.blocks: list[_Block] = []
        self.about: Memo[str, list[Placed]] = Memo(self._about)

    @functools.cached_property
    def by_key(self) -> dict[str, list[_Block]]:
        """The blocks by the class, the id or the tag that a selector ends in, "" where it ends in neither."""
        by_key: dict[str, list[_Block]] = {}
        for block in self.blocks:
            keys = _KEY.findall(block.selectors)
            if len(keys) <= block.selectors.count(","):
                keys.append("")
            for key in keys:
                by_key.setdefault(key, []).append(block)
        return by_key

    @functools.cached_property
    def searched(self) -> list[str]:
        """The selectors of its rules that end in neither a class nor an id."""
        blocks = {block for key in self.by_key if key[:1] not in (".", "#") for block in self.by_key[key]}
        return [rule.selector for block in sorted(blocks) for _, rule in block.rules() if _is_searched(rule)]

    def _about(self, word: str) -> list[Placed]:
        return [placed for block in self.by_key.get(word, ()) for placed in block.rules() if placed[1].is_about(word)]


class Sheet:
    """The blocks of one style sheet that set `display` or `visibility`: those that hide, and those that show.

    Attributes:
        length: How many characters it has.
    """

    def __init__(self, written: str, *, may_hide: bool) -> None:
        self.hiding = Blocks()
        self.showing = Blocks()
        self.length = len(written)
        hides = functools.cache(_hides)  # declarations repeat each other
        for position, (selectors, declarations, is_sure) in enumerate(_blocks(written)):
            block = _Block(position, selectors, declarations)
            if not hides(declarations):
                self.showing.blocks.append(block)
            elif is_sure and may_hide:
                self.hiding.blocks.append(block)


_Key = TypeVar("_Key", bound=Hashable)
_Value = TypeVar("_Value")


class Kept(Generic[_Key, _Value]):
    """What was asked for last, as much as is not too long together."""

    def __init__(self) -> None:
        self._known: dict[_Key, tuple[_Value, int]] = {}  # with its length; the one used last at the end
        self._length = 0

    def get(self, key: _Key, length: int, make: Callable[[], _Value]) -> _Value:
        entry = self._known.pop(key, None)
        if entry is None:
            entry = make(), length
            self._length += length
            while self._length > _MOST_KEPT and self._known:
                self._length -= self._known.pop(next(iter(self._known)))[1]
        self._known[key] = entry
        return entry[0]


_SHEETS: Kept[tuple[str, bool], Sheet] = Kept()


def sheets_of(styles: Iterable[LexborNode]) -> list[Sheet]:
    """The sheets of a page that set `display` or `visibility`, in its order, given its `<style>` elements."""
    sheets: list[Sheet] = []
    for style in styles:
        written = style.text()
        if not _sets(written) or (style.parent is not None and style.parent.tag == "noscript"):
            continue
        applying = applies(style.attributes.get("media") or "all")
        if applying is not False:
            may_hide = applying is True
            read = functools.partial(Sheet, written, may_hide=may_hide)
            sheets.append(_SHEETS.get((written, may_hide), len(written), read))
    return sheets


def _blocks(written: str) -> Iterable[tuple[str, str, bool]]:
    """The blocks of a sheet that set something: selectors, declarations, and whether they are sure to apply."""
    chunks = (_COMMENT.sub("", written) if "/*" in written else written).split("}")
    around: list[bool | None] = [True]  # for each open block, whether what is in it applies
    for chunk in [chunk for chunk in chunks if "display" in chunk or "visibility" in chunk or chunk.count("{") != 1]:
        if "{" not in chunk:
            if len(around) > 1:
                around.pop()
            continue
        *outer, prelude, declarations = chunk.split("{")
        for block in outer:
            around.append(applies_in(block, around[-1]))
        if around[-1] is not False and _sets(declarations):
            yield prelude.rpartition(";")[2], declarations, around[-1] is True


def bits_of(words: Iterable[str]) -> int:
    """A bit for each tag, id and class: where a bit of some words is off, one of the words is not there."""
    bits = 0
    for word in words:
        bits |= 1 << hash(word) % _BITS
    return bits


def _sets(css: str) -> bool:
    return "display" in css or "visibility" in css


def _hides(declarations: str) -> bool:
    lowered = declarations.lower()  # three looks that rule out most spare the pattern
    may_hide = "none" in lowered or "hidden" in lowered or "collapse" in lowered
    return may_hide and _HIDING.search(declarations) is not None


def _is_searched(rule: Rule) -> bool:
    last = rule.steps[-1][1]
    return not last.classes and not last.id and last.tag not in _NOTHING_IN


@functools.lru_cache(10_000)
def _rules_of(selectors: str, declarations: str) -> tuple[Rule, ...]:
    """The rules of a block, one for each selector that is understood."""
    settings = _HIDING.findall(declarations) or SETTING.findall(declarations)
    rules: list[Rule] = []
    properties = frozenset(name.lower() for name, _ in settings)
    is_important = any(important for _, important in settings)
    for selector in selectors.split(",") if settings else ():
        first, *others = _STEP.split(selector.strip())
        try:
            steps = [("", _compound(first))]
            steps += [(others[i], _compound(others[i + 1])) for i in range(0, len(others), 2)]
        except BadConfig:
            continue
        ids, classes, tags = (sum(counts) for counts in zip(*(_specificity(step) for _, step in steps), strict=True))
        around = bits_of(word for _, step in steps[:-1] for word in (*step.classes, step.tag, step.id) if word)
        rules.append(Rule(selector.strip(), tuple(steps), properties, (is_important, ids, classes, tags), around))
    return tuple(rules)


@functools.lru_cache(10_000)
def _compound(written: str) -> Compound:
    return parse_compound(written, written)


def _specificity(compound: Compound) -> tuple[int, int, int]:
    return bool(compound.id), len(compound.classes) + len(compound.conditions), bool(compound.tag)


_WINDOW_WIDTH = 1280
_CONDITION = re.compile(r"\(\s*([\w-]+)\s*(?::\s*([\w.]+)\s*)?\)")
_LENGTH = re.compile(r"(\d+(?:\.\d*)?|\.\d+)(px|em|rem)?")


@functools.lru_cache(1_000)
def applies_in(opened: str, around: bool | None) -> bool | None:
    """Whether the rules in a block apply, given its beginning; None where the window does not decide it."""
    name, _, condition = opened.rpartition(";")[2].strip().partition(" ")
    if around is False or name not in ("@media", "@supports", "@layer"):
        return False
    applying = applies(condition) if name == "@media" else True
    return around if applying else applying


def applies(media: str) -> bool | None:
    """Whether a list of media queries holds in the window; None where it does not decide it.

    >>> [applies(query) for query in ("screen and (min-width: 48em)", "print, (max-width: 767px)", "(hover: none)")]
    [True, False, None]
    """
    results = [_holds(query.strip().lower()) for query in media.split(",")]
    return True if True in results else None if None in results else False


def _holds(query: str) -> bool | None:
    result: bool | None = True
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
        result = None
    return result
