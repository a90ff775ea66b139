"""The selectors of site recipes, matched while the page is walked instead of by one search of the page per rule.

A selector is CSS without the parts that look sideways: `tag`, `#id`, `.class`, `[attribute]`, `[attribute=value]`,
`[attribute^=value]`, `[attribute$=value]`, `[attribute*=value]`, any of them together, a blank for "somewhere inside",
and commas. `#s-refinements li a` becomes three steps: an element that passes the first switches a bit on for everything
inside it, the second step asks for that bit and switches on another, and the third asks for that one. So a page is
matched against all rules in one walk, and an element costs a few dictionary look-ups however many rules there are.
"""

import re
from collections.abc import Mapping

import msgspec

from replay_sessions.errors import BadConfig

__all__ = ["SelectorSet", "Steps"]

Attributes = Mapping[str, str | None]

_PART = re.compile(
    r"""(?P<tag>[a-zA-Z][\w-]*)
      | \#(?P<id>[\w-]+)
      | \.(?P<class>[\w-]+)
      | \[\s*(?P<attribute>[\w:-]+)\s*(?:(?P<operator>[\^$*]?=)\s*(?P<quote>["']?)(?P<value>[^"'\]]*)(?P=quote)\s*)?\]
    """,
    re.VERBOSE,
)
_COMPOUND = re.compile(r"(?:\[[^\]]*\]|[^\s\[])+")
_MEMO_LIMIT = 50_000  # distinct class attributes remembered per recipe and tag


class _Step(msgspec.Struct, frozen=True):
    """One compound selector: what an element must be, which bits it needs, and what its match brings about.

    Attributes:
        needs: The bits that must be on where the element stands.
        grants: The bit that is switched on for what is inside; 0 for the last step of a selector.
        rules: The index of the rule that applies, for the last step.
    """

    tag: str = ""
    id: str = ""
    classes: frozenset[str] = frozenset()
    attributes: tuple[tuple[str, str, str], ...] = ()
    needs: int = 0
    grants: int = 0
    rules: tuple[int, ...] = ()


Steps = tuple[_Step, ...]


class SelectorSet:
    """Many selectors, compiled to be matched together.

    Attributes:
        attribute_names, ids: An element with none of these attributes and ids fits what `by_class` finds and no more.

    >>> rules = SelectorSet(["ul.menu a", "[role=button], button"])
    >>> _, inside = rules.match("ul", {"class": "menu wide"}, 0)
    >>> rules.match("a", {}, inside)[0], rules.match("a", {"role": "button"}, inside)[0], rules.match("a", {}, 0)[0]
    ((0,), (0, 1), ())
    """

    def __init__(self, selectors: list[str]) -> None:
        self._bits = 0
        self._by_id: dict[str, list[_Step]] = {}
        self._by_attribute: dict[str, list[_Step]] = {}
        self._by_class: dict[str, list[_Step]] = {}
        self._by_tag: dict[str, list[_Step]] = {}
        self._memo: dict[str, dict[str | None, Steps]] = {}
        for rule, selector in enumerate(selectors):
            for alternative in selector.split(","):
                self._add(alternative.strip(), rule)
        self.attribute_names = frozenset(self._by_attribute)
        self.ids = frozenset(self._by_id)

    def by_class(self, tag: str, classes: str | None) -> Steps:
        """The steps that an element of this tag and class attribute fits, but for conditions on other attributes."""
        try:
            return self._memo[tag][classes]
        except KeyError:
            memo = self._memo.setdefault(tag, {})
            if len(memo) >= _MEMO_LIMIT:
                memo.clear()
            memo[classes] = self._steps(tag, frozenset((classes or "").split()))
            return memo[classes]

    def match(self, tag: str, attributes: Attributes, inside: int) -> tuple[tuple[int, ...], int]:
        """The rules that fit an element, lowest first, and the bits that hold for what is inside it.

        Args:
            inside: The bits that hold where the element stands; 0 at the top of the page.
        """
        steps = self.by_class(tag, attributes.get("class"))
        if not self.attribute_names.isdisjoint(attributes) or attributes.get("id") in self.ids:
            steps += self._by_other_attributes(tag, attributes)
        rules: tuple[int, ...] = ()
        granted = inside
        for step in steps:
            if step.needs & inside == step.needs and (not step.attributes or _fits(attributes, step.attributes)):
                granted |= step.grants
                rules += step.rules
        return (rules if len(rules) < 2 else tuple(sorted(set(rules)))), granted

    def _steps(self, tag: str, classes: frozenset[str]) -> Steps:
        steps = self._by_tag.get(tag, [])
        for name in sorted(classes):
            steps = steps + self._by_class.get(name, [])
        return tuple(step for step in steps if step.tag in ("", tag) and step.classes <= classes)

    def _by_other_attributes(self, tag: str, attributes: Attributes) -> Steps:
        steps = self._by_id.get(attributes.get("id") or "", [])
        for name in self.attribute_names.intersection(attributes):
            steps = steps + self._by_attribute.get(name, [])
        classes = frozenset((attributes.get("class") or "").split())
        return tuple(step for step in steps if step.tag in ("", tag) and step.classes <= classes)

    def _add(self, selector: str, rule: int) -> None:
        compounds = _COMPOUND.findall(selector)
        if not compounds:
            raise BadConfig(f"empty selector in rule {rule + 1} of the recipe: give one such as '#cart a.delete'")
        needs = 0
        for compound in compounds[:-1]:
            self._bits += 1
            grants = 1 << self._bits
            self._index(_parse(compound, selector, needs=needs, grants=grants))
            needs |= grants
        self._index(_parse(compounds[-1], selector, needs=needs, rules=(rule,)))

    def _index(self, step: _Step) -> None:
        """Files a step under what is rarest about it."""
        if step.id:
            self._by_id.setdefault(step.id, []).append(step)
        elif step.attributes:
            self._by_attribute.setdefault(step.attributes[0][0], []).append(step)
        elif step.classes:
            self._by_class.setdefault(min(step.classes), []).append(step)
        else:
            self._by_tag.setdefault(step.tag, []).append(step)


def _parse(compound: str, selector: str, *, needs: int = 0, grants: int = 0, rules: tuple[int, ...] = ()) -> _Step:
    tag, identifier = "", ""
    classes: set[str] = set()
    attributes: list[tuple[str, str, str]] = []
    position = 0
    while position < len(compound):
        part = _PART.match(compound, position)
        if part is None or (part["tag"] and position):
            raise BadConfig(
                f"selector {selector!r} of a recipe: {compound[position:]!r} is not understood; expected tag, #id, .class, "
                "[attribute], [attribute=value] (also ^=, $=, *=), a blank for 'inside', and commas"
            )
        position = part.end()
        if part["tag"]:
            tag = part["tag"].lower()
        elif part["id"]:
            identifier = part["id"]
        elif part["class"]:
            classes.add(part["class"])
        else:
            attributes.append((part["attribute"].lower(), part["operator"] or "", part["value"] or ""))
    return _Step(tag, identifier, frozenset(classes), tuple(attributes), needs, grants, rules)


def _fits(attributes: Attributes, conditions: tuple[tuple[str, str, str], ...]) -> bool:
    for name, operator, value in conditions:
        if name not in attributes:
            return False
        given = attributes[name] or ""
        if operator == "=":
            fits = given == value
        elif operator == "^=":
            fits = given.startswith(value)
        elif operator == "$=":
            fits = given.endswith(value)
        else:
            fits = value in given
        if not fits:
            return False
    return True
