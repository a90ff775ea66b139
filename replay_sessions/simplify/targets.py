"""What on a page can be acted on: which elements those are, their labels, what of them is visible."""

import re
from collections.abc import Iterable, Mapping
from typing import ClassVar

from selectolax.lexbor import LexborNode

from replay_sessions.simplify.icons import words_of_icon, words_of_sign
from replay_sessions.simplify.names import Scope, quoted, tidy
from replay_sessions.simplify.recipes import Rule
from replay_sessions.simplify.tags import ACTED_ON

Attributes = Mapping[str, str | None]

_ACTING_ROLES = frozenset({
    "button", "checkbox", "combobox", "link", "listbox", "menuitem", "menuitemcheckbox", "menuitemradio",
    "option", "radio", "searchbox", "slider", "spinbutton", "switch", "tab", "textbox", "treeitem",
})  # fmt: skip
# Tags of parts of a page that may be reached by the keyboard only to be read or scrolled.
_REACHED_TAGS = "article body dialog h1 h2 h3 h4 h5 h6 main ol pre section table ul"
_REACHED = frozenset(_REACHED_TAGS.split())
ACTING_TAGS = frozenset({"a", "area", "button", "input", "option", "select", "summary", "textarea"})
# An element with none of these, of a tag that is nothing by itself, is only a wrapper.
# What frameworks call handlers of clicks, with what may follow the name.
_CLICKED = frozenset(
    {"(click)", "data-ng-click", "hx-get", "hx-post", "jsaction", "ng-click", "on:click", "onclick"}
) | {
    f"{name}{modifier}"
    for name in ("@click", "v-on:click", "wire:click", "x-on:click")
    for modifier in ("", ".once", ".prevent", ".prevent.stop", ".self", ".stop", ".stop.prevent")
}
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
    """Something that can be acted on, or a container: a part of the page that only lends its name to what is inside."""

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
        self.private = ""
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
    """Returns whether an element of a tag that is for acting can be clicked or typed into."""
    if tag in ("a", "area"):
        return "href" in attributes or (tag == "a" and not _ANCHOR_ATTRIBUTES.issuperset(attributes))
    return tag != "input" or (attributes.get("type") or "").strip().lower() != "hidden"


def acts_by_attributes(attributes: Attributes) -> bool:
    """Returns whether an element of any other tag says of itself that it can be clicked or typed into."""
    if not _CLICKED.isdisjoint(attributes):
        return "jsaction" not in attributes or "click:" in (attributes["jsaction"] or "")
    if role_of(attributes) in _ACTING_ROLES or _is_editable(attributes):
        return True
    return "click->" in (attributes.get("data-action") or "")


def acts_by_focus(node: LexborNode, tag: str, attributes: Attributes) -> bool:
    """Returns whether an element can only be reached by the keyboard, says something, and holds nothing else to act on.

    Carousels and boxes that scroll can be reached, too.
    """
    if attributes.get("tabindex") != "0" or tag in _REACHED:
        return False
    return node.css_first("a, button, input, select, textarea, [role], [onclick] *") is None and bool(
        tidy(attributes.get("aria-label")) or tidy(node.text())
    )


def can_be_acted_on(tag: str, attributes: Attributes) -> bool:
    """Returns whether an element says of itself, by its tag or its attributes, that it can be clicked or typed into."""
    return (tag in ACTING_TAGS and acts_by_tag(tag, attributes)) or acts_by_attributes(attributes)


def _is_editable(attributes: Attributes) -> bool:
    return "contenteditable" in attributes and attributes["contenteditable"] != "false"


def role_of(attributes: Attributes) -> str:
    """The first role of an element, in small letters; "" if it has none."""
    return next(iter((attributes.get("role") or "").lower().split()), "")


def leads_to_contact(target: Target) -> bool:
    """Returns whether a link is there to call or to write to somebody."""
    return (target.attributes.get("href") or "").startswith(("mailto:", "tel:"))


def label_of(target: Target) -> str:
    """The words that the last part of a target's name is made from: the first of its labels that holds a letter.

    "" if neither the page nor what it looks like gives it one.
    """
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
    for value in (attributes.get("id"), attributes.get("name")):
        if value and _LETTER.search(value) and not _DIGIT.search(value):
            return value
    return target.text if _LETTER.search(target.text) else words_of_sign(target.text) or words_of_icon(target.node)


def kind_of(target: Target) -> str:
    """Returns the name of a target without any words."""
    if target.has_image and target.tag == "a":
        return "image"
    return target.input_type or role_of(target.attributes) or ("link" if target.tag == "a" else target.tag)


def _first_label(target: Target) -> str:
    return target.rule.name or target.label or ("" if target.tag == "select" else _text_of(target))


def _text_of(target: Target) -> str:
    """Returns the text of a target, as far as it names the target."""
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
    for value in (_text_of(target), *others):
        if value and _LETTER.search(value):
            return value
    return ""


def shown_attributes(target: Target) -> str:
    """The attributes of a target that a shopper perceives, as they stand in its tag, after its name."""
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
    """Returns the attributes of a field, and the text in a field or on a button."""
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
    """The labels that the walk finds, and the elements that ask for them.

    Args:
        asking: The elements of a page with `aria-labelledby`.

    Attributes:
        ids: The ids of elements whose text is the label of others.
        texts: Their texts, as far as they are known.
        by_field: The texts of `<label for=…>`, by the id that they label.
        fields: Those of the targets that a `<label>` around them labels.
        unlabelled: Cards whose title is the text of other elements, with the attributes that name those.
    """

    def __init__(self, asking: Iterable[LexborNode]) -> None:
        self.ids = frozenset(word for node in asking for word in (node.attributes["aria-labelledby"] or "").split())
        self.texts: dict[str, str] = {}
        self.by_field: dict[str, str] = {}
        self.fields: list[Target] = []
        self.unlabelled: list[tuple[Scope, Attributes]] = []

    def settle(self, targets: list[Target]) -> None:
        """Gives targets and cards the labels that other elements hold. Known after the walk."""
        for target in targets if self.ids or self.by_field else ():
            if not target.label:
                attributes = target.attributes
                if "aria-labelledby" in attributes:
                    target.label = self._text_of(attributes["aria-labelledby"])
                elif self.by_field and (identifier := attributes.get("id")) is not None:
                    target.label = self.by_field.get(identifier, "")
        for scope, attributes in self.unlabelled:
            scope.title = scope.title or self._text_of(attributes["aria-labelledby"])

    def _text_of(self, ids: str | None) -> str:
        return " ".join(filter(None, [self.texts.get(identifier) for identifier in (ids or "").split()]))
