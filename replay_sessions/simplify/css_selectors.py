r"""Parses the selectors of style sheets, and rewrites them for lexbor.

Lexbor matches selectors, but each search goes through a part of a page. So a parsed selector has the tag, id and
classes that its element must have, and the words that the elements around it must have. These exclude most elements and
rules without a search. A parsed selector also has its specificity, which lexbor does not compute.

A stored page has no pointer, no focus and no history, so `:hover`, `:focus` and the like match nothing. A field is
invalid if it is required and has no value; patterns and the other buttons of a radio group are ignored. `:default`
ignores submit buttons. Lexbor lacks most of these and `:dir()`, `:lang()`, `:defined`, `:open`, `:host`, `::slotted()`,
so they are rewritten. Selectors that lexbor does not know raise an error when they are searched for; they count as not
understood.
"""

import functools
import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import tinycss2
from tinycss2.ast import FunctionBlock, HashToken, IdentToken, Node, SquareBracketsBlock

from replay_sessions.simplify.media import split

SHADOW_ROOT = "shadow-root"  # the element that replaces a shadow root
_BITS = 509  # size of the Bloom filters: small enough for fast integers, large enough that most bits stay 0
_NEVER = "x-never"  # an attribute that no element has; `[x-never]` has the specificity of a pseudo-class
_ANY = f":not([{_NEVER}])"
_STATES = (
    "-webkit-autofill active autofill buffering current focus focus-visible focus-within fullscreen future hover "
    "indeterminate modal muted past paused picture-in-picture playing popover-open seeking target target-within "
    "user-invalid user-valid visited"
)
_EMPTY = ":is([value=''], :not([value]))"
_BUTTONS = (
    "[type=hidden i], [type=button i], [type=reset i], [type=image i]"  # and hidden fields: they are not validated
)
_WITHOUT_TEXT = f"{_BUTTONS}, [type=submit i], [type=checkbox i], [type=radio i], [type=range i], [type=color i]"
_BARRED = "[disabled], [readonly], fieldset[disabled] *, datalist *"
_UNCHOSEN = (
    "select[required]:not(:has(option[selected]:not([value='']))):not(:not([multiple]):has(option):not("
    ":has(option[selected], option:first-child:is([value=''], :not([value]):empty))))"
)
_INCOMPLETE = (  # required and without a value
    f":is(input:not({_WITHOUT_TEXT})[required]{_EMPTY}, [type=checkbox i][required]:not([checked]), "
    f"textarea[required]:empty, {_UNCHOSEN}):not({_BARRED})"
)
_NOT_VALID = f":is({_INCOMPLETE}, form:has({_INCOMPLETE}), fieldset:has({_INCOMPLETE}))"
_VALIDATED = f":is(form, fieldset, :is(input, textarea, select, button):not({_BUTTONS}, {_BARRED}))"
_PROMPTING = (
    f":is(input:not({_WITHOUT_TEXT}, [type=file i], [type^=date i], [type=month i], [type=time i], [type=week i])"
    f"[placeholder]{_EMPTY}, textarea[placeholder]:empty)"
)
_REPLACED = {f":{name}": f"[{_NEVER}]" for name in _STATES.split()} | {
    ":-webkit-any": ":is",
    ":-webkit-any-link": ":any-link",
    ":default": f"{_ANY}:where(option[selected], [type=checkbox i][checked], [type=radio i][checked])",
    ":defined": _ANY,  # scripts have run before the page is stored
    ":dir(ltr)": ":not([dir=rtl], [dir=rtl] *)",
    ":dir(rtl)": ":is([dir=rtl], [dir=rtl] *)",
    ":host": SHADOW_ROOT,
    ":invalid": f"{_ANY}:where({_NOT_VALID})",
    ":matches": ":is",
    ":open": "[open]",
    ":placeholder-shown": f"{_ANY}:where({_PROMPTING})",
    ":scope": ":root",
    ":valid": f"{_ANY}:where({_VALIDATED}:not({_NOT_VALID}))",
}
_PSEUDO = re.compile(
    r"(?<![\\:]):lang\((?P<lang>[\w-]+)\)|(?<![\\:])(?P<name>:[a-z-]+(?:\((?:ltr|rtl)\))?)(?P<open>\(?)|::slotted(?=\()",
    re.IGNORECASE,
)
# Lexbor (2.6) tests only the nearest ancestor if a compound begins with one of these.
_BARE = re.compile(r"(?<![^\s>+~(,])(?<!\\[\s>+~(,])(?<!\\3\d )(?=:(?:has|is|not|where)\()", re.IGNORECASE)
_NESTING = re.compile(r"(\\.|\"(?:[^\"\\]|\\.)*\")|&", re.DOTALL)  # group 1: an escape or a string
_INVALID = re.compile(r"(?<!\\):-(?:moz|ms|o)-")  # a browser drops the whole list
_PSEUDO_ELEMENTS = frozenset({"after", "before", "first-letter", "first-line"})  # with one colon

Specificity = tuple[int, int, int]


class Selector(NamedTuple):
    """A complex selector.

    Attributes:
        text: The selector as lexbor understands it.
        tag, id, classes: Tag, id and classes that its element must have; "" for any.
        words: Index keys, one of which its element has: `.class`, `#id`, `[attribute`, a tag; `*` for any element.
        specificity: Numbers of ids; of classes, attributes and pseudo-classes; and of tags.
        around: Bloom filter of the tags, `#id`s and `.class`es that the elements around its element must have.
        is_simple: Whether `tag`, `id` and `classes` are the complete selector.
        is_slotted: Whether it matches elements in the slots of a shadow tree, instead of the tree itself.
    """

    text: str
    tag: str
    id: str
    classes: frozenset[str]
    words: tuple[str, ...]
    specificity: Specificity
    around: int
    is_simple: bool
    is_slotted: bool = False


Parents = tuple[Selector, ...]


@functools.lru_cache(20_000)
def parse_selectors(text: str, parents: Parents | None = None) -> Parents:
    r"""Parses a list of selectors, without those that match no element of a stored page.

    Args:
        text: The list of selectors.
        parents: Selectors of the rule around this rule; None for a rule that is not nested.

    >>> [selector.text for selector in parse_selectors("a.sm\\:block:hover, ul > li:not(.x, :focus), p::before")]
    ['ul > li:not(.x, [x-never])']
    """
    if _INVALID.search(text) or parents == ():
        return ()
    outer_selector = f":is({', '.join(parent.text for parent in parents)})" if parents is not None else ":root"
    is_rewritten = parents is not None or "&" in text or ":" in text
    selectors: list[Selector] = []
    for part in split(tinycss2.parse_component_value_list(text, skip_comments=True)):
        tokens = part
        raw = ""
        if is_rewritten:
            raw = tinycss2.serialize(part)
            rewritten = _PSEUDO.sub(_replace, raw)
            if parents is not None and all(match[1] for match in _NESTING.finditer(rewritten)):
                rewritten = f"& {rewritten}"
            rewritten = _BARE.sub("*", _NESTING.sub(lambda match: match[1] or outer_selector, rewritten))
            if rewritten != raw:
                tokens = tinycss2.parse_component_value_list(rewritten)
        if (selector := _read(tokens)) is not None:
            selectors.append(selector._replace(is_slotted=True) if "::slotted" in raw else selector)
    return tuple(selectors)


def own_words(tag: str, identifier: str | None, classes: Iterable[str]) -> list[str]:
    """Returns the words (`.class`, `#id`, tag) of an element, or of a selector's conditions on an element."""
    words = [f".{name}" for name in classes]
    return words + [f"#{identifier}"] * bool(identifier) + [tag] * bool(tag)


def get_bits(words: Iterable[str]) -> int:
    """Returns a Bloom filter of words: a word is absent if its bit is 0."""
    bits = 0
    for word in words:
        bits |= 1 << hash(word) % _BITS
    return bits


def _replace(pseudo: re.Match[str]) -> str:
    if lang := pseudo["lang"]:
        return f":is([lang|={lang}], [lang|={lang}] *)"
    if not pseudo["name"]:  # `slot::slotted(p)` or `::slotted(p)`
        is_after_slot = pseudo.start() > 0 and not pseudo.string[pseudo.start() - 1].isspace()
        return f"{'' if is_after_slot else 'slot'} > :is"
    name = pseudo["name"].lower()
    is_host = name == ":host" and pseudo["open"]
    return (f"{SHADOW_ROOT}:is" if is_host else _REPLACED.get(name, pseudo["name"])) + pseudo["open"]


class _Compound:
    """The conditions of a compound selector on its element, and the specificity of a selector up to its end."""

    def __init__(self, specificity: Specificity = (0, 0, 0)) -> None:
        self.specificity = specificity
        self.tag = self.id = ""
        self.classes: set[str] = set()
        self.attributes: list[str] = []

    def add(self, ids: int = 0, classes: int = 0, tags: int = 0) -> None:
        self.specificity = self.specificity[0] + ids, self.specificity[1] + classes, self.specificity[2] + tags

    def add_function(self, token: FunctionBlock, name: str) -> int | None:
        """Adds a pseudo-class with arguments.

        Returns:
            The bits that it requires of the elements around (`Selector.around`); None if it matches nothing.
        """
        if name not in ("is", "where", "not", "has"):
            self.add(classes=1)
            return 0
        inner = [selector for part in split(token.arguments) if (selector := _read(part)) is not None]
        if not inner:
            self.add(classes=name != "where")
            return 0 if name == "not" else None
        if name != "where":
            self.add(*max(selector.specificity for selector in inner))
        if name in ("not", "has"):
            return 0
        if len(inner) > 1:
            return 0
        self.tag, self.id = self.tag or inner[0].tag, self.id or inner[0].id
        self.classes |= inner[0].classes
        return inner[0].around

    def words(self) -> tuple[str, ...]:
        """Returns the index keys of its elements (`Selector.words`), those that match the fewest elements."""
        if self.classes or self.id:
            return (f"#{self.id}" if self.id else f".{min(self.classes)}",)
        names = [name for name in self.attributes if name != "class"]  # the walk does not look at `class` by its name
        return (f"[{names[0]}" if names else self.tag or "*",)


def _read(tokens: Sequence[Node]) -> Selector | None:  # noqa: C901 - one branch for each kind of token
    """Parses one selector; returns None if it is invalid or matches no element of a stored page."""
    compound = _Compound()
    around = 0
    combinator, colons, is_simple, is_class = "", 0, True, False
    for token in tokens:
        if token.type == "whitespace" or token in (">", "+", "~"):
            combinator = token.value if token.type != "whitespace" else combinator or " "
            continue
        if combinator:
            is_simple = False
            if combinator in (" ", ">"):  # after + and ~, the compound is a sibling, not an ancestor
                around |= get_bits(own_words(compound.tag, compound.id, compound.classes))
            compound, combinator = _Compound(compound.specificity), ""
        if token == ":":
            colons += 1
        elif colons:
            name = token.lower_name if isinstance(token, FunctionBlock) else getattr(token, "lower_value", "")
            if colons > 1 or name in _PSEUDO_ELEMENTS:
                return None
            if not isinstance(token, FunctionBlock):
                compound.add(classes=1)
            elif (inner := compound.add_function(token, name)) is not None:
                around |= inner
            else:
                return None
            colons, is_simple = 0, False
        elif isinstance(token, SquareBracketsBlock):
            compound.attributes += [inner.lower_value for inner in token.content if isinstance(inner, IdentToken)][:1]
            if _NEVER in compound.attributes:
                return None
            compound.add(classes=1)
            is_simple = False
        elif isinstance(token, HashToken):
            if compound.id not in ("", token.value):
                return None  # no element has two ids
            compound.id = token.value
            compound.add(ids=1)
        elif isinstance(token, IdentToken) and is_class:
            compound.classes.add(token.value)
            compound.add(classes=1)
        elif isinstance(token, IdentToken):
            compound.tag = token.lower_value
            compound.add(tags=1)
        elif token == "|":
            compound.tag, is_simple = "", False
        elif token not in (".", "*"):
            return None
        is_class = token == "."
    text = tinycss2.serialize(tokens).strip()
    conditions = (compound.tag, compound.id, frozenset(compound.classes))
    is_complete = bool(text) and not combinator.strip() and not colons
    return Selector(
        text, *conditions, compound.words(), compound.specificity, around, is_simple
    ) if is_complete else None  # fmt: skip
