"""The one walk over a parsed page: what is written out, and what on it can be acted on.

The walk goes from node to node and keeps its own stack, so depth costs memory and no recursion. What it writes is
without the start tags of targets: names are known only when all card titles of the page are.
"""

from selectolax.lexbor import LexborNode

from replay_sessions.simplify.cards import Heading, Part
from replay_sessions.simplify.hidden import HIDING_ATTRIBUTES, is_behind_dialog, is_hidden, is_unread
from replay_sessions.simplify.labels import Labels
from replay_sessions.simplify.names import Scope
from replay_sessions.simplify.pieces import PieceWriter
from replay_sessions.simplify.recipes import NO_RULE, Recipe, Rule
from replay_sessions.simplify.style_rules import StyleRules
from replay_sessions.simplify.tags import ACTED_ON, BLOCK, BREAK, IMAGE, INLINE, LABEL, STRUCK, TAGS, TEXT, UNKNOWN
from replay_sessions.simplify.targets import (
    TELLING_ATTRIBUTES,
    Attributes,
    Target,
    acts_by_attributes,
    acts_by_tag,
    leads_to_account,
)
from replay_sessions.simplify.words import tidy

__all__ = ["Walk"]

_LABELLED = frozenset({"input", "textarea"})
_MAX_BEHIND_DIALOG = 10  # parts of a page that a dialog hides; with a dialog open all of a page is one or a few
_UNLABELLED = frozenset({"li", "tr"})  # their labels repeat what is inside, so only a heading makes them a card


class _Opened:
    """An element that is no target but more than a wrapper: what to go back to, and what to do, when it ends."""

    __slots__ = (
        "attributes", "container", "fields_before", "inside", "is_label", "is_unread", "kind", "private", "rule",
        "scope",
    )  # fmt: skip

    def __init__(self, walk: "Walk", kind: int, attributes: Attributes, rule: Rule) -> None:
        self.kind = kind
        self.attributes = attributes
        self.rule = rule
        self.scope = walk.scope
        self.inside = walk.inside
        self.private = walk.private
        self.is_unread = walk.is_unread
        self.container: Target | None = None
        self.is_label = False
        self.fields_before = len(walk.labels.fields)


class Walk(PieceWriter):
    """One page being walked.

    Attributes:
        targets: What can be acted on and the parts of the page that have names, in the order of the page.
        parts: The elements that can be cards, in the order of their ends.
        headings: What titles cards, in the order of their ends.
        labels: What labels something else.
        scope, inside, is_unread: What holds where the walk stands: the scope, the recipe's selector bits, and whether
            it is hidden from screen readers.
    """

    def __init__(self, recipe: Recipe, labels: Labels, styles: StyleRules) -> None:
        super().__init__()
        self.recipe = recipe
        self.labels = labels
        self.targets: list[Target] = []
        self.parts: list[Part] = []
        self.headings: list[Heading] = []
        self.scope = Scope(None, "")
        self.inside = 0
        self.is_unread = False
        self._styles = styles
        self._target: Target | None = None  # the innermost open one
        self._behind_dialog = 0  # how many parts of the page are

    def run(self, node: LexborNode | None) -> None:  # noqa: C901, PLR0915 - the hot loop: calls would show
        """Walks a node, its later siblings, and all inside them."""
        pieces = self.pieces
        selectors = self.recipe.selectors
        choices = selectors.choices
        match = selectors.match
        merged = self.recipe.merged
        looked_at = selectors.attribute_names | TELLING_ATTRIBUTES | HIDING_ATTRIBUTES
        ids = selectors.ids | self.labels.ids | self._styles.ids
        is_styled = self._styles.is_styled
        targets = self.targets
        stack: list[tuple[LexborNode, int, int, str, Target | _Opened | None, int]] = []
        while True:
            while node is not None:
                number = node.tag_id
                if number == TEXT:
                    if self.is_unread or node.is_empty_text_node:
                        self._blank = True
                    else:
                        self.write_text(node.text_content or "")
                    node = node.next
                    continue
                tag, kind = TAGS.get(number, UNKNOWN)
                if kind <= BREAK:
                    if kind == BREAK:
                        self._blank = True
                    elif tag == "svg" and self._target is not None:
                        self._drawing(node, self._target)
                    node = node.next
                    continue
                attributes = node.attributes
                classes = attributes.get("class")
                choice = choices[tag, classes, self.inside]
                is_told = len(attributes) > (classes is not None) and (
                    not looked_at.isdisjoint(attributes) or attributes.get("id") in ids
                )
                opened = None
                may_hide = is_styled[classes] or is_told
                if may_hide or choice is not None or kind >= ACTED_ON:
                    if tag == "input" and not acts_by_tag(tag, attributes):
                        node = node.next
                        continue
                    rule, inside = NO_RULE, self.inside
                    if is_told or choice is not None:
                        fitting, inside = match(choice, tag, attributes, inside)
                        rule = merged[fitting]
                    if (may_hide or rule.drop) and self._is_left_out(node, tag, attributes, rule):
                        node = node.next
                        continue
                    if kind == IMAGE:
                        self._image(tidy(attributes.get("alt")), rule)
                        node = node.next
                        continue
                    opened = self._begin(node, tag, kind, attributes, rule, inside, is_told)
                    kind = kind if opened is None else opened.kind
                stack.append((node, kind, len(pieces), tag, opened, len(targets)))
                if kind >= BLOCK:
                    pieces.append("")
                    self._blank = True
                elif kind == INLINE:
                    self._edge = True
                node = node.first_child
            if not stack:
                return
            node, kind, piece, tag, opened, first = stack.pop()
            if len(targets) > first:
                self._keep_part(node, tag, piece, first, opened)
            if opened is not None:
                self._end(opened, kind, piece, tag)
            elif kind >= BLOCK:
                self.end_block(kind, piece, tag)
            elif kind == INLINE:
                self._edge = True
            node = node.next

    def _keep_part(self, node: LexborNode, tag: str, piece: int, first: int, opened: Target | _Opened | None) -> None:
        """Keeps an element that may be a card: in place of the one in it, if that holds the same and says nothing."""
        last = len(self.targets)
        parts = self.parts
        outside = self.scope if opened is None else opened.scope
        if opened is not None and opened.rule.card == "":
            tag = ""
        if parts and (inner := parts[-1]).first == first and inner.last == last and inner.is_plain:
            parts.pop()
        elif last - first < 2 and outside is self.scope and not (self.headings and self.headings[-1].piece >= piece):
            return
        parts.append(Part(node, tag, piece, len(self.pieces), first, last, outside, self.scope))

    def _is_left_out(self, node: LexborNode, tag: str, attributes: Attributes, rule: Rule) -> bool:
        """Whether a shopper does not see an element. Its text is kept all the same if it is the label of others."""
        if rule.drop or (tag == "input" and not acts_by_tag(tag, attributes)):
            return True
        hides_itself = not HIDING_ATTRIBUTES.isdisjoint(attributes) and (
            is_hidden(attributes) or ("hidden" in attributes and not self._styles.show(node, tag, attributes))
        )
        if rule.keep or not (
            hides_itself or (self._styles.may_hide(attributes) and self._styles.hide(node, tag, attributes))
        ):
            return False
        if self.labels.ids and (identifier := attributes.get("id")) in self.labels.ids:
            self.labels.texts[identifier or ""] = tidy(node.text(separator=" "))
        return True

    def _begin(
        self, node: LexborNode, tag: str, kind: int, attributes: Attributes, rule: Rule, inside: int, is_told: bool
    ) -> Target | _Opened | None:
        """Begins an element that may be more than a wrapper; None if it is none."""
        acting = acts_by_tag(tag, attributes) if kind == ACTED_ON else is_told and acts_by_attributes(attributes)
        if acting or rule.name is not None:
            return self._begin_target(tag, kind, attributes, rule, inside)
        unread = is_told and "aria-hidden" in attributes and not rule.keep and self._is_unread(node, attributes)
        says_nothing = rule is NO_RULE and inside == self.inside and "aria-label" not in attributes and not unread
        if kind < ACTED_ON and kind != STRUCK and says_nothing and attributes.get("id") not in self.labels.ids:
            return None
        opened = self._begin_other(tag, kind, attributes, rule, inside)
        self.is_unread = self.is_unread or unread
        return opened

    def _is_unread(self, node: LexborNode, attributes: Attributes) -> bool:
        """Whether an element is hidden from screen readers, and not because a dialog is open in front of it."""
        if not is_unread(attributes):
            return False
        if self._behind_dialog < _MAX_BEHIND_DIALOG and is_behind_dialog(node):
            self._behind_dialog += 1
            return False
        if self.labels.ids and (identifier := attributes.get("id")) in self.labels.ids:
            self.labels.texts[identifier or ""] = tidy(node.text(separator=" "))
        return True

    def _begin_target(self, tag: str, kind: int, attributes: Attributes, rule: Rule, inside: int) -> Target:
        if rule.private is not None and rule.private != "shopper" and (value := tidy(attributes.get("value"))):
            self.concealed.append((rule.private, value))
            attributes = {**attributes, "value": f"[{rule.private}]"}
        target = Target(tag, attributes, rule, self.scope, len(self.pieces))
        target.outer = self._target
        target.inside = self.inside
        target.is_unread, self.is_unread = self.is_unread, False
        if self.private:
            target.private = self.private
        elif tag == "a" and leads_to_account(attributes):
            self.private = "shopper"
        if "aria-label" in attributes:
            target.label = tidy(attributes["aria-label"])
        if kind < ACTED_ON:
            target.is_block = kind >= BLOCK
        if self._blank and self._tail:
            target.lead = " "
        self._target = target
        self.targets.append(target)
        if tag in _LABELLED:
            self.labels.fields.append(target)
        self.inside = inside
        self._tail = ""
        if tag == "select":
            self.scope = target.inner = Scope(self.scope, "")
        elif rule is not NO_RULE:
            self._enter(rule, attributes, tag)
        target.in_account = self.private == "shopper"
        return target

    def _begin_other(self, tag: str, kind: int, attributes: Attributes, rule: Rule, inside: int) -> _Opened:
        part = _Opened(self, kind if kind < ACTED_ON or kind == STRUCK else INLINE, attributes, rule)
        self.inside = inside
        part.is_label = kind == LABEL
        self._enter(rule, attributes, tag)
        if rule.scope:
            part.kind = BLOCK
            part.container = Target(tag, attributes, rule, self.scope, len(self.pieces))
            part.container.is_container = part.container.is_block = True
            self.targets.append(part.container)
        return part

    def _enter(self, rule: Rule, attributes: Attributes, tag: str) -> None:
        """Changes the scope and the kind of private data for what is inside an element."""
        if rule.private is not None:
            self.private = rule.private
        if rule.scope:
            self.scope = Scope(self.scope, rule.scope)
        if rule.card:
            self.scope = Scope(self.scope, "", rule.card)
            if tag not in _UNLABELLED:
                self.scope.title = tidy(attributes.get("aria-label"))
                if not self.scope.title and "aria-labelledby" in attributes:
                    self.labels.unlabelled.append((self.scope, attributes))

    def _end(self, opened: Target | _Opened, kind: int, piece: int, tag: str) -> None:
        """Ends an element that is more than a wrapper."""
        self.scope = opened.scope
        self.inside = opened.inside
        self.private = opened.private
        self.is_unread = opened.is_unread
        if self.labels.ids and (identifier := opened.attributes.get("id")) in self.labels.ids:
            words = self.text_since(piece) or tidy(opened.attributes.get("aria-label"))
            self.labels.texts[identifier or ""] = words or self.labels.texts.get(identifier or "", "")
        if isinstance(opened, Target):
            self._target = opened.outer
            opened.text = words = self.text_since(piece + 1)
            opened.steady = self.steady_text(piece + 1, words)
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
            self.write_end(piece, tag)  # its start tag is written when it has its name
        else:
            self.end_block(kind, piece, tag)

    def _end_other(self, opened: _Opened, piece: int) -> None:
        """Keeps what an element's content tells: a container's extent, a heading, the label of a field."""
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
                piece, self.steady_text(piece, self.text_since(piece)) or tidy(opened.attributes.get("aria-label"))
            )
        if opened.is_label and (words := self.text_since(piece)):
            if labelled := opened.attributes.get("for"):
                self.labels.by_field.setdefault(labelled, words)
            for target in self.labels.fields[opened.fields_before : opened.fields_before + 1]:
                target.label = target.label or words

    def _head(self, piece: int, words: str) -> None:
        """Keeps a heading, which is the title of the card and the label of the target that it is in."""
        if words:
            self.headings.append(Heading(piece, words))
            if self._target is not None and not self._target.heading:
                self._target.heading = words

    def _image(self, words: str, rule: Rule) -> None:
        self._blank = True
        target = self._target
        if target is not None:
            target.has_image = True
        if words:
            while target is not None and not target.alt:
                target.alt = words
                target = target.outer
            if self.is_unread:
                return
            if rule.title:
                self.headings.append(Heading(len(self.pieces), words))
            self.write_image(words)

    def _drawing(self, node: LexborNode, target: Target) -> None:
        """A drawing inside a target names it by its label or title."""
        if not target.alt:
            label = tidy(node.attributes.get("aria-label"))
            title = None if label else node.css_first("title")
            target.alt = label if title is None else tidy(title.text())
