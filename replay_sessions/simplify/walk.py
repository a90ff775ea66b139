"""The one walk over a parsed page: what is written out, and what on it can be acted on.

The walk goes from node to node and keeps its own stack, so depth costs memory and no recursion. What it writes is
without the start tags of targets: names are known only when all card titles of the page are.
"""

from selectolax.lexbor import LexborNode

from replay_sessions.simplify.hidden import HIDING_ATTRIBUTES, is_behind_dialog, is_hidden
from replay_sessions.simplify.names import Scope
from replay_sessions.simplify.pieces import PieceWriter
from replay_sessions.simplify.recipes import NO_RULE, Recipe, Rule
from replay_sessions.simplify.recipes.selectors import Choice
from replay_sessions.simplify.tags import (
    ACTED_ON,
    BLOCK,
    BREAK,
    IMAGE,
    INLINE,
    LABEL,
    TAGS,
    TEXT,
    UNKNOWN,
)
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


class _Part:
    """An element that is no target but more than a wrapper: what to go back to, and what to do, when it ends."""

    __slots__ = ("attributes", "container", "fields_before", "inside", "is_label", "kind", "private", "rule", "scope")

    def __init__(self, walk: "Walk", kind: int, attributes: Attributes, rule: Rule) -> None:
        self.kind = kind
        self.attributes = attributes
        self.rule = rule
        self.scope = walk.scope
        self.inside = walk.inside
        self.private = walk.private
        self.container: Target | None = None
        self.is_label = False
        self.fields_before = len(walk.fields)


class Walk(PieceWriter):
    """One page being walked.

    Attributes:
        targets: What can be acted on and the parts of the page that have names, in the order of the page.
        cards: All cards, in the order of the page.
        unlabelled: Cards whose title is the text of other elements, with the attributes that name those.
        fields: Those of the targets that a `<label>` around them labels.
        texts: The texts of elements that others name as their label, by id.
        field_labels: The texts of `<label for=…>`, by the id that they label.
        scope, inside: What holds where the walk stands: the scope, and the recipe's selector bits.
    """

    def __init__(self, recipe: Recipe, label_ids: frozenset[str] = frozenset()) -> None:
        super().__init__()
        self.recipe = recipe
        self.targets: list[Target] = []
        self.cards: list[Scope] = []
        self.unlabelled: list[tuple[Scope, Attributes]] = []
        self.fields: list[Target] = []
        self.texts: dict[str, str] = {}
        self.field_labels: dict[str, str] = {}
        self.scope = Scope(None, "")
        self.inside = 0
        self._label_ids = label_ids
        self._target: Target | None = None  # the innermost open one
        self._behind_dialog = 0  # how many parts of the page are

    def run(self, node: LexborNode | None) -> None:  # noqa: C901, PLR0915 - the hot loop: calls would show
        """Walks a node, its later siblings, and all inside them."""
        pieces = self.pieces
        selectors = self.recipe.selectors
        choices = selectors.choices
        looked_at = selectors.attribute_names | TELLING_ATTRIBUTES | HIDING_ATTRIBUTES
        ids = selectors.ids | self._label_ids
        stack: list[tuple[LexborNode, int, int, str, Target | _Part | None]] = []
        while True:
            while node is not None:
                number = node.tag_id
                if number == TEXT:
                    if node.is_empty_text_node:
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
                if is_told or choice is not None or kind >= ACTED_ON:
                    begun = self._begin(node, tag, kind, attributes, choice, is_told)
                    if begun is False:
                        node = node.next
                        continue
                    if begun is not True:
                        opened = begun
                        kind = begun.kind
                stack.append((node, kind, len(pieces), tag, opened))
                if kind >= BLOCK:
                    pieces.append("")
                    self._blank = True
                elif kind == INLINE:
                    self._edge = True
                node = node.first_child
            if not stack:
                return
            node, kind, piece, tag, opened = stack.pop()
            if opened is not None:
                self._end(opened, kind, piece, tag)
            elif kind >= BLOCK:
                self.end_block(kind, piece, tag)
            elif kind == INLINE:
                self._edge = True
            node = node.next

    def text_of(self, ids: str | None) -> str:
        """The text of the elements with the given ids, as `aria-labelledby` names them. Known after the walk."""
        return " ".join(filter(None, (self.texts.get(identifier) for identifier in (ids or "").split())))

    def _begin(
        self, node: LexborNode, tag: str, kind: int, attributes: Attributes, choice: Choice | None, is_told: bool
    ) -> Target | _Part | bool:
        """Begins an element that may be more than a wrapper; True if it is none, False if it is left out.

        Args:
            choice: What the recipe's selectors make of its tag and classes.
            is_told: Whether its other attributes say something too.
        """
        hidden = is_told and not HIDING_ATTRIBUTES.isdisjoint(attributes) and self._is_hidden(node, attributes)
        acting = acts_by_tag(tag, attributes) if kind == ACTED_ON else is_told and acts_by_attributes(attributes)
        if (hidden and not self.recipe.keeps) or (tag == "input" and not acting):
            return False
        rule, inside = NO_RULE, self.inside
        if is_told or choice is not None:
            fitting, inside = self.recipe.selectors.match(choice, tag, attributes, inside)
            rule = self.recipe.merged(fitting) or NO_RULE
        if rule.drop or (hidden and not rule.keep):
            return False
        if kind == IMAGE:
            self._image(tidy(attributes.get("alt")), rule)
            return False
        if acting or rule.name is not None:
            return self._begin_target(tag, kind, attributes, rule, inside)
        says_nothing = rule is NO_RULE and inside == self.inside and "aria-label" not in attributes
        if kind < ACTED_ON and says_nothing and not (self._label_ids and attributes.get("id") in self._label_ids):
            return True
        return self._begin_part(tag, kind, attributes, rule, inside)

    def _is_hidden(self, node: LexborNode, attributes: Attributes) -> bool:
        """Whether an element hides itself. The text of one that does is kept if it is the label of others."""
        if not is_hidden(attributes):
            return False
        if (
            "aria-hidden" in attributes
            and self._behind_dialog < _MAX_BEHIND_DIALOG
            and is_behind_dialog(node, attributes)
        ):
            self._behind_dialog += 1
            return False
        if self._label_ids and (identifier := attributes.get("id")) in self._label_ids:
            self.texts[identifier or ""] = tidy(node.text(separator=" "))
        return True

    def _begin_target(self, tag: str, kind: int, attributes: Attributes, rule: Rule, inside: int) -> Target:
        if rule.private is not None and rule.private != "shopper" and (value := tidy(attributes.get("value"))):
            self.concealed.append((rule.private, value))
            attributes = {**attributes, "value": f"[{rule.private}]"}
        target = Target(tag, attributes, rule, self.scope, len(self.pieces))
        target.outer = self._target
        target.inside = self.inside
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
            self.fields.append(target)
        self.inside = inside
        self._tail = ""
        if tag == "select":
            self.scope = target.inner = Scope(self.scope, "")
        elif rule is not NO_RULE:
            self._enter(rule, attributes, tag)
        target.in_account = self.private == "shopper"
        return target

    def _begin_part(self, tag: str, kind: int, attributes: Attributes, rule: Rule, inside: int) -> _Part:
        part = _Part(self, min(kind, ACTED_ON), attributes, rule)
        self.inside = inside
        if kind >= ACTED_ON:
            part.kind = INLINE
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
        if rule.card is not None:
            self.scope = Scope(self.scope, "", rule.card)
            self.cards.append(self.scope)
            if tag not in _UNLABELLED:
                self.scope.title = tidy(attributes.get("aria-label"))
                if not self.scope.title and "aria-labelledby" in attributes:
                    self.unlabelled.append((self.scope, attributes))

    def _end(self, opened: Target | _Part, kind: int, piece: int, tag: str) -> None:
        """Ends an element that is more than a wrapper."""
        self.scope = opened.scope
        self.inside = opened.inside
        self.private = opened.private
        if self._label_ids and (identifier := opened.attributes.get("id")) in self._label_ids:
            self.texts[identifier or ""] = self.text_since(piece) or tidy(opened.attributes.get("aria-label"))
        if isinstance(opened, Target):
            self._target = opened.outer
            opened.text = words = self.text_since(piece + 1)
            self.end_target(piece, tag)
            if opened.rule.title:
                self._entitle(words or opened.alt or opened.label)
            return
        self._end_part(opened, piece)
        if kind < BLOCK:
            self._edge = True
        elif opened.container is not None:
            self.write_end(piece, tag)  # its start tag is written when it has its name
        else:
            self.end_block(kind, piece, tag)

    def _end_part(self, part: _Part, piece: int) -> None:
        """Keeps what an element's content tells: a container's extent, a title, the label of a field."""
        if part.container is not None:
            part.container.end = len(self.targets)
            if self.targets[-1] is part.container:
                self.targets.pop()
                part.container = None
        elif "aria-label" in part.attributes and len(self.pieces) == piece + (part.kind >= BLOCK):
            self.write_text(part.attributes["aria-label"] or "")  # a drawing with a description, such as stars
        if part.rule.title:
            self._entitle(self.text_since(piece) or tidy(part.attributes.get("aria-label")))
        if part.is_label and (words := self.text_since(piece)):
            if labelled := part.attributes.get("for"):
                self.field_labels.setdefault(labelled, words)
            for target in self.fields[part.fields_before : part.fields_before + 1]:
                target.label = target.label or words

    def _entitle(self, words: str) -> None:
        """Gives the nearest card around its title, if it has none."""
        card = self.scope.card
        if card is not None and not card.title:
            card.title = words

    def _image(self, words: str, rule: Rule) -> None:
        self._blank = True
        if words:
            if rule.title:
                self._entitle(words)
            target = self._target
            while target is not None and not target.alt:
                target.alt = words
                target = target.outer
            self.write_image(words)

    def _drawing(self, node: LexborNode, target: Target) -> None:
        """A drawing inside a target names it by its label or title."""
        if not target.alt:
            label = tidy(node.attributes.get("aria-label"))
            title = None if label else node.css_first("title")
            target.alt = label if title is None else tidy(title.text())
