"""Begins and ends the elements of a page: records targets, scopes, headings and labels, and hides private data.

walk.py decides which elements these are, and which are left out.
"""

from selectolax.lexbor import LexborNode

from replay_sessions.private_data import kind_of_field
from replay_sessions.simplify.card_tree import Heading
from replay_sessions.simplify.names import Scope, has_words, tidy
from replay_sessions.simplify.pieces import PieceWriter
from replay_sessions.simplify.recipes import NO_RULE, Rule
from replay_sessions.simplify.tags import ACTED_ON, BLOCK, INLINE, LABEL, STRUCK, TITLE
from replay_sessions.simplify.targets import FIELDS, Attributes, Labels, Target

_LABELLED = frozenset({"input", "textarea"})
# Attributes that may contain private data: the value of a field; for other elements the texts and the URL, because
# words of the URL become parts of names.
_TYPED = ("value",)
_SHOWN = ("alt", "aria-label", "href", "title")
UNLABELLED = frozenset({"li", "tr"})  # their labels repeat their content, so only a heading titles their card


class Opened:
    """An open element that is neither a target nor a mere wrapper: the state to restore when it ends."""

    def __init__(self, writer: "ElementWriter", kind: int, attributes: Attributes, rule: Rule) -> None:
        self.kind = kind
        self.attributes = attributes
        self.rule = rule
        self.scope = writer.scope
        self.private = writer.private
        self.is_unread = writer.is_unread
        self.container: Target | None = None
        self.is_label = False
        self.alt = ""  # for a label, the description of the first image in it
        self.fields_before = len(writer.labels.fields)


class ElementWriter(PieceWriter):
    """Begins and ends elements.

    Attributes:
        targets: Elements that can be acted on and named parts of the page, in the order of the page.
        headings: Headings that title cards, in the order of their ends.
        labels: Labels of other elements.
        scope: The scope at the walk's current position.
        is_unread: Whether the current position is hidden from screen readers.
    """

    def __init__(self, labels: Labels, *, private_data: bool) -> None:
        super().__init__()
        self._removes_private = private_data
        self.labels = labels
        self.targets: list[Target] = []
        self.headings: list[Heading] = []
        self.scope = Scope(None, "")
        self.is_unread = False
        self._target: Target | None = None  # the innermost open one
        self._label: Opened | None = None  # the open `<label>`

    def _begin_target(self, node: LexborNode, tag: str, kind: int, attributes: Attributes, rule: Rule) -> Target:
        private = self.private
        if self._removes_private:
            private = rule.private or private or (kind_of_field(attributes) if tag in _LABELLED else "")
        if private:
            masked = _TYPED if tag in FIELDS else _SHOWN
            attributes = {**attributes, **{name: f"[{private}]" for name in masked if attributes.get(name)}}
        target = Target(tag, attributes, rule, self.scope, len(self.pieces))
        target.node = node
        target.outer = self._target
        target.is_unread, self.is_unread = self.is_unread, False
        target.private, self.private = self.private, private
        if "aria-label" in attributes:
            target.label = tidy(attributes["aria-label"])
        elif tag == "area":
            target.label = tidy(attributes.get("alt"))
        if kind < ACTED_ON:
            target.is_block = kind >= BLOCK
        if self._blank and self._tail:
            target.lead = " "
        self._target = target
        self.targets.append(target)
        if tag in FIELDS:
            self.labels.fields.append(target)
        self._tail = ""
        if tag == "select":
            self.scope = target.inner = Scope(self.scope, "")
        elif rule is not NO_RULE:
            self._enter(rule, attributes, tag)
        return target

    def _begin_other(self, tag: str, kind: int, attributes: Attributes, rule: Rule) -> Opened:
        part = Opened(self, kind if kind < ACTED_ON or kind == STRUCK else INLINE, attributes, rule)
        if kind == LABEL:
            part.is_label, self._label = True, part
        self._enter(rule, attributes, tag)
        if rule.scope:
            part.kind = BLOCK
            part.container = Target(tag, attributes, rule, self.scope, len(self.pieces))
            part.container.is_container = part.container.is_block = True
            self.targets.append(part.container)
        return part

    def _enter(self, rule: Rule, attributes: Attributes, tag: str) -> None:
        """Sets the scope and the kind of private data for the content of an element."""
        if rule.private is not None and self._removes_private:
            self.private = rule.private
        if rule.scope:
            self.scope = Scope(self.scope, rule.scope)
        if rule.card:
            self.scope = Scope(self.scope, "", rule.card)
            if tag not in UNLABELLED:
                self.scope.title = tidy(attributes.get("aria-label"))
                if not self.scope.title and "aria-labelledby" in attributes:
                    self.labels.unlabelled.append((self.scope, attributes))

    def _end(self, opened: Target | Opened, kind: int, piece: int, tag: str) -> None:
        """Ends a target or another element that is more than a wrapper."""
        self.scope = opened.scope
        self.private = opened.private
        self.is_unread = opened.is_unread
        if self.labels.ids and (identifier := opened.attributes.get("id")) in self.labels.ids:
            words = tidy(opened.attributes.get("aria-label")) or self.text_since(piece) or self.images_since(piece)
            self.labels.texts[identifier or ""] = words or self.labels.texts.get(identifier or "", "")
        if isinstance(opened, Target):
            self._target = opened.outer
            opened.text = words = self.text_since(piece + 1)
            is_open = not (opened.label or opened.alt or "aria-labelledby" in opened.attributes)
            if is_open and opened.inner_label is not None and has_words(opened.inner_label[1]):
                opened.label = opened.inner_label[1] if opened.inner_label[0] == words else ""
            opened.steady = self.steady_text(piece + 1, words, opened.alt, opened.attributes) if words else ""
            self.end_target(piece, tag)
            if opened.rule.title:
                self._head(piece, words or opened.alt or opened.label)
            return
        self._end_other(opened, piece)
        if kind == STRUCK:
            self.end_struck(piece, tag)
        elif kind < BLOCK:
            self._edge = True
        elif opened.container is not None:
            self.write_end(piece, tag)  # the start tag is written when the name is known
        else:
            self.end_block(kind, piece, tag)

    def _end_other(self, opened: Opened, piece: int) -> None:
        """Records what the content of an element determines: a container's end, a heading, a badge, a field's label."""
        if opened.container is not None:
            opened.container.end = len(self.targets)
            if self.targets[-1] is opened.container:
                self.targets.pop()
                opened.container = None
        elif (
            "aria-label" in opened.attributes
            and len(self.pieces) == piece + (opened.kind >= BLOCK)
            and not self.is_unread
        ):
            self.write_text(opened.attributes["aria-label"] or "")  # a drawing with a description, such as stars
        if opened.rule.badge:
            self.badges.append((piece, len(self.pieces)))
        if opened.rule.title:
            self._head(
                piece,
                self.steady_text(piece, self.text_since(piece), "", {}) or tidy(opened.attributes.get("aria-label")),
            )
        if opened.is_label:
            self._end_label(opened, piece)
        elif (
            self._target is not None
            and opened.attributes.get("aria-label")
            and not (self.private or opened.rule.private)
        ):
            self._target.inner_label = self.text_since(piece), tidy(opened.attributes["aria-label"])

    def _end_label(self, opened: Opened, piece: int) -> None:
        """Records the words of a `<label>`: its text, the description of its image, its own label or title."""
        self._label = None
        fields = self.labels.fields[opened.fields_before : opened.fields_before + 1]
        text = self.text_since(piece, next((field.piece for field in fields if field.tag == "select"), None))
        attributes = {} if self.private else opened.attributes
        others = (opened.alt, tidy(attributes.get("aria-label")), tidy(attributes.get("title")))
        if words := next(filter(has_words, (text, *others)), text):
            if labelled := opened.attributes.get("for"):
                self.labels.by_field.setdefault(labelled, words)
            for target in fields:
                target.label = target.label or words

    def _head(self, piece: int, words: str) -> None:
        """Records a heading, which may title the card around it and label the target around it."""
        if words:
            self.headings.append(Heading(piece, words, -1 if self._target is None else self._target.piece))
            if self._target is not None and not self._target.heading:
                self._target.heading = words

    def _image(self, words: str, rule: Rule) -> None:
        self._blank = True
        if words and self.private:
            words = f"[{self.private}]"
        target = self._target
        if target is not None:
            target.has_image = True
        if words:
            if self._label is not None:
                self._label.alt = self._label.alt or words
            while target is not None and not target.alt:
                target.alt = words
                target = target.outer
            if self.is_unread:
                return
            if rule.title:
                self.headings.append(Heading(len(self.pieces), words))
            self.write_image(words)

    def _drawing(self, node: LexborNode, described: Target | Opened) -> None:
        """Sets the label or title of a drawing as the alternative text of the target or `<label>` around it."""
        if not described.alt:
            label = tidy(node.attributes.get("aria-label"))
            title = None if label else next((part for part in node.traverse() if part.tag_id == TITLE), None)
            described.alt = label if title is None else tidy(title.text())
