"""Selectors of style sheets, as tinycss2 cuts them into tokens -> what lexbor is to search for, and what is needed first.

Lexbor matches selectors, but each search goes through a whole page. So a selector says which tag, id and classes its
element must have and which words must stand on the elements around it: most elements and most rules are ruled out by
that. It also has its specificity, which lexbor does not give.

A stored page has no pointer, no focus and no history, so `:hover`, `:focus` and the like match nothing. Lexbor lacks
`:dir()`, `:lang()`, `:defined`, `:open`, `:host` and `::slotted()`; they are written as selectors that it has. A
selector that neither knows raises an error when it is searched for, and is then not understood.
"""

import functools
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import tinycss2
from tinycss2.ast import FunctionBlock, HashToken, IdentToken, Node, SquareBracketsBlock

from replay_sessions.simplify.media import split

SHADOW_ROOT = "shadow-root"  # the element that stands for one; `:host` is written so
_BITS = 509  # few enough to be one number, and many enough that a page's words leave most of them off
_PARENT = tuple(tinycss2.parse_component_value_list("& "))

_NEVER = frozenset(
    "-webkit-autofill active autofill buffering current focus focus-visible focus-within fullscreen future has-slotted "
    "hover indeterminate modal muted past paused picture-in-picture playing popover-open seeking stalled target "
    "target-current target-within user-invalid user-valid visited volume-locked xr-overlay".split()
)
_LEGACY_ELEMENTS = frozenset({"after", "before", "first-letter", "first-line"})
_WRITTEN = {  # pseudo-class -> what stands for it
    "-webkit-any-link": ":any-link",
    "defined": ":is(*)",  # scripts had run when the page was stored
    "open": "[open]",
    "scope": ":root",
    "host": SHADOW_ROOT,
}
_DIRECTIONS = {"rtl": ":is([dir=rtl], [dir=rtl] *)", "ltr": ":not([dir=rtl], [dir=rtl] *)"}
_ANY = {"is": "is", "where": "where", "matches": "is", "-webkit-any": "is"}
_OTHER_VENDORS = ("-moz-", "-ms-", "-o-")

Specificity = tuple[int, int, int]


class Selector(NamedTuple):
    """A complex selector.

    Attributes:
        text: For lexbor.
        tag, id, classes: What its element must have; "" for any.
        words: Its element has one of these: `.class`, `#id`, `[attribute`, a tag; `*` for any element.
        specificity: Ids; classes, attributes and pseudo-classes; tags.
        around: Tags, `#id`s and `.class`es that the elements around its element must have among them.
        bits: Theirs.
        is_simple: Whether `tag`, `id` and `classes` say all of it.
        is_slotted: Whether it is about what stands in the slots of a shadow root.
    """

    text: str
    tag: str
    id: str
    classes: frozenset[str]
    words: tuple[str, ...]
    specificity: Specificity
    around: frozenset[str]
    bits: int
    is_simple: bool
    is_slotted: bool


Parents = tuple[Selector, ...]


class _Invalid(Exception):
    """A browser drops the whole list of selectors."""


@functools.lru_cache(20_000)
def parse_selectors(text: str, parents: Parents | None = None) -> Parents:
    """The selectors of a list that may match an element of a stored page.

    Args:
        parents: The selectors of the rule that this one is nested in.

    >>> [selector.text for selector in parse_selectors("a.sm\\\\:block:hover, ul > li:not(.x, :focus), p::before")]
    ['ul > li:not(.x)']
    """
    tokens = tinycss2.parse_component_value_list(text, skip_comments=True)
    try:
        selectors = [_read(part, parents, is_nested=parents is not None) for part in split(tokens)]
    except _Invalid:
        return ()
    return tuple(selector for selector in selectors if selector is not None)


def own_words(tag: str, identifier: str | None, classes: Iterable[str]) -> list[str]:
    """The words of an element or of what a selector asks of one."""
    words = [f".{name}" for name in classes]
    return words + [f"#{identifier}"] * bool(identifier) + [tag] * bool(tag)


def get_bits(words: Iterable[str]) -> int:
    """A bit for each tag, id and class: where a bit of some words is off, one of the words is not there."""
    bits = 0
    for word in words:
        bits |= 1 << hash(word) % _BITS
    return bits


class _Compound:
    """A compound selector while it is read."""

    def __init__(self, combinator: str) -> None:
        self.combinator = combinator  # what stands before it
        self.text = combinator if combinator in ("", " ") else f" {combinator} "
        self.tag = self.id = ""
        self.classes: set[str] = set()
        self.attributes: list[str] = []
        self.choices: list[tuple[str, ...]] = []  # the words of the arguments of `:is()`
        self.around: frozenset[str] = frozenset()
        self.specificity: Specificity = (0, 0, 0)
        self.is_simple = True
        self.is_slotted = False

    def add(self, text: str, ids: int = 0, classes: int = 0, tags: int = 0, *, is_simple: bool = False) -> None:
        self.text += text
        self.specificity = _add(self.specificity, (ids, classes, tags))
        self.is_simple = self.is_simple and is_simple

    def words(self) -> tuple[str, ...]:
        """What its elements are filed under: what is rarest."""
        if self.classes or self.id:
            return (f".{min(self.classes)}" if self.classes else f"#{self.id}",)
        choices = [choice for choice in self.choices if "*" not in choice]
        if choices:
            return min(choices, key=len)
        names = [name for name in self.attributes if name != "class"]  # elements without classes may have none
        return (f"[{names[0]}" if names else self.tag or "*",)


def _read(tokens: Sequence[Node], parents: Parents | None, *, is_nested: bool = False) -> Selector | None:
    """One selector; None if it matches no element of a stored page."""
    if is_nested and "&" not in tinycss2.serialize(tokens):
        tokens = [*_PARENT, *tokens]
    compounds = [_Compound("")]
    combinator, colons = "", 0
    for token in tokens:
        if token.type == "whitespace" or token in (">", "+", "~"):
            combinator = token.value if token.type != "whitespace" else combinator or " "
            continue
        if combinator:
            if compounds[-1].text:
                compounds.append(_Compound(combinator))
            else:
                compounds[-1].text = f"{combinator} "  # of an argument of `:has()`, which begins with it
                compounds[-1].is_simple = False
            combinator = ""
        if token == ":":
            colons += 1
            continue
        if not (_add_pseudo(compounds[-1], token, colons, parents) if colons else _add_part(compounds[-1], token, parents)):
            return None
        colons = 0
    if combinator.strip() or colons:
        raise _Invalid
    return _joined(compounds)


def _joined(compounds: list[_Compound]) -> Selector:
    subject = compounds[-1]
    around = subject.around
    for compound, after in zip(compounds, compounds[1:], strict=False):
        around |= compound.around
        if after.combinator in (" ", ">"):  # others stand beside the element, or beside one around it
            around |= frozenset(own_words(compound.tag, compound.id, compound.classes))
    return Selector(
        text="".join(compound.text for compound in compounds),
        tag=subject.tag,
        id=subject.id,
        classes=frozenset(subject.classes),
        words=subject.words(),
        specificity=functools.reduce(_add, (compound.specificity for compound in compounds)),
        around=around,
        bits=get_bits(around),
        is_simple=len(compounds) == 1 and subject.is_simple,
        is_slotted=subject.is_slotted,
    )


def _add_part(compound: _Compound, token: Node, parents: Parents | None) -> bool:
    """Adds what is no pseudo-class; `.` waits in the text for its class."""
    if isinstance(token, IdentToken) and compound.text[-1:] == ".":
        compound.classes.add(token.value)
        compound.add(token.serialize(), classes=1, is_simple=True)
    elif isinstance(token, IdentToken):
        compound.tag = token.lower_value
        compound.add(token.serialize(), tags=1, is_simple=True)
    elif isinstance(token, HashToken):
        compound.id = token.value
        compound.add(token.serialize(), ids=1, is_simple=True)
    elif isinstance(token, SquareBracketsBlock):
        names = [inner.lower_value for inner in token.content if isinstance(inner, IdentToken)]
        compound.attributes += names[:1]
        compound.add(token.serialize(), classes=1)
    elif token == "&":
        _add_parents(compound, parents)
    elif token in ("*", "."):
        compound.add(token.value, is_simple=True)
    elif token == "|":
        compound.tag = ""
        compound.add("|")
    else:
        raise _Invalid
    return True


def _add_parents(compound: _Compound, parents: Parents | None) -> None:
    if parents is None:
        compound.add(":root", classes=1)
        return
    if not parents:
        raise _Invalid
    _add_choice(compound, "is", list(parents))
    if len(parents) == 1:
        parent = parents[0]
        compound.tag, compound.id = compound.tag or parent.tag, compound.id or parent.id
        compound.classes |= parent.classes
        compound.around |= parent.around


def _add_choice(compound: _Compound, name: str, choices: list[Selector]) -> None:
    """Adds `:is()` or `:where()`."""
    heaviest = max(choice.specificity for choice in choices) if name == "is" else (0, 0, 0)
    compound.choices.append(tuple({word: None for choice in choices for word in choice.words}))
    compound.add(f":{name}({', '.join(choice.text for choice in choices)})", *heaviest)


def _add_pseudo(compound: _Compound, token: Node, colons: int, parents: Parents | None) -> bool:
    """Adds a pseudo-class; False if nothing matches it."""
    if not isinstance(token, (IdentToken, FunctionBlock)):
        raise _Invalid
    name = token.lower_name if isinstance(token, FunctionBlock) else token.lower_value
    if name.startswith(_OTHER_VENDORS):
        raise _Invalid
    if colons > 1:
        if name != "slotted" or not isinstance(token, FunctionBlock):
            return False
        choices = _arguments(token, parents)
        if not choices:
            return False
        around = compound.text.rstrip()
        compound.text = f"{around or ' slot'} > "  # `slot::slotted(p)` or `::slotted(p)`
        compound.is_slotted = True
        compound.tag, compound.id, compound.classes, compound.attributes = "", "", set(), []
        _add_choice(compound, "is", choices)
        return True
    if name in _NEVER or (name in _LEGACY_ELEMENTS and isinstance(token, IdentToken)):
        return False
    if isinstance(token, FunctionBlock):
        return _add_function(compound, token, name, parents)
    if name == "host":
        compound.tag = SHADOW_ROOT
    compound.add(_WRITTEN.get(name, f":{name}"), classes=1)
    return True


def _arguments(token: FunctionBlock, parents: Parents | None, *, is_forgiving: bool = True) -> list[Selector]:
    """The arguments of a pseudo-class that may match something."""
    selectors: list[Selector] = []
    for part in split([inner for inner in token.arguments if inner.type != "comment"]):
        try:
            selector = _read(part, parents)
        except _Invalid:
            if not is_forgiving:
                raise
            continue
        selectors += [selector] if selector is not None else []
    return selectors


def _add_function(compound: _Compound, token: FunctionBlock, name: str, parents: Parents | None) -> bool:
    if name in ("not", "has"):
        selectors = _arguments(token, parents, is_forgiving=False)
        if not selectors:
            compound.add(":is(*)", classes=1)
            return name == "not"
        heaviest = max(selector.specificity for selector in selectors)
        compound.add(f":{name}({', '.join(selector.text for selector in selectors)})", *heaviest)
    elif name in _ANY or name == "host":
        selectors = _arguments(token, parents)
        if not selectors:
            return False
        if name == "host":
            compound.tag = SHADOW_ROOT
            compound.add(SHADOW_ROOT, classes=1)
        _add_choice(compound, _ANY.get(name, "is"), selectors)
    else:
        content = tinycss2.serialize(token.arguments).strip()
        written = f":{name}({content})"
        if name == "dir":
            written = _DIRECTIONS.get(content.lower(), written)
        elif name == "lang" and content.replace("-", "").isalnum():
            written = f":is([lang|={content}], [lang|={content}] *)"
        compound.add(written, classes=1)
    return True


def _add(first: Specificity, second: Specificity) -> Specificity:
    return first[0] + second[0], first[1] + second[1], first[2] + second[2]
