"""What on a page can be acted on: which elements those are, what their names are made from, what of them shows."""

import re
from collections.abc import Mapping
from typing import ClassVar

from selectolax.lexbor import LexborNode

from replay_sessions.simplify.names import Scope
from replay_sessions.simplify.recipes import Rule
from replay_sessions.simplify.tags import ACTED_ON
from replay_sessions.simplify.words import quoted, tidy

__all__ = [
    "TELLING_ATTRIBUTES",
    "Attributes",
    "Target",
    "acts_by_attributes",
    "acts_by_tag",
    "label_of",
    "leads_to_account",
    "shown_attributes",
    "words_of",
]

Attributes = Mapping[str, str | None]

_ACTING_ROLES = frozenset({
    "button", "checkbox", "combobox", "link", "listbox", "menuitem", "menuitemcheckbox", "menuitemradio",
    "option", "radio", "searchbox", "slider", "spinbutton", "switch", "tab", "textbox", "treeitem",
})  # fmt: skip
# An element with none of these, of a tag that is nothing by itself, is only a wrapper.
TELLING_ATTRIBUTES = frozenset({"aria-label", "contenteditable", "onclick", "role"})
_ANCHOR_ATTRIBUTES = frozenset({"class", "id", "name", "style"})
_BUTTON_INPUTS = frozenset({"button", "image", "reset", "submit"})
_TICKED_INPUTS = frozenset({"checkbox", "radio"})
_FLAGS = ("checked", "selected", "disabled")
_STATES = ("aria-checked", "aria-current", "aria-disabled", "aria-expanded", "aria-pressed", "aria-selected")
_STATE_ATTRIBUTES = frozenset((*_FLAGS, *_STATES))
_SHOWN = _STATE_ATTRIBUTES | {"contenteditable", "role", "title"}
_ACCOUNT = re.compile(r"[aA]ccount|/profile|/me(?:[/?#]|$)")
_LETTER = re.compile(r"[^\W_]")
_DIGIT = re.compile(r"\d")
_HOST = re.compile(r"^\s*(?:\w+:)?//")
_WORD = re.compile(r"[^\W_]{2,}")
_FIELDS = frozenset({"input", "select", "textarea"})


class Target:
    """Something that can be acted on, or a container: a part of the page that only lends its name to what is inside."""

    __slots__ = (
        "alt", "attributes", "end", "has_image", "heading", "in_account", "inner", "inside", "is_block",
        "is_container", "is_unread", "label", "lead", "node", "outer", "piece", "private", "rule", "scope", "steady",
        "tag", "text",
    )  # fmt: skip
    kind: ClassVar[int] = ACTED_ON

    def __init__(self, tag: str, attributes: Attributes, rule: Rule, scope: Scope, piece: int) -> None:
        self.tag = tag
        self.attributes = attributes
        self.rule = rule
        self.scope = scope  # the one that it stands in; for a container, the one that it is
        self.piece = piece  # where its start tag stands among the pieces of the page
        self.node: LexborNode | None = None  # where it stands in the raw page
        self.outer: Target | None = None  # the target that it stands in
        self.inner: Scope | None = None  # the scope that bears this target's name: a select's, for its options
        self.lead = ""  # the blank before it
        self.is_block = False  # whether it begins a line of its own
        self.is_container = False
        self.end = 0  # for a container, the number of targets up to its end
        self.inside = 0  # the recipe's selector bits, and the kind of private data, that hold around it
        self.private = ""
        self.in_account = False  # whether it shows whose account it is
        self.is_unread = False  # whether what is around it is hidden from screen readers
        self.label = ""  # the label that the page gives it: aria-label, aria-labelledby, <label>
        self.text = ""  # what stands in it
        self.steady = ""  # what stands in it without badges, and without prices and counts at its end
        self.heading = ""  # the first heading in it
        self.alt = ""  # the alternative text of the first image in it
        self.has_image = False

    @property
    def input_type(self) -> str:
        """The type of an input, "" for other tags."""
        return (self.attributes.get("type") or "text").strip().lower() if self.tag == "input" else ""


def acts_by_tag(tag: str, attributes: Attributes) -> bool:
    """Whether an element of a tag that is for acting can be clicked or typed into."""
    if tag == "a":
        return "href" in attributes or not _ANCHOR_ATTRIBUTES.issuperset(attributes)
    return tag != "input" or (attributes.get("type") or "").strip().lower() != "hidden"


def acts_by_attributes(attributes: Attributes) -> bool:
    """Whether an element of any other tag says of itself that it can be clicked or typed into."""
    return attributes.get("role") in _ACTING_ROLES or "onclick" in attributes or _is_editable(attributes)


def _is_editable(attributes: Attributes) -> bool:
    return "contenteditable" in attributes and attributes["contenteditable"] != "false"


def leads_to_account(attributes: Attributes) -> bool:
    """Whether a link leads to the shopper's account. No rule of a recipe: it would be tried on every link."""
    address = attributes.get("href")
    # Addresses are long, and few lead there: plain looks rule most of them out at a tenth of what the pattern takes.
    if address is None or not ("ccount" in address or "/profile" in address or "/me" in address):
        return False
    return _ACCOUNT.search(address) is not None


def label_of(target: Target) -> str:
    """The words that the last part of a target's name is made from: the first of its labels that holds a letter."""
    words = _first_label(target)
    if words and _LETTER.search(words):
        return words
    if words := _other_label(target):
        return words
    if words := _address_words(target.attributes.get("href")):
        return words
    kind = target.input_type
    if target.outer is not None and (around := _first_label(target.outer) or _other_label(target.outer)):
        return f"{around} {kind or target.tag}"  # a tick box in a link: steadier than its id
    attributes = target.attributes
    for given in (attributes.get("id"), attributes.get("name")):
        if given and _LETTER.search(given) and not _DIGIT.search(given):
            return given
    if _LETTER.search(target.text):
        return target.text
    return "image" if target.has_image and target.tag == "a" else kind or attributes.get("role") or target.tag


def _first_label(target: Target) -> str:
    return target.rule.name or target.label or ("" if target.tag == "select" else _text_of(target))


def _text_of(target: Target) -> str:
    """What stands in a target, as far as it is what the target is called."""
    return target.heading or target.steady


def words_of(target: Target) -> str:
    """The words that a target bears on the page; "" if it has none, or its recipe names it."""
    return "" if target.rule.name else _first_label(target) or _other_label(target)


def _address_words(address: str | None) -> str:
    """The words at the end of a link's address; "" if it is none or leads nowhere."""
    if not address or address.lstrip()[:11].lower() == "javascript:":
        return ""
    path, _, fragment = address.partition("#")
    host, *segments = _HOST.sub("", path.partition("?")[0]).split("/")
    segments = [segment for segment in segments if segment]
    if path != host and "://" in path and len(segments) < 2:
        segments = [" ".join((*host.split(".")[-2:-1], *segments))]
    last = segments[-1] if segments else fragment
    return " ".join(word for word in _WORD.findall(last) if not _DIGIT.search(word))


def _other_label(target: Target) -> str:
    """The label of a target that neither the recipe nor the page nor its text gives one; "" if it has none."""
    if target.tag == "select":
        return ""
    attributes = target.attributes
    value = attributes.get("value") if target.input_type in _BUTTON_INPUTS else None
    others = (attributes.get("title"), attributes.get("placeholder"), attributes.get("alt"), target.alt, value)
    for given in (_text_of(target), *others):
        if given and _LETTER.search(given):
            return given
    return ""


def shown_attributes(target: Target) -> str:
    """The attributes of a target that a shopper perceives, as they stand in its tag, after its name."""
    attributes = target.attributes
    if target.tag in _FIELDS:
        shown, text = _field_attributes(target)
    elif not target.label and target.rule.role is None and _SHOWN.isdisjoint(attributes):
        return ""
    else:
        shown, text = "", target.text
    if role := target.rule.role or tidy(attributes.get("role")):
        shown = f' role="{quoted(role)}"{shown}'
    label = target.label
    if label and label != text:
        shown += f' aria-label="{quoted(label)}"'
    title = tidy(attributes.get("title"))
    if title and title not in (text, label):
        shown += f' title="{quoted(title)}"'
    if _is_editable(attributes):
        shown += " contenteditable"
    if not _STATE_ATTRIBUTES.isdisjoint(attributes):
        shown += "".join(f" {flag}" for flag in _FLAGS if flag in attributes)
        for state in _STATES:
            if (value := tidy(attributes.get(state))) not in ("", "false"):
                shown += f' {state}="{quoted(value)}"'
    return shown


def _field_attributes(target: Target) -> tuple[str, str]:
    """What only fields show, and the text that stands in a field or on a button."""
    attributes = target.attributes
    kind = target.input_type
    shown = f' type="{quoted(kind)}"' if kind else ""
    text = target.text
    if kind and kind not in _TICKED_INPUTS and kind != "password" and (value := tidy(attributes.get("value"))):
        shown += f' value="{quoted(value)}"'
        text = value if kind in _BUTTON_INPUTS else text
    if placeholder := tidy(attributes.get("placeholder")):
        shown += f' placeholder="{quoted(placeholder)}"'
    if kind == "image" and (alt := tidy(attributes.get("alt"))):
        shown += f' alt="{quoted(alt)}"'
    return shown, text
