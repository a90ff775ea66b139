"""Which elements the page's own `<style>` hides: its rules that set `display` or `visibility`, cascaded as CSS says.

Style sheets in files of their own are no part of a page and are not known; which rules of a sheet count is up to
style_sheets.py.
"""

import bisect
import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Mapping

from selectolax.lexbor import LexborHTMLParser, LexborNode, SelectolaxError

from replay_sessions.simplify.recipes.selectors import fits
from replay_sessions.simplify.style_sheets import SETTING, Block, Rule, blocks_of, rules_of

__all__ = ["StyleRules"]

_MAX_SEARCHES = 30  # selectors without class or id, for each of which the page is searched
_MAX_KNOWN = 1_000_000  # answers that are remembered for a page
_MAX_FITTING = 100  # rules that are looked at for one element

_NOTHING_IN = frozenset({"br", "hr", "i", "iframe", "img", "link", "script", "style", "svg", "template"})
_KEY = re.compile(r"([.#][\w-]+)(?:\[[^\]]*\])?\s*(?:,|\Z)")


Attributes = Mapping[str, str | None]
_Keys = tuple[str, str | None, str | None]  # tag, class attribute, id


class StyleRules:
    """The rules of a page that hide, and those that show again; read as far as an element asks for them.

    Attributes:
        ids: The ids that hiding rules are about.
        is_styled: Class attribute -> whether a hiding rule is about one of its classes.
    """

    def __init__(self, document: LexborHTMLParser) -> None:
        self._hiding: dict[str, list[Block]] = {}  # by the class or id at the end of a selector; "" for other ends
        self._showing: list[Block] = []
        self._showing_text = ""  # the selectors of those, one after the other, and where each begins
        self._showing_starts: list[int] = []
        self._blocks: dict[int, list[Rule]] = {}  # by place, as far as they are read
        self._hiding_rules: dict[str, list[Rule]] = {}
        self._showing_rules: dict[str, list[Rule]] = {}
        self._hides: dict[_Keys, list[Rule]] = {}
        self._shows: dict[_Keys, list[Rule]] = {}
        self._inside: dict[tuple[int, int, int], bool] = {}  # by element, rule and number of steps
        self._nodes: dict[int, _Around] = {}
        for block in blocks_of(document):
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
        if hides is None or (not hides.weight[0] and SETTING.search(attributes.get("style") or "")):
            return False
        showing = self._fitting(self._shows, keys, self._showing_by)
        stronger = (rule for rule in showing if rule.weight > hides.weight and rule.properties >= hides.properties)
        return self._strongest(stronger, node, attributes) is None

    def _fitting(
        self, known: dict[_Keys, list[Rule]], keys: _Keys, rules_by: Callable[[str], Iterable[Rule]]
    ) -> list[Rule]:
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

    def _hiding_by(self, word: str) -> list[Rule]:
        if word not in self._hiding_rules:
            blocks = self._hiding.get(word if word[:1] in ("#", ".") else "", ())
            self._hiding_rules[word] = [rule for block in blocks for rule in self._read(block) if rule.is_about(word)]
        return self._hiding_rules[word]

    def _showing_by(self, word: str) -> list[Rule]:
        if word not in self._showing_rules:
            blocks = self._showing_with(word) if word[:1] in ("#", ".") or self._hiding_by(word) else []
            self._showing_rules[word] = [rule for block in blocks for rule in self._read(block) if rule.is_about(word)]
        return self._showing_rules[word]

    def _showing_with(self, word: str) -> list[Block]:
        """The rules that show in whose selectors a word is found: by one look at all of them."""
        if not self._showing_starts:
            self._showing_text = "\n".join(block.selectors for block in self._showing)
            lengths = (len(block.selectors) + 1 for block in self._showing)
            self._showing_starts = list(itertools.accumulate(lengths, initial=0))
        blocks: list[Block] = []
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

    def _read(self, block: Block) -> list[Rule]:
        if block.place not in self._blocks:
            rules = rules_of(block.selectors, block.declarations)
            self._blocks[block.place] = [rule._replace(weight=(*rule.weight[:-1], block.place)) for rule in rules]
        return self._blocks[block.place]

    def _strongest(self, rules: Iterable[Rule], node: LexborNode, attributes: Attributes) -> Rule | None:
        """The one of some rules, the strongest first, that decides about an element."""
        for rule in rules:
            steps = rule.steps
            conditions = steps[-1][1].conditions
            if (not conditions or fits(attributes, conditions)) and (
                len(steps) == 1 or self._is_inside(self._around(node.parent), rule, len(steps) - 1)
            ):
                return rule
        return None

    def _is_inside(self, element: "_Around | None", rule: Rule, depth: int) -> bool:
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


def _weight(rule: Rule) -> tuple[bool, int, int, int, int]:
    return rule.weight


def _is_searched(rule: Rule) -> bool:
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
