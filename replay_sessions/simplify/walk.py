"""Walks over a parsed page once: writes the pieces of the simplified page and collects its targets.

The walk keeps its own stack, so the depth of a page costs memory but no recursion. The start tags of targets are
written later, because names depend on all card titles of the page.
"""

from selectolax.lexbor import LexborNode

from replay_sessions.simplify.card_tree import Part
from replay_sessions.simplify.element_writer import UNLABELLED, ElementWriter, Opened
from replay_sessions.simplify.hidden import is_unread
from replay_sessions.simplify.names import Scope, tidy
from replay_sessions.simplify.recipes import NO_RULE, Rule
from replay_sessions.simplify.style_rules import HIDING_ATTRIBUTES, StyleRules
from replay_sessions.simplify.tags import ACTED_ON, BLOCK, BREAK, IMAGE, INLINE, STRUCK, TEXT
from replay_sessions.simplify.targets import (
    ACTING_DRAWINGS,
    TELLING_ATTRIBUTES,
    Attributes,
    Labels,
    Target,
    acts_by_attributes,
    acts_by_focus,
    acts_by_tag,
)


class Walk(ElementWriter):
    """The state of the walk over one page.

    Attributes:
        parts: The elements that can be cards, in the order of their ends.
        hidden: The `mem_id` of elements that are hidden with their content.
    """

    def __init__(self, rules: dict[int, Rule], labels: Labels, styles: StyleRules, *, private_data: bool) -> None:
        super().__init__(labels, private_data=private_data)
        self._rules = rules
        self.parts: list[Part] = []
        self.hidden: list[int] = []
        self._styles = styles

    def run(self, node: LexborNode | None) -> None:  # noqa: C901, PLR0915 - the hot loop: calls cost time
        """Walks a node and its later siblings, with their content."""
        pieces, targets, styles, rules = self.pieces, self.targets, self._styles, self._rules
        table, ids = styles.table, self.labels.ids | styles.ids
        looked_at = styles.attribute_names | TELLING_ATTRIBUTES | HIDING_ATTRIBUTES
        stack: list[tuple[LexborNode, int, int, str, Target | Opened | None, int]] = []
        while True:
            while node is not None:
                if (number := node.tag_id) == TEXT:
                    if node.is_empty_text_node or self.is_unread:
                        self._blank = True
                    else:
                        self.write_text(node.text_content or "")
                    node = node.next
                    continue
                tag, kind, by_classes = table[number]
                if kind <= BREAK:
                    if tag != "svg" or self._target is not None or node.css_first(ACTING_DRAWINGS) is None:
                        self._skip(node, kind, tag)
                        node = node.next
                        continue
                    tag, kind = "span", INLINE  # a drawing with links, such as a map or a menu, or one that is a button
                attributes = node.attributes
                classes = attributes.get("class")
                may_hide = by_classes[classes]
                is_notable = len(attributes) > (classes is not None) and (
                    not looked_at.isdisjoint(attributes) or attributes.get("id") in ids
                )
                opened, rule, may_hide = None, rules.get(node.mem_id, NO_RULE), may_hide or is_notable
                if may_hide or rule is not NO_RULE or kind >= ACTED_ON:
                    is_walked, opened = self._enter_special(node, tag, kind, attributes, rule, may_hide, is_notable)
                    if not is_walked:
                        node = node.next
                        continue
                    if opened is not None:
                        kind = opened.kind
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
            count = len(targets) - first
            if count > 1 or (count and (opened is not None or (self.headings and self.headings[-1].piece >= piece))):
                self._keep_part(node, tag, piece, first, opened)
            if opened is not None:
                self._end(opened, kind, piece, tag)
            elif kind >= BLOCK:
                self.end_block(kind, piece, tag)
            elif kind == INLINE:
                self._edge = True
            node = node.next

    def _skip(self, node: LexborNode, kind: int, tag: str) -> None:
        """Handles an element without walking over its content."""
        if kind == BREAK:
            self._blank = True
        elif tag == "svg":
            self._keep_label(node, node.attributes if self.labels.ids else {})
            if (described := self._target or self._label) is not None:
                self._drawing(node, described)

    def _enter_special(
        self,
        node: LexborNode,
        tag: str,
        kind: int,
        attributes: Attributes,
        rule: Rule,
        may_hide: bool,
        is_notable: bool,
    ) -> tuple[bool, Target | Opened | None]:
        """Begins an element whose attributes or rules may give it a meaning.

        Returns:
            Whether its content is walked, and what to end when the element ends; None for a mere wrapper.
        """
        if tag == "input" and not acts_by_tag(tag, attributes):
            return False, None
        if (may_hide or rule.drop) and self._is_left_out(node, attributes, rule):
            return False, None
        if kind == IMAGE:
            self._keep_label(node, attributes)
            self._image(tidy(attributes.get("alt")), rule)
            return False, None
        return True, self._begin(node, tag, kind, attributes, rule, is_notable)

    def _keep_part(self, node: LexborNode, tag: str, piece: int, first: int, opened: Target | Opened | None) -> None:
        """Records an element that may be a card. It replaces an inner part with the same targets that is plain.

        Callers skip wrappers of a single target without a heading, because they are never cards.
        """
        last = len(self.targets)
        parts = self.parts
        outside = self.scope
        if opened is not None:
            outside = opened.scope
            if opened.rule.card == "":
                tag = ""
        if last - first == 1 and not (self.headings and self.headings[-1].piece >= piece):
            if outside is self.scope or self._is_item_of_one(tag, piece, outside):
                return
        elif parts and (inner := parts[-1]).first == first and inner.last == last and inner.is_plain:
            parts.pop()
        parts.append(Part(node, tag, piece, len(self.pieces), first, last, outside, self.scope))

    def _is_item_of_one(self, tag: str, piece: int, outside: Scope) -> bool:
        """Returns whether an element without a heading and with one target is only a list item around that target.

        Such an item is a card, but gets no title; pages have too many of them to record each as a part.
        """
        scope = self.scope
        is_item = tag in UNLABELLED and scope.repeat is not None and scope.parent is outside
        return is_item and not (self.parts and self.parts[-1].piece > piece)

    def _is_left_out(self, node: LexborNode, attributes: Attributes, rule: Rule) -> bool:
        """Returns whether a shopper does not see an element. If a hidden one labels others, its text is recorded."""
        if rule.drop:
            return True
        if rule.keep or not self._styles.hide(node, attributes):
            return False
        self.hidden.append(node.mem_id)
        self._keep_label(node, attributes)
        return True

    def _begin(
        self, node: LexborNode, tag: str, kind: int, attributes: Attributes, rule: Rule, is_notable: bool
    ) -> Target | Opened | None:
        """Begins an element that may be more than a wrapper; returns None if it is a wrapper."""
        if tag == "optgroup":
            self.write_text(attributes.get("label") or "")
        acting = acts_by_tag(tag, attributes) if kind == ACTED_ON else is_notable and acts_by_attributes(attributes)
        if acting or rule.name is not None or (is_notable and acts_by_focus(node, tag, attributes)):
            return self._begin_target(node, tag, kind, attributes, rule)
        unread = is_notable and "aria-hidden" in attributes and not rule.keep and self._is_unread(node, attributes)
        says_nothing = rule is NO_RULE and "aria-label" not in attributes and not unread
        if kind < ACTED_ON and kind != STRUCK and says_nothing and attributes.get("id") not in self.labels.ids:
            return None
        opened = self._begin_other(tag, kind, attributes, rule)
        self.is_unread = self.is_unread or unread
        return opened

    def _is_unread(self, node: LexborNode, attributes: Attributes) -> bool:
        """Returns whether the texts of an element are left out. If it labels others, its text is recorded."""
        if not is_unread(node, attributes, self._styles.hide):
            return False
        self._keep_label(node, attributes)
        return True

    def _keep_label(self, node: LexborNode, attributes: Attributes) -> None:
        """Records the text of an image or of an element that is left out, or its images', if it labels others."""
        if self.labels.ids and (identifier := attributes.get("id")) in self.labels.ids:
            texts = (attributes.get("aria-label"), node.text(separator=" "), attributes.get("alt"))
            images = " ".join(image.attributes.get("alt") or "" for image in node.css("img"))
            words = next(filter(None, map(tidy, (*texts, images))), "")
            self.labels.texts[identifier or ""] = f"[{self.private}]" if words and self.private else words
