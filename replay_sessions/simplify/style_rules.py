"""Which elements the page's own `<style>` hides: its rules that set `display` or `visibility`, cascaded as CSS says.

Style sheets in files of their own are no part of a page and are not known. A rule counts if a browser would apply it in
a window 1280 pixels wide; where a media query asks for something else, its rules can show but not hide. Selectors with
a colon (hovering, printing, parts of elements) are passed over, and so are rules nested in other rules.
"""

import bisect
import functools
import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NamedTuple

from selectolax.lexbor import LexborHTMLParser, LexborNode, SelectolaxError

from replay_sessions.errors import BadConfig
from replay_sessions.simplify.recipes.selectors import Compound, fits, parse_compound

__all__ = ["StyleRules"]

_WINDOW_WIDTH = 1280
_MAX_SEARCHES = 30  # selectors without class or id, for each of which the page is searched
_SHEETS_KEPT, _LONGEST_KEPT = 128, 1_000_000
_MAX_KNOWN = 1_000_000  # answers that are remembered for a page
_MAX_FITTING = 100  # rules that are looked at for one element

_COMMENT = re.compile(r"/\*.*?(?:\*/|\Z)", re.DOTALL)
_MAY_HIDE = re.compile("none|hidden|collapse", re.IGNORECASE)
_SETTING = re.compile(r"(?:\A|;)\s*(display|visibility)\s*:\s*[\w-]+\s*(!\s*important)?", re.IGNORECASE)
_NOTHING_IN = frozenset({"br", "hr", "i", "iframe", "img", "link", "script", "style", "svg", "template"})
_HIDING = re.compile(
    r"(?:\A|;)\s*(display(?=\s*:\s*none)|visibility(?=\s*:\s*(?:hidden|collapse)))\s*:\s*\w+\s*(!\s*important)?",
    re.IGNORECASE,
)
_STEP = re.compile(r"\s*([\s>])\s*")
_KEY = re.compile(r"([.#][\w-]+)(?:\[[^\]]*\])?\s*(?:,|\Z)")
_CONDITION = re.compile(r"\(\s*([\w-]+)\s*(?::\s*([\w.]+)\s*)?\)")
_LENGTH = re.compile(r"([\d.]+)(px|em|rem)?")


Attributes = Mapping[str, str | None]
_Keys = tuple[str, str | None, str | None]  # tag, class attribute, id
_Steps = tuple[tuple[str, Compound], ...]  # what stands before a compound (a blank or ">"), and the compound


class _Rule(NamedTuple):
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


class _Block(NamedTuple):
    """A rule as it is written: its selectors, and what it sets."""

    selectors: str
    declarations: str
    place: int
    hides: bool
    may_hide: bool


class StyleRules:
    """The rules of a page that hide, and those that show again; read as far as an element asks for them.

    Attributes:
        ids: The ids that hiding rules are about.
        is_styled: Class attribute -> whether a hiding rule is about one of its classes.
    """

    def __init__(self, document: LexborHTMLParser) -> None:
        self._hiding: dict[str, list[_Block]] = {}  # by the class or id at the end of a selector; "" for other ends
        self._showing: list[_Block] = []
        self._showing_text = ""  # the selectors of those, one after the other, and where each begins
        self._showing_starts: list[int] = []
        self._blocks: dict[int, list[_Rule]] = {}  # by place, as far as they are read
        self._hiding_rules: dict[str, list[_Rule]] = {}
        self._showing_rules: dict[str, list[_Rule]] = {}
        self._hides: dict[_Keys, list[_Rule]] = {}
        self._shows: dict[_Keys, list[_Rule]] = {}
        self._inside: dict[tuple[int, int, int], bool] = {}  # by element, rule and number of steps
        self._nodes: dict[int, _Around] = {}
        for block in _blocks(document):
            if not block.hides:
                self._showing.append(block)
            elif block.may_hide:
                keys = _KEY.findall(block.selectors)
                if len(keys) <= block.selectors.count(","):
                    keys.append("")
                for key in keys:
                    self._hiding.setdefault(key, []).append(block)
        self.ids = frozenset(key[1:] for key in self._hiding if key[:1] == "#")
        self.is_styled = _Styled(frozenset(key[1:] for key in self._hiding if key[:1] == "."))
        others = [rule for block in self._hiding.get("", ()) for rule in self._read(block)]
        self._searched = [rule.selector for rule in others if _is_searched(rule)][:_MAX_SEARCHES]

    def search(self, document: LexborHTMLParser) -> Iterator[LexborNode]:
        """The elements that hiding rules about neither a class nor an id hide."""
        for selector in self._searched:
            try:
                found = document.css(selector)
            except SelectolaxError:
                continue
            yield from (node for node in found if self.hide(node, node.tag or "", node.attributes))

    def show(self, node: LexborNode, tag: str, attributes: Attributes) -> bool:
        """Whether the rules show an element that is `hidden` by its attribute: any of them is stronger."""
        if not self._showing:
            return False
        showing = self._fitting(self._shows, (tag, attributes.get("class"), attributes.get("id")), self._showing_by)
        return self._strongest((rule for rule in showing if "display" in rule.properties), node, attributes) is not None

    def may_hide(self, attributes: Attributes) -> bool:
        """Whether a hiding rule is about an element's id or one of its classes."""
        return self.is_styled[attributes.get("class")] or attributes.get("id") in self.ids

    def hide(self, node: LexborNode, tag: str, attributes: Attributes) -> bool:
        """Whether the rules hide an element; what its own `style` says is stronger than all but important ones."""
        keys = (tag, attributes.get("class"), attributes.get("id"))
        hiding = self._fitting(self._hides, keys, self._hiding_by)
        hides = self._strongest(hiding, node, attributes) if hiding else None
        if hides is None or (not hides.weight[0] and _SETTING.search(attributes.get("style") or "")):
            return False
        showing = self._fitting(self._shows, keys, self._showing_by)
        stronger = (rule for rule in showing if rule.weight > hides.weight and rule.properties >= hides.properties)
        return self._strongest(stronger, node, attributes) is None

    def _fitting(
        self, known: dict[_Keys, list[_Rule]], keys: _Keys, rules_by: Callable[[str], Iterable[_Rule]]
    ) -> list[_Rule]:
        """The rules whose last part may fit an element of a tag, a class attribute and an id; the strongest first."""
        if keys not in known:
            tag, attribute, identifier = keys
            classes = frozenset((attribute or "").split())
            words = [*(f".{name}" for name in sorted(classes)), f"#{identifier}", tag]
            rules = (rule for word in words for rule in rules_by(word))
            fitting = [
                rule
                for rule in rules
                if rule.steps[-1][1].may_fit(tag, classes) and rule.steps[-1][1].id in ("", identifier)
            ][-_MAX_FITTING:]
            known[keys] = sorted(fitting, key=_weight, reverse=True)
        return known[keys]

    def _hiding_by(self, word: str) -> list[_Rule]:
        if word not in self._hiding_rules:
            blocks = self._hiding.get(word if word[:1] in ("#", ".") else "", ())
            self._hiding_rules[word] = [rule for block in blocks for rule in self._read(block) if rule.is_about(word)]
        return self._hiding_rules[word]

    def _showing_by(self, word: str) -> list[_Rule]:
        if word not in self._showing_rules:
            blocks = self._showing_with(word) if word[:1] in ("#", ".") or self._hiding_by(word) else []
            self._showing_rules[word] = [rule for block in blocks for rule in self._read(block) if rule.is_about(word)]
        return self._showing_rules[word]

    def _showing_with(self, word: str) -> list[_Block]:
        """The rules that show in whose selectors a word is found: by one look at all of them."""
        if not self._showing_starts:
            self._showing_text = "\n".join(block.selectors for block in self._showing)
            lengths = (len(block.selectors) + 1 for block in self._showing)
            self._showing_starts = list(itertools.accumulate(lengths, initial=0))
        blocks: list[_Block] = []
        text = self._showing_text
        place = text.find(word)
        while place >= 0:
            end = place + len(word)
            if (after := text[end : end + 1]).isalnum() or after in ("-", "_"):  # a longer word
                place = text.find(word, place + 1)
                continue
            number = bisect.bisect_right(self._showing_starts, place)
            blocks.append(self._showing[number - 1])
            place = text.find(word, self._showing_starts[number])
        return blocks

    def _read(self, block: _Block) -> list[_Rule]:
        if block.place not in self._blocks:
            rules = _read(block.selectors, block.declarations)
            self._blocks[block.place] = [rule._replace(weight=(*rule.weight[:-1], block.place)) for rule in rules]
        return self._blocks[block.place]

    def _strongest(self, rules: Iterable[_Rule], node: LexborNode, attributes: Attributes) -> _Rule | None:
        """The one of some rules, the strongest first, that decides about an element."""
        for rule in rules:
            steps = rule.steps
            conditions = steps[-1][1].conditions
            if (not conditions or fits(attributes, conditions)) and (
                len(steps) == 1 or self._is_inside(self._around(node.parent), rule, len(steps) - 1)
            ):
                return rule
        return None

    def _is_inside(self, element: "_Around | None", rule: _Rule, depth: int) -> bool:
        """Whether an element's parent and those around it are what the first steps of a selector ask for."""
        passed: list[tuple[int, int, int]] = []
        found = False
        known = self._inside
        identity = id(rule)
        tag, identifier, classes, conditions = rule.steps[depth - 1][1]
        is_parent_asked = rule.steps[depth][0] == ">"
        while element is not None:
            key = (element.number, identity, depth)
            if key in known:
                found = known[key]
                break
            passed.append(key)
            if (
                (not classes or classes <= element.classes)
                and (not tag or tag == element.tag)
                and (not identifier or identifier == element.identifier)
                and (not conditions or fits(element.attributes, conditions))
                and (depth == 1 or self._is_inside(self._parent_of(element), rule, depth - 1))
            ):
                found = True
                break
            if is_parent_asked:
                break
            element = self._parent_of(element)
        if len(known) > _MAX_KNOWN:
            known.clear()
        known.update(dict.fromkeys(passed, found))
        return found

    def _around(self, node: LexborNode | None) -> "_Around | None":
        """What selectors ask of an element that others are in."""
        if node is None:
            return None
        number = node.mem_id
        found = self._nodes.get(number)
        if found is None:
            found = self._nodes[number] = _Around(number, node)
        return found

    def _parent_of(self, element: "_Around") -> "_Around | None":
        if not element.is_parent_known:
            element.parent = self._around(element.node.parent)
            element.is_parent_known = True
        return element.parent


class _Around:
    """An element that others are in."""

    __slots__ = ("attributes", "classes", "identifier", "is_parent_known", "node", "number", "parent", "tag")

    def __init__(self, number: int, node: LexborNode) -> None:
        self.number = number
        self.node = node
        self.tag = node.tag
        self.attributes: Attributes = node.attributes
        self.classes = frozenset((self.attributes.get("class") or "").split())
        self.identifier = self.attributes.get("id")
        self.parent: _Around | None = None
        self.is_parent_known = False


def _weight(rule: _Rule) -> tuple[bool, int, int, int, int]:
    return rule.weight


def _is_searched(rule: _Rule) -> bool:
    last = rule.steps[-1][1]
    return not last.classes and not last.id and last.tag not in _NOTHING_IN


class _Styled(dict[str | None, bool]):
    """Class attribute -> whether one of its classes is in a set, worked out once."""

    def __init__(self, classes: frozenset[str]) -> None:
        super().__init__({None: False})
        self._classes = classes

    def __missing__(self, attribute: str | None) -> bool:
        known = self[attribute] = not self._classes.isdisjoint((attribute or "").split())
        return known


def _blocks(document: LexborHTMLParser) -> Iterator[_Block]:
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
            yield _Block(selectors, declarations, place, hides, may_hide and applies is True)


@functools.lru_cache(_SHEETS_KEPT)
def _known_sheet(written: str) -> tuple[_Block, ...]:
    """The pages of a shop repeat their style sheets."""
    return _read_sheet(written)


def _read_sheet(written: str) -> tuple[_Block, ...]:
    blocks: list[_Block] = []
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
            blocks.append(_Block(prelude.rpartition(";")[2], declarations, 0, hides, around[-1] is True))
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
def _read(selectors: str, declarations: str) -> tuple[_Rule, ...]:
    """The rules of a block, one for each selector that is understood."""
    said = _HIDING.findall(declarations) or _SETTING.findall(declarations)
    rules: list[_Rule] = []
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
        rules.append(_Rule(selector.strip(), tuple(steps), properties, (is_important, ids, classes, tags, 0)))
    return tuple(rules)


@functools.lru_cache(10_000)
def _compound(written: str) -> Compound:
    return parse_compound(written, written)


def _specificity(compound: Compound) -> tuple[int, int, int]:
    return bool(compound.id), len(compound.classes) + len(compound.conditions), bool(compound.tag)
