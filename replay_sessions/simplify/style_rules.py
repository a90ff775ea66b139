"""Which elements the page's own `<style>` hides: its rules that set `display` or `visibility`, cascaded as CSS says.

Style sheets in files of their own are no part of a page and are not known; which rules of a sheet count is up to
style_sheets.py.
"""

import functools
import operator
from collections.abc import Iterable, Iterator, Mapping

from selectolax.lexbor import LexborHTMLParser, LexborNode, SelectolaxError

from replay_sessions.simplify.element_table import ElementTable
from replay_sessions.simplify.recipes.selectors import MEMO_LIMIT, Memo, SelectorSet, fits
from replay_sessions.simplify.style_sheets import SETTING, Blocks, Kept, Rule, Sheet, bits_of, sheets_of

_MAX_SEARCHES = 30  # selectors without class or id, for each of which the page is searched
_MAX_KNOWN = 1_000_000  # answers that are remembered for a page
_MAX_FITTING = 100  # rules that are looked at for one element
_LEAST_LENGTH = 200_000  # what remembering them takes, however short the sheets are: as much as so many characters

Attributes = Mapping[str, str | None]
_Keys = tuple[str, str | None, str | None]  # tag, class attribute, id
_Weighed = tuple[tuple[int, ...], Rule]  # a rule with all that decides between rules, its place on the page included


class StyleRules:
    """The rules of a page that hide, and those that show again; read as far as an element asks for them.

    Attributes:
        ids: The ids that hiding rules are about.
    """

    def __init__(self, styles: Iterable[LexborNode]) -> None:
        self._cascade = _cascade_of(tuple(sheets_of(styles)))
        self._inside: dict[tuple[int, int, int], bool] = {}  # by element, rule and number of steps
        self._nodes: dict[int, _Around] = {}
        self.ids = self._cascade.ids

    def table(self, selectors: SelectorSet) -> ElementTable:
        """What these rules and a recipe's selectors decide by the tags and classes of elements."""
        table = self._cascade.tables.get(selectors)
        if table is None or table.size > MEMO_LIMIT:
            table = self._cascade.tables[selectors] = ElementTable(selectors, self._cascade.is_styled)
        return table

    def search(self, document: LexborHTMLParser) -> Iterator[LexborNode]:
        """The elements that hiding rules about neither a class nor an id hide."""
        for node in _select_all(document, self._cascade.searched):
            if self.hide(node, node.tag or "", node.attributes):
                yield node

    def show(self, node: LexborNode, tag: str, attributes: Attributes) -> bool:
        """Whether the rules show an element that is `hidden` by its attribute: any of them is stronger."""
        showing = self._cascade.showing[tag, attributes.get("class"), attributes.get("id")]
        deciding = [weighed for weighed in showing if "display" in weighed[1].properties]
        return self._strongest(deciding, node, attributes) is not None

    def may_hide(self, attributes: Attributes) -> bool:
        """Whether a hiding rule is about an element's id or one of its classes."""
        return self._cascade.is_styled[attributes.get("class")] or attributes.get("id") in self.ids

    def hide(self, node: LexborNode, tag: str, attributes: Attributes) -> bool:
        """Whether the rules hide an element; what its own `style` says is stronger than all but important ones."""
        keys = (tag, attributes.get("class"), attributes.get("id"))
        strongest = self._strongest(self._cascade.hiding[keys], node, attributes)
        if strongest is None:
            return False
        weight, hides = strongest
        if not hides.weight[0] and SETTING.search(attributes.get("style") or ""):
            return False
        stronger = [
            weighed
            for weighed in self._cascade.showing[keys]
            if weighed[0] > weight and weighed[1].properties >= hides.properties
        ]
        return self._strongest(stronger, node, attributes) is None

    def _strongest(self, rules: Iterable[_Weighed], node: LexborNode, attributes: Attributes) -> _Weighed | None:
        """The one of some rules, the strongest first, that decides about an element."""
        around: _Around | None = None
        for weighed in rules:
            rule = weighed[1]
            steps = rule.steps
            conditions = steps[-1][1].conditions
            if conditions and not fits(attributes, conditions):
                continue
            if len(steps) == 1:
                return weighed
            around = around or self._around(node.parent)
            # Most rules ask for a class that no element around has: one look at all their words is enough for those.
            if around is None or rule.around & around.words != rule.around:
                continue
            if self._is_inside(around, rule, len(steps) - 1):
                return weighed
        return None

    def _is_inside(self, element: "_Around | None", rule: Rule, depth: int) -> bool:
        """Whether an element's parent and those around it are what the first steps of a selector ask for."""
        passed: list[tuple[int, int, int]] = []
        is_inside = False
        cache = self._inside
        identity = id(rule)
        tag, identifier, classes, conditions = rule.steps[depth - 1][1]
        is_parent_asked = rule.steps[depth][0] == ">"
        while element is not None:
            key = (element.number, identity, depth)
            if key in cache:
                is_inside = cache[key]
                break
            passed.append(key)
            if (
                (not classes or classes.issubset(element.classes))
                and (not tag or tag == element.tag)
                and (not identifier or identifier == element.identifier)
                and (not conditions or fits(element.attributes, conditions))
                and (depth == 1 or self._is_inside(element.parent, rule, depth - 1))
            ):
                is_inside = True
                break
            if is_parent_asked:
                break
            element = element.parent
        if len(cache) > _MAX_KNOWN:
            cache.clear()
        cache.update(dict.fromkeys(passed, is_inside))
        return is_inside

    def _around(self, node: LexborNode | None) -> "_Around | None":
        """What selectors ask of an element that others are in."""
        nodes = self._nodes
        unknown: list[LexborNode] = []
        around: _Around | None = None
        while node is not None and (around := nodes.get(node.mem_id)) is None:
            unknown.append(node)
            node = node.parent
        while unknown:
            around = _Around(unknown.pop(), around)
            nodes[around.number] = around
        return around


class _Around:
    """An element that others are in.

    Attributes:
        words: The bits (`bits_of`) of the tags, ids and classes of it and of all around it.
    """

    __slots__ = ("attributes", "classes", "identifier", "number", "parent", "tag", "words")

    def __init__(self, node: LexborNode, parent: "_Around | None") -> None:
        self.number = node.mem_id
        self.tag = tag = node.tag or ""
        self.attributes: Attributes = node.attributes
        self.classes = classes = (self.attributes.get("class") or "").split()
        self.identifier = identifier = self.attributes.get("id") or ""
        self.parent = parent
        words = bits_of((*classes, tag, identifier))
        self.words: int = words if parent is None else parent.words | words


class _Side(Memo[_Keys, list[_Weighed]]):
    """Tag, class attribute and id -> the rules of a page's sheets that may hide, or show, such an element.

    The strongest come first. Whatever is around the element is not looked at yet.

    Attributes:
        words: The classes, ids and tags that the rules are about.
    """

    def __init__(self, sheets: list[Blocks]) -> None:
        super().__init__(self._fitting)
        self._sheets = sheets
        self._about: Memo[str, list[_Weighed]] = Memo(self._weighed)

    @functools.cached_property
    def words(self) -> frozenset[str]:
        return frozenset[str]().union(*[blocks.by_key for blocks in self._sheets])

    def _weighed(self, word: str) -> list[_Weighed]:
        return [
            ((*rule.weight, number, position), rule)
            for number, blocks in enumerate(self._sheets)
            for position, rule in blocks.about[word]
        ]

    def _fitting(self, keys: _Keys) -> list[_Weighed]:
        tag, attribute, identifier = keys
        classes = frozenset((attribute or "").split())
        fitting: list[_Weighed] = []
        for word in (*[f".{name}" for name in sorted(classes)], f"#{identifier}", tag):
            for weighed in self._about[word] if word in self.words else ():  # of a page's words, sheets are about few
                last = weighed[1].steps[-1][1]
                if last.may_fit(tag, classes) and last.id in ("", identifier):
                    fitting.append(weighed)
        return sorted(fitting[-_MAX_FITTING:], key=operator.itemgetter(0), reverse=True)


class _Cascade:
    """What the sheets of a page say of elements by their tags, classes and ids, whatever is around them.

    The pages of a shop have the same sheets and elements, so what is worked out for one page is kept for the next.

    Attributes:
        ids: The ids that hiding rules are about.
        is_styled: Class attribute -> whether a hiding rule is about one of its classes.
        searched: The selectors of hiding rules about neither a class nor an id.
        tables: What is decided by tags and classes, for each recipe.
    """

    def __init__(self, sheets: tuple[Sheet, ...]) -> None:
        self.hiding = _Side([sheet.hiding for sheet in sheets])
        self.showing = _Side([sheet.showing for sheet in sheets])
        self.ids = self._of("#")
        self._classes = self._of(".")
        self.is_styled: Memo[str | None, bool] = Memo(self._is_styled)
        self.searched = [selector for sheet in sheets for selector in sheet.hiding.searched][:_MAX_SEARCHES]
        self.tables: dict[SelectorSet, ElementTable] = {}

    def _of(self, mark: str) -> frozenset[str]:
        return frozenset(word[1:] for word in self.hiding.words if word[:1] == mark)

    def _is_styled(self, attribute: str | None) -> bool:
        return not self._classes.isdisjoint((attribute or "").split())


_CASCADES: Kept[tuple[Sheet, ...], _Cascade] = Kept()


def _cascade_of(sheets: tuple[Sheet, ...]) -> _Cascade:
    """What some sheets say together: as it was worked out for the last page that had them."""
    length = _LEAST_LENGTH + sum(sheet.length for sheet in sheets)
    return _CASCADES.get(sheets, length, lambda: _Cascade(sheets))


def _select_all(document: LexborHTMLParser, selectors: list[str]) -> Iterator[LexborNode]:
    """What some selectors find: by one search for all of them, or by one each if that understands one of them not."""
    if not selectors:
        return
    try:
        yield from document.css(", ".join(selectors))
    except SelectolaxError:
        for selector in selectors if len(selectors) > 1 else ():
            yield from _select_all(document, [selector])
