"""The one walk over a parsed page: what is written out, and what on it can be acted on.

The walk goes from node to node and keeps its own stack, so depth costs memory and no recursion. It writes pieces of
HTML into a list; an element whose tag depends on what is inside leaves an empty piece that is filled in when it closes.
Start tags of targets stay empty until names are known, which takes all card titles of the page.
"""

from selectolax.lexbor import LexborNode

from replay_sessions.simplify.hidden import HIDING_ATTRIBUTES, is_hidden
from replay_sessions.simplify.names import Scope
from replay_sessions.simplify.recipes import Recipe, Rule
from replay_sessions.simplify.tags import (
    ACTED_ON,
    BLOCK,
    BREAK,
    IMAGE,
    INLINE,
    ITEM,
    LABEL,
    SKIPPED,
    TAGS,
    TEXT,
    UNKNOWN,
)
from replay_sessions.simplify.targets import TELLING_ATTRIBUTES, Attributes, Target, acts
from replay_sessions.simplify.words import quoted, tidy

__all__ = ["Walk"]

_NO_RULE = Rule()
_LABELLED = frozenset({"input", "textarea"})
_UNLABELLED = frozenset({"li", "tr"})  # their labels repeat what is inside, so only a heading makes them a card
_VOID = frozenset({"input"})
_STARTS = {tag: f"\n<{tag}>" for tag, kind in TAGS.values() if kind in (BLOCK, ITEM)}


class _Opened:
    """What to do, and what to go back to, when an element closes that is more than a wrapper."""

    target: Target | None = None
    container: Target | None = None
    is_label = False
    targets_before = 0

    def __init__(self, walk: "Walk", kind: int, attributes: Attributes, rule: Rule) -> None:
        self.kind = kind
        self.attributes = attributes
        self.rule = rule
        self.scope = walk.scope
        self.inside = walk.inside
        self.private = walk.private


class Walk:
    """One page being walked.

    Attributes:
        pieces: The page as it is written out; the start tags of targets are empty.
        targets: What can be acted on and the parts of the page that have names, in the order of the page.
        cards: All cards, in the order of the page.
        unlabelled: Cards whose title is the text of other elements, with the attributes that name those.
        texts: The texts of elements that others name as their label, by id.
        field_labels: The texts of `<label for=…>`, by the id that they label.
        concealed: What was taken out because of its place: (kind, text).
        scope, inside, private: What holds where the walk stands: the scope, the recipe's selector bits, and the kind of
            private data ("" where there is none).
    """

    def __init__(self, recipe: Recipe, label_ids: frozenset[str] = frozenset()) -> None:
        self.recipe = recipe
        self.pieces: list[str] = []
        self.targets: list[Target] = []
        self.cards: list[Scope] = []
        self.unlabelled: list[tuple[Scope, Attributes]] = []
        self.texts: dict[str, str] = {}
        self.field_labels: dict[str, str] = {}
        self.concealed: list[tuple[str, str]] = []
        self.scope = Scope(None, "")
        self.inside = 0
        self.private = ""
        self._label_ids = label_ids
        self._target: Target | None = None  # the innermost open one
        self._tail = ""  # the last character of the line so far
        self._blank = False  # whether white space came after it
        self._edge = False  # whether an element began or ended after it
        self._last_start = -1  # where the last element that was written out stands among the pieces
        self._last_end = -1

    def run(self, node: LexborNode | None) -> None:
        """Walks a node, its later siblings, and all inside them."""
        pieces = self.pieces
        by_class = self.recipe.selectors.by_class
        looked_at = self.recipe.selectors.attribute_names | TELLING_ATTRIBUTES | HIDING_ATTRIBUTES
        ids = self.recipe.selectors.ids | self._label_ids
        stack: list[tuple[LexborNode, int, int, str, _Opened | None]] = []
        while True:
            if node is None:
                if not stack:
                    return
                node, kind, piece, tag, opened = stack.pop()
                self._close(kind, piece, tag, opened)
                node = node.next
                continue
            number = node.tag_id
            if number == TEXT:
                self._text(node.text_content or "")
                node = node.next
                continue
            tag, kind = TAGS.get(number, UNKNOWN)
            if kind == SKIPPED:
                if tag == "svg" and self._target is not None:
                    self._drawing(node)
                node = node.next
                continue
            attributes = node.attributes
            opened = None
            if (
                kind >= ACTED_ON
                or by_class(tag, attributes.get("class"))
                or not looked_at.isdisjoint(attributes)
                or attributes.get("id") in ids
            ):
                outcome = self._open(node, tag, kind, attributes)
                if outcome is False:
                    node = node.next
                    continue
                if outcome is not True:
                    opened = outcome
                    kind = opened.kind
            piece = len(pieces)
            if kind >= BLOCK:
                pieces.append("")
                self._blank = True
            elif kind == INLINE:
                self._edge = True
            child = node.first_child
            if child is None:
                self._close(kind, piece, tag, opened)
                node = node.next
            else:
                stack.append((node, kind, piece, tag, opened))
                node = child

    def text_of(self, ids: str | None) -> str:
        """The text of the elements with the given ids, as `aria-labelledby` names them. Known after the walk."""
        return " ".join(filter(None, (self.texts.get(identifier) for identifier in (ids or "").split())))

    def _open(self, node: LexborNode, tag: str, kind: int, attributes: Attributes) -> _Opened | bool:
        """Begins an element that may be more than a wrapper; True if it is none, False if it is left out."""
        if self._label_ids and (identifier := attributes.get("id")) in self._label_ids:
            self.texts[identifier or ""] = tidy(node.text(separator=" "))
        fitting, inside = self.recipe.selectors.match(tag, attributes, self.inside)
        rule = self.recipe.merged(fitting) if fitting else _NO_RULE
        if rule.drop or (not HIDING_ATTRIBUTES.isdisjoint(attributes) and is_hidden(attributes) and not rule.keep):
            return False
        if kind >= BREAK:
            self._image(attributes, rule) if kind == IMAGE else self._break()
            return False
        acting = acts(tag, attributes) or rule.name is not None
        if rule is _NO_RULE and not acting:
            if kind < ACTED_ON and inside == self.inside and "aria-label" not in attributes:
                return True
            if tag == "input":
                return False
        opened = _Opened(self, kind, attributes, rule)
        self.inside = inside
        if acting:
            opened.kind = ACTED_ON
            self._begin_target(opened, tag, is_block=kind in (BLOCK, ITEM))
        elif kind >= ACTED_ON:
            opened.kind = INLINE
            opened.is_label = kind == LABEL
            opened.targets_before = len(self.targets)
        if rule is not _NO_RULE:
            self._apply(rule, opened, tag)
        return opened

    def _break(self) -> None:
        self._blank = True

    def _apply(self, rule: Rule, opened: _Opened, tag: str) -> None:
        """Changes the scope and the kind of private data for what is inside an element."""
        if rule.private is not None:
            self.private = rule.private
        if rule.scope:
            self.scope = Scope(self.scope, rule.scope)
            if opened.target is None:
                opened.kind = BLOCK
                opened.container = Target(tag, opened.attributes, rule, self.scope, len(self.pieces))
                opened.container.is_container = opened.container.is_block = True
                self.targets.append(opened.container)
        if rule.card is not None:
            self.scope = Scope(self.scope, "", rule.card)
            self.cards.append(self.scope)
            if tag not in _UNLABELLED:
                self.scope.title = tidy(opened.attributes.get("aria-label"))
                if not self.scope.title and "aria-labelledby" in opened.attributes:
                    self.unlabelled.append((self.scope, opened.attributes))

    def _begin_target(self, opened: _Opened, tag: str, *, is_block: bool) -> None:
        target = Target(tag, opened.attributes, opened.rule, self.scope, len(self.pieces))
        if "aria-label" in opened.attributes:
            target.label = tidy(opened.attributes["aria-label"])
        target.outer = self._target
        target.is_block = is_block
        if self._blank and self._tail:
            target.lead = " "
        opened.target = self._target = target
        self.targets.append(target)
        self._tail = ""
        if tag == "select":
            self.scope = target.inner = Scope(self.scope, "")

    def _close(self, kind: int, piece: int, tag: str, opened: _Opened | None) -> None:
        """Ends an element: writes its tags, or takes its empty piece back."""
        if opened is not None:
            self._finish(opened, piece)
        if kind == INLINE:
            self._edge = True
        elif kind == ACTED_ON:
            pieces = self.pieces
            if tag not in _VOID:
                pieces.append(f"</{tag}>")
            self._last_start = piece
            self._last_end = len(pieces)
            self._tail = ">"
            self._blank = False
        elif kind >= BLOCK:
            pieces = self.pieces
            end = len(pieces)
            self._blank = True
            if end == piece + 1:
                pieces.pop()
            elif opened is not None and opened.container is not None:
                self._write_end(piece, tag)
            elif kind == BLOCK and self._last_start == piece + 1 and self._last_end == end:
                self._last_start = piece
            else:
                pieces[piece] = _STARTS[tag]
                self._write_end(piece, tag)

    def _write_end(self, piece: int, tag: str) -> None:
        pieces = self.pieces
        if pieces[piece + 1].startswith(" "):
            pieces[piece + 1] = pieces[piece + 1][1:]
        pieces.append(f"</{tag}>")
        self._last_start = piece
        self._last_end = len(pieces)
        self._tail = ""

    def _finish(self, opened: _Opened, piece: int) -> None:
        """Goes back to what held before an element, and keeps what its content tells: texts, titles, labels."""
        self.scope = opened.scope
        self.inside = opened.inside
        rule = opened.rule
        target = opened.target
        if target is not None:
            self._target = target.outer
            target.text = self._text_since(piece)
        elif opened.container is not None:
            self._end_container(opened, opened.container)
        elif "aria-label" in opened.attributes and len(self.pieces) == piece + (opened.kind >= BLOCK):
            self._text(opened.attributes["aria-label"] or "")  # a drawing with a description, such as stars
        if rule.title:
            words = target.text or target.alt if target is not None else self._text_since(piece)
            self._entitle(words or tidy(opened.attributes.get("aria-label")), opened.scope)
        if opened.is_label and (words := self._text_since(piece)):
            self._label_fields(words, opened)
        self.private = opened.private

    def _end_container(self, opened: _Opened, container: Target) -> None:
        container.end = len(self.targets)
        if self.targets[-1] is container:
            self.targets.pop()
            opened.container = None

    def _entitle(self, words: str, scope: Scope) -> None:
        """Gives the nearest card around a scope its title, if it has none."""
        card = scope.card()
        if card is not None and not card.title:
            card.title = words

    def _label_fields(self, words: str, opened: _Opened) -> None:
        labelled = opened.attributes.get("for")
        if labelled:
            self.field_labels.setdefault(labelled, words)
        for target in self.targets[opened.targets_before :]:
            if target.tag in _LABELLED and not target.label:
                target.label = words

    def _text(self, raw: str) -> None:
        """Writes a text node: a blank only where the page shows one."""
        words = " ".join(raw.split())
        if not words.isprintable():
            words = tidy(words)
        if not words:
            self._blank = self._blank or bool(raw)
            return
        if self.private:
            self.concealed.append((self.private, words))
            words = f"[{self.private}]"
        if "&" in words or "<" in words or ">" in words:
            words = words.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
        tail = self._tail
        if tail and (self._blank or raw[0].isspace() or (self._edge and tail.isalnum() and words[0].isalnum())):
            self.pieces.append(" " + words)
        else:
            self.pieces.append(words)
        self._tail = words[-1]
        self._blank = raw[-1].isspace()
        self._edge = False

    def _text_since(self, piece: int) -> str:
        """The text written out from a piece on."""
        words = " ".join("".join([text if text and "<" not in text else " " for text in self.pieces[piece:]]).split())
        if "&" in words:
            words = words.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
        return words

    def _image(self, attributes: Attributes, rule: Rule) -> None:
        words = tidy(attributes.get("alt"))
        if not words:
            return
        if rule.title:
            self._entitle(words, self.scope)
        target = self._target
        while target is not None and not target.alt:
            target.alt = words
            target = target.outer
        self._last_start = len(self.pieces)
        self.pieces.append(f'<img alt="{quoted(words)}">')
        self._last_end = len(self.pieces)
        self._tail = ">"

    def _drawing(self, node: LexborNode) -> None:
        """A drawing inside a target names it by its label or title."""
        target = self._target
        if target is not None and not target.alt:
            title = None if node.attributes.get("aria-label") else node.css_first("title")
            target.alt = tidy(title.text() if title is not None else node.attributes.get("aria-label"))
