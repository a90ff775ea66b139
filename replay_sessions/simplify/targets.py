"""Finds the targets of a page, the elements that can be acted on: their labels, and the attributes that are shown."""

import re
from collections.abc import Iterable, Mapping
from typing import ClassVar

from selectolax.lexbor import LexborNode

from replay_sessions.simplify.icons import words_of_icon, words_of_sign
from replay_sessions.simplify.names import Scope, has_words, quoted, tidy
from replay_sessions.simplify.recipes import Rule
from replay_sessions.simplify.tags import ACTED_ON

Attributes = Mapping[str, str | None]

_ROLES = """
button checkbox combobox link listbox menuitem menuitemcheckbox menuitemradio option radio searchbox slider
spinbutton switch tab textbox treeitem"""
_ACTING_ROLES = frozenset(_ROLES.split())
# Selects what can be acted on in an svg, and the HTML in it.
ACTING_DRAWINGS = ", ".join(("a, [onclick], foreignObject > *", *(f"[role={role}]" for role in _ROLES.split())))
# Tags of parts of a page that the keyboard may reach only for reading or scrolling.
_REACHED_TAGS = "article body dialog h1 h2 h3 h4 h5 h6 main ol pre section table ul"
_REACHED = frozenset(_REACHED_TAGS.split())
ACTING_TAGS = frozenset({"a", "area", "button", "input", "option", "select", "summary", "textarea"})
# Names of click handlers in frameworks, with their modifiers.
_CLICKED = frozenset(
    {"(click)", "data-ng-click", "hx-get", "hx-post", "jsaction", "ng-click", "on:click", "onclick"}
) | {
    f"{name}{modifier}"
    for name in ("@click", "v-on:click", "wire:click", "x-on:click")
    for modifier in ("", ".once", ".prevent", ".prevent.stop", ".self", ".stop", ".stop.prevent")
}
# An element without any of these is only a wrapper if its tag has no meaning.
TELLING_ATTRIBUTES = _CLICKED | {"aria-label", "contenteditable", "data-action", "label", "role", "tabindex"}
_ANCHOR_ATTRIBUTES = frozenset({"class", "id", "name", "style"})
_BUTTON_INPUTS = frozenset({"button", "image", "reset", "submit"})
TICKED_INPUTS = frozenset({"checkbox", "radio"})
_FLAGS = ("checked", "selected", "disabled")
_STATES = ("aria-checked", "aria-current", "aria-disabled", "aria-expanded", "aria-pressed", "aria-selected")
_STATE_ATTRIBUTES = frozenset((*_FLAGS, *_STATES))
_SHOWN = _STATE_ATTRIBUTES | {"contenteditable", "role", "title"}
_LETTER = re.compile(r"[^\W_]")
_DIGIT = re.compile(r"\d")
_HOST = re.compile(r"^\s*(?:\w+:)?//")
_WORD = re.compile(r"[^\W_]{2,}")
FIELDS = frozenset({"input", "select", "textarea"})


class Target:
    """An element that can be acted on, or a container: a part of the page that only gives its name to its content."""

    kind: ClassVar[int] = ACTED_ON

    def __init__(self, tag: str, attributes: Attributes, rule: Rule, scope: Scope, piece: int) -> None:
        self.tag = tag
        self.attributes = attributes
        self.rule = rule
        self.scope = scope  # the scope around it; for a container, its own scope
        self.piece = piece  # index of the piece with its start tag
        self.node: LexborNode | None = None  # its node in the raw page
        self.outer: Target | None = None  # the target around it
        self.inner: Scope | None = None  # the scope with this target's name: that of a select, for its options
        self.lead = ""  # the blank before it
        self.is_block = False  # whether it begins a new line
        self.is_container = False
        self.end = 0  # for a container, the number of targets up to its end
        self.private = ""  # kind of private data around it
        self.is_unread = False  # whether it is in an element that is hidden from screen readers
        self.inner_label: tuple[str, str] | None = None  # the text and the label of the last labelled element in it
        self.label = ""  # its label by aria-label, aria-labelledby, <label>, or an element with all of its text
        self.text = ""  # its text
        self.steady = ""  # its text without badges, and without prices and counts at the end
        self.heading = ""  # the first heading in it
        self.alt = ""  # the alternative text of the first image in it
        self.has_image = False

    @property
    def input_type(self) -> str:
        """The type of an input; "" for other tags."""
        return (self.attributes.get("type") or "text").strip().lower() if self.tag == "input" else ""


def acts_by_tag(tag: str, attributes: Attributes) -> bool:
    """Returns whether an element with one of ACTING_TAGS can be clicked or typed into."""
    if tag in ("a", "area"):
        return "href" in attributes or (tag == "a" and not _ANCHOR_ATTRIBUTES.issuperset(attributes))
    return tag != "input" or (attributes.get("type") or "").strip().lower() != "hidden"


def acts_by_attributes(attributes: Attributes) -> bool:
    """Returns whether the attributes of an element of any other tag say that it can be clicked or typed into."""
    if not _CLICKED.isdisjoint(attributes):
        return "jsaction" not in attributes or "click:" in (attributes["jsaction"] or "")
    if role_of(attributes) in _ACTING_ROLES or _is_editable(attributes):
        return True
    return "click->" in (attributes.get("data-action") or "")


def acts_by_focus(node: LexborNode, tag: str, attributes: Attributes) -> bool:
    """Returns whether an element can be reached by the keyboard, has a text or label, and contains no other target.

    Carousels and scrollable boxes can be reached as well, so elements with targets in them do not count.
    """
    if attributes.get("tabindex") != "0" or tag in _REACHED:
        return False
    return node.css_first("a, button, input, select, textarea, [role], [onclick] *") is None and bool(
        tidy(attributes.get("aria-label")) or tidy(node.text())
    )


def can_be_acted_on(tag: str, attributes: Attributes) -> bool:
    """Returns whether the tag or the attributes of an element say that it can be clicked or typed into."""
    return (tag in ACTING_TAGS and acts_by_tag(tag, attributes)) or acts_by_attributes(attributes)


def _is_editable(attributes: Attributes) -> bool:
    return "contenteditable" in attributes and attributes["contenteditable"] != "false"


def role_of(attributes: Attributes) -> str:
    """Returns the first role of an element in lower case; "" if it has none."""
    return next(iter((attributes.get("role") or "").lower().split()), "")


def label_of(target: Target) -> str:
    """Returns the words for the last part of a target's name, the first of its labels with a letter; "" if none."""
    words = _first_label(target)
    if words and _LETTER.search(words):
        return words
    if words := _other_label(target):
        return words
    if words := _address_words(target.attributes.get("href")):
        return words
    kind = target.input_type
    if target.outer is not None and (outer_words := _first_label(target.outer) or _other_label(target.outer)):
        return f"{outer_words} {kind or target.tag}"  # a checkbox in a link: more stable than its id
    attributes = target.attributes
    for value in (attributes.get("id"), attributes.get("name")):
        if value and _LETTER.search(value) and not _DIGIT.search(value):
            return value
    return target.text if _LETTER.search(target.text) else words_of_sign(target.text) or words_of_icon(target.node)


def kind_of(target: Target) -> str:
    """Returns the name for a target without any words: its type, role or tag."""
    if target.has_image and target.tag == "a":
        return "image"
    return target.input_type or role_of(target.attributes) or ("link" if target.tag == "a" else target.tag)


def _first_label(target: Target) -> str:
    return target.rule.name or target.label or ("" if target.tag == "select" else _text_of(target))


def _text_of(target: Target) -> str:
    """Returns the part of a target's text that names it; if that is a price or a count, its image's description."""
    words = target.heading or target.steady
    return target.alt if words and has_words(target.alt) and not has_words(words) else words


def words_of(target: Target) -> str:
    """Returns the words that label a target on the page; "" if it has none, or if its recipe names it."""
    return "" if target.rule.name else _first_label(target) or _other_label(target)


def _address_words(address: str | None) -> str:
    """Returns the words at the end of a link's URL; "" if it has none or leads nowhere."""
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
    """Returns the label of a target from its text, title, placeholder, image or value; "" if none has a letter."""
    if target.tag == "select":
        return ""
    attributes = target.attributes
    value = attributes.get("value") if target.input_type in _BUTTON_INPUTS else None
    others = (attributes.get("title"), attributes.get("placeholder"), attributes.get("alt"), target.alt, value)
    for value in (_text_of(target), *others):
        if value and _LETTER.search(value):
            return value
    return ""


def shown_attributes(target: Target) -> str:
    """Returns the HTML of the attributes of a target that a shopper perceives, without its name."""
    attributes = target.attributes
    if target.tag in FIELDS:
        parts, text = _field_attributes(target)
    elif not target.label and target.rule.role is None and _SHOWN.isdisjoint(attributes):
        return ""
    else:
        parts, text = "", target.text
    if role := target.rule.role or role_of(attributes):
        parts = f' role="{quoted(role)}"{parts}'
    label = target.label
    if label and label != text:
        parts += f' aria-label="{quoted(label)}"'
    title = tidy(attributes.get("title"))
    if title and title not in (text, label):
        parts += f' title="{quoted(title)}"'
    if _is_editable(attributes):
        parts += " contenteditable"
    if not _STATE_ATTRIBUTES.isdisjoint(attributes):
        parts += "".join(f" {flag}" for flag in _FLAGS if flag in attributes)
        for state in _STATES:
            if (value := tidy(attributes.get(state))) not in ("", "false"):
                parts += f' {state}="{quoted(value)}"'
    return parts


def _field_attributes(target: Target) -> tuple[str, str]:
    """Returns the HTML of the attributes of a field, and the text in the field or on the button."""
    attributes = target.attributes
    kind = target.input_type
    parts = f' type="{quoted(kind)}"' if kind else ""
    text = target.text
    if kind and kind not in TICKED_INPUTS and kind != "password" and (value := tidy(attributes.get("value"))):
        parts += f' value="{quoted(value)}"'
        text = value if kind in _BUTTON_INPUTS else text
    if placeholder := tidy(attributes.get("placeholder")):
        parts += f' placeholder="{quoted(placeholder)}"'
    if kind == "image" and (alt := tidy(attributes.get("alt"))):
        parts += f' alt="{quoted(alt)}"'
    return parts, text


class Labels:
    """The labels that the walk finds for other elements.

    Args:
        asking: The elements of a page with `aria-labelledby`.

    Attributes:
        ids: Ids of elements that are labels of others by `aria-labelledby`.
        texts: Texts of these elements by their ids, as far as they are known.
        by_field: Texts of `<label for=…>` by the ids of their fields.
        fields: Fields that a `<label>` around them may label.
        unlabelled: Cards that get their title from other elements, with their attributes.
    """

    def __init__(self, asking: Iterable[LexborNode]) -> None:
        self.ids = frozenset(word for node in asking for word in (node.attributes["aria-labelledby"] or "").split())
        self.texts: dict[str, str] = {}
        self.by_field: dict[str, str] = {}
        self.fields: list[Target] = []
        self.unlabelled: list[tuple[Scope, Attributes]] = []

    def settle(self, targets: list[Target]) -> None:
        """Sets the labels of targets and the titles of cards that other elements define. Call it after the walk."""
        for target in targets if self.ids or self.by_field else ():
            attributes = target.attributes
            if "aria-labelledby" in attributes:
                target.label = self._text_of(attributes["aria-labelledby"]) or target.label
            elif not target.label and self.by_field and (identifier := attributes.get("id")) is not None:
                target.label = self.by_field.get(identifier, "")
        for scope, attributes in self.unlabelled:
            scope.title = scope.title or self._text_of(attributes["aria-labelledby"])

    def _text_of(self, ids: str | None) -> str:
        return " ".join(filter(None, [self.texts.get(identifier) for identifier in (ids or "").split()]))
