"""The selectors of site recipes, matched while the page is walked instead of by one search of the page per rule.

A selector is CSS without the parts that look sideways: `tag`, `#id`, `.class`, `[attribute]`, `[attribute=value]`,
`[attribute^=value]`, `[attribute$=value]`, `[attribute*=value]`, any of them together, a blank for "somewhere inside",
and commas. `#s-refinements li a` becomes three steps: an element that passes the first switches a bit on for everything
inside it, the second step asks for that bit and switches on another, and the third asks for that one. So a page is
matched against all rules in one walk, and an element costs a few dictionary look-ups however many rules there are.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple, TypeVar

from replay_sessions.foundation.errors import BadConfig

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
MEMO_LIMIT = 20_000  # keys that are remembered, as a recipe's class attributes are


Conditions = tuple[tuple[str, str, str], ...]  # (attribute, operator, value)


class Compound(NamedTuple):
    """What one compound selector asks of an element itself; its id is left to the caller."""

    tag: str
    id: str
    classes: frozenset[str]
    conditions: Conditions

    def may_fit(self, tag: str, classes: frozenset[str]) -> bool:
        return self.tag in ("", tag) and self.classes <= classes


class _Step(NamedTuple):
    """One compound selector on the way through a selector.

    Attributes:
        needs: The bits that must be on where the element stands.
        conditions: What its attributes must be.
        grants: The bit that is switched on for what is inside; 0 for the last step.
        rules: The index of the rule that applies, for the last step.
    """

    needs: int
    conditions: Conditions
    grants: int
    rules: tuple[int, ...]


class Choice(NamedTuple):
    """What an element's tag and classes and the place where it stands decide.

    Attributes:
        rules: The rules that fit in any case, lowest first.
        inside: The bits that hold for what is inside it in any case.
        conditional: The steps that depend on its other attributes: for each attribute that a first condition is
            about, the values that those ask for, and their steps.
    """

    rules: tuple[int, ...]
    inside: int
    conditional: tuple[tuple[str, tuple[tuple[str, _Step], ...]], ...]


_ChoiceKey = tuple[str, str | None, int]  # tag, class attribute, bits
_Key = TypeVar("_Key")
_Value = TypeVar("_Value")


class Memo(dict[_Key, _Value]):
    """What is worked out once for each key: a site's pages repeat theirs many times over."""

    def __init__(self, compute: Callable[[_Key], _Value]) -> None:
        super().__init__()
        self._compute = compute

    def __missing__(self, key: _Key) -> _Value:
        if len(self) >= MEMO_LIMIT:
            self.clear()
        value = self[key] = self._compute(key)
        return value


class SelectorSet:
    """Many selectors, compiled to be matched together.

    Attributes:
        choices: (tag, class attribute, the bits that hold where the element stands) -> what `match` is to be given;
            None where no rule fits and no bit changes, unless by one of these:
        attribute_names, ids: The attributes and ids that other rules depend on.

    >>> rules = SelectorSet(["ul.menu a", "[role=button], button"])
    >>> inside = rules.choices["ul", "menu wide", 0].inside
    >>> for attributes in ({}, {"role": "button"}):
    ...     [rules.match(rules.choices["a", None, bits], "a", attributes, bits)[0] for bits in (0, inside)]
    [(), (0,)]
    [(1,), (0, 1)]
    """

    def __init__(self, selectors: list[str]) -> None:
        self._granted: dict[tuple[str, int], int] = {}  # (compound selector, bits it needs) -> the bit that it grants
        # The steps, filed under what is rarest about them.
        self._by_value: dict[tuple[str, str], list[tuple[Compound, _Step]]] = {}
        self._by_name: dict[str, list[tuple[Compound, _Step]]] = {}
        self._by_class: dict[str, list[tuple[Compound, _Step]]] = {}
        self._by_tag: dict[str, list[tuple[Compound, _Step]]] = {}
        self._by_class_text: list[tuple[Compound, _Step]] = []  # such as [class*=card]
        for rule, selector in enumerate(selectors):
            for alternative in selector.split(","):
                self._add(alternative.strip(), rule)
        # What a class attribute has in it wherever one of these fits: one search for all of them.
        texts = {value for compound, _ in self._by_class_text for _, _, value in compound.conditions[:1]}
        self._may_fit_class_text = re.compile("|".join(map(re.escape, sorted(texts)))).search
        self.choices: Memo[_ChoiceKey, Choice | None] = Memo(self._choice)
        self.attribute_names = frozenset(self._by_name) | {name for name, _ in self._by_value if name != "id"}
        self.ids = frozenset(value for name, value in self._by_value if name == "id")

    def match(
        self, choice: Choice | None, tag: str, attributes: Attributes, inside: int
    ) -> tuple[tuple[int, ...], int]:
        """The rules that fit an element, lowest first, and the bits that hold for what is inside it.

        Args:
            inside: The bits that hold where the element stands; 0 at the top of the page.
        """
        rules, granted, conditional = choice or ((), inside, ())
        gained: tuple[int, ...] = ()
        for attribute, steps in conditional:
            if attribute in attributes:
                actual = attributes[attribute] or ""
                for value, step in steps:
                    # A value that fits stands in the attribute, however it is compared; few do.
                    if value in actual and fits(attributes, step.conditions):
                        granted |= step.grants
                        gained += step.rules
        if not self.attribute_names.isdisjoint(attributes) or attributes.get("id") in self.ids:
            for step in self._other_steps(tag, attributes, inside):
                if fits(attributes, step.conditions):
                    granted |= step.grants
                    gained += step.rules
        return (tuple(sorted({*rules, *gained})) if gained else rules), granted

    def _choice(self, key: _ChoiceKey) -> Choice | None:
        tag, class_attribute, inside = key
        classes = frozenset((class_attribute or "").split())
        filed = self._by_tag.get(tag, []) + [entry for name in classes for entry in self._by_class.get(name, ())]
        if class_attribute is not None and self._may_fit_class_text(class_attribute):
            filed += self._by_class_text
        if not filed:
            return None  # as most: the rest would take as long again
        steps = _decided(_holding(filed, tag, classes, inside), class_attribute)
        if not steps:
            return None
        granted = inside
        for step in steps:
            granted |= step.grants if not step.conditions else 0
        return Choice(
            rules=tuple(sorted({rule for step in steps if not step.conditions for rule in step.rules})),
            inside=granted,
            conditional=_by_attribute([step for step in steps if step.conditions]),
        )

    def _other_steps(self, tag: str, attributes: Attributes, inside: int) -> tuple[_Step, ...]:
        """The steps that are filed under an attribute or an id."""
        filed = list(self._by_value.get(("id", attributes.get("id") or ""), ()))
        for name in self.attribute_names.intersection(attributes):
            filed += self._by_value.get((name, attributes[name] or ""), ())
            filed += self._by_name.get(name, ())
        return _holding(filed, tag, frozenset((attributes.get("class") or "").split()), inside) if filed else ()

    def _add(self, selector: str, rule: int) -> None:
        compounds = _COMPOUND.findall(selector)
        if not compounds:
            raise BadConfig(f"empty selector in rule {rule + 1} of the recipe: give one such as '#cart a.delete'")
        needs = 0
        for written in compounds[:-1]:
            grants = self._granted.get((written, needs), 0)
            if not grants:
                grants = self._granted[written, needs] = 1 << len(self._granted)
                self._file(parse_compound(written, selector), needs, grants, ())
            needs |= grants
        self._file(parse_compound(compounds[-1], selector), needs, 0, (rule,))

    def _file(self, compound: Compound, needs: int, grants: int, rules: tuple[int, ...]) -> None:
        entry = (compound, _Step(needs, compound.conditions, grants, rules))
        if compound.id:
            self._by_value.setdefault(("id", compound.id), []).append(entry)
        elif compound.classes:
            self._by_class.setdefault(min(compound.classes), []).append(entry)
        elif compound.tag:
            self._by_tag.setdefault(compound.tag, []).append(entry)
        elif not (others := [condition for condition in compound.conditions if condition[0] != "class"]):
            self._by_class_text.append(entry)
        elif others[0][1] == "=":
            name, _, value = others[0]
            self._by_value.setdefault((name, value), []).append(entry)
        else:
            self._by_name.setdefault(others[0][0], []).append(entry)


def _holding(filed: list[tuple[Compound, _Step]], tag: str, classes: frozenset[str], inside: int) -> tuple[_Step, ...]:
    """The steps that an element may take by its tag, its classes and the bits that hold where it stands."""
    return tuple(
        step for compound, step in filed if step.needs & inside == step.needs and compound.may_fit(tag, classes)
    )


def _decided(steps: tuple[_Step, ...], class_attribute: str | None) -> tuple[_Step, ...]:
    """The steps that an element's class attribute allows, without their conditions on it."""
    attributes = {} if class_attribute is None else {"class": class_attribute}
    decided: list[_Step] = []
    for step in steps:
        on_class = tuple(condition for condition in step.conditions if condition[0] == "class")
        if on_class and not fits(attributes, on_class):
            continue
        rest = tuple(condition for condition in step.conditions if condition[0] != "class")
        decided.append(step._replace(conditions=rest) if on_class else step)
    return tuple(decided)


def _by_attribute(steps: Iterable[_Step]) -> tuple[tuple[str, tuple[tuple[str, _Step], ...]], ...]:
    """Steps by the attribute that their first condition is about, each with the value that it asks for."""
    by_attribute: dict[str, list[tuple[str, _Step]]] = {}
    for step in steps:
        attribute, _, value = step.conditions[0]
        by_attribute.setdefault(attribute, []).append((value, step))
    return tuple((attribute, tuple(asking)) for attribute, asking in by_attribute.items())


def parse_compound(compound: str, selector: str) -> Compound:
    """Reads one compound of a selector; BadConfig where it is not understood."""
    tag, identifier = "", ""
    classes: set[str] = set()
    conditions: list[tuple[str, str, str]] = []
    position = 0
    while position < len(compound):
        part = _PART.match(compound, position)
        if part is None or (part["tag"] and position):
            raise BadConfig(
                f"selector {selector!r} of a recipe: {compound[position:]!r} is not understood; expected tag, #id, "
                ".class, [attribute], [attribute=value] (also ^=, $=, *=), a blank for 'inside', and commas"
            )
        position = part.end()
        if part["tag"]:
            tag = part["tag"].lower()
        elif part["id"]:
            identifier = part["id"]
        elif part["class"]:
            classes.add(part["class"])
        else:
            conditions.append((part["attribute"].lower(), part["operator"] or "", part["value"] or ""))
    return Compound(tag, identifier, frozenset(classes), tuple(conditions))


def fits(attributes: Attributes, conditions: Conditions) -> bool:
    """Whether an element's attributes are what conditions ask for."""
    for name, operator, value in conditions:
        if name not in attributes:
            return False
        actual = attributes[name] or ""
        if operator == "=":
            fits = actual == value
        elif operator == "^=":
            fits = actual.startswith(value)
        elif operator == "$=":
            fits = actual.endswith(value)
        else:
            fits = value in actual
        if not fits:
            return False
    return True
