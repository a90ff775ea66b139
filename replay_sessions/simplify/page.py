"""Defines `simplify`, which turns a raw page into a simplified page with the other modules of this package."""

import bisect
import dataclasses
import functools
import itertools

from selectolax.lexbor import LexborHTMLParser

from replay_sessions.elements import Element, find_elements
from replay_sessions.foundation.collection import paused_collection
from replay_sessions.foundation.errors import BadSession
from replay_sessions.private_data import find_private_data
from replay_sessions.private_data.removal import mark_text, settle
from replay_sessions.simplify.apart import last_parts
from replay_sessions.simplify.cards import set_cards
from replay_sessions.simplify.icons import host_of
from replay_sessions.simplify.media import DESKTOP, Viewport
from replay_sessions.simplify.names import Namer, quoted, tidy
from replay_sessions.simplify.recipes import Recipe, find_recipe, load_recipe
from replay_sessions.simplify.targets import (
    ACTING_TAGS,
    TICKED_INPUTS,
    Labels,
    Target,
    kind_of,
    label_of,
    shown_attributes,
)
from replay_sessions.simplify.trees import parse
from replay_sessions.simplify.walk import Walk

_LONGEST_NEIGHBOR = 40
_ENDS_OF_TARGETS = frozenset(f"</{tag}>" for tag in ACTING_TAGS)


@dataclasses.dataclass(frozen=True)
class SimplifiedPage:
    """A page as a shopper perceives it.

    Attributes:
        html: The simplified HTML.
        marked: The same HTML with marks around values that are private by their form (private_data/removal.py).
    """

    html: str
    marked: str = dataclasses.field(default="", compare=False, repr=False)

    @functools.cached_property
    def elements(self) -> list[Element]:
        """The elements that can be clicked or typed into, in the order of the page."""
        return find_elements(self.html)


@dataclasses.dataclass(frozen=True)
class LocatedPage:
    """A simplified page, and the nodes of the raw page that its elements come from.

    Attributes:
        page: The simplified page.
        document: The parsed raw page, with its closed parts marked `inert`.
        names: Names of elements by the `mem_id` of their nodes in the document.
        hidden: The `mem_id` of nodes that are hidden with their content.
    """

    page: SimplifiedPage
    document: LexborHTMLParser
    names: dict[int, str]
    hidden: frozenset[int]


def simplify(
    raw_html: str | bytes,
    recipe: Recipe | str | None = None,
    *,
    private_data: bool = True,
    viewport: Viewport = DESKTOP,
) -> SimplifiedPage:
    """Simplifies a page.

    Args:
        raw_html: The page as the browser holds it. Bytes are decoded as UTF-8 if they are valid, otherwise by the
            encoding that they declare.
        recipe: A recipe, the name of a built-in recipe, or a TOML file. If None, the page's site decides.
        private_data: Whether private data is removed.
        viewport: The window for which the page's styles are evaluated.

    Raises:
        BadConfig: The recipe does not exist.
        BadSession: The page nests deeper than any browser would show, or the parser cannot read it.
    """
    return locate(raw_html, recipe, private_data=private_data, viewport=viewport).page


def locate(
    raw_html: str | bytes,
    recipe: Recipe | str | None,
    *,
    private_data: bool,
    viewport: Viewport,
) -> LocatedPage:
    """Simplifies a page as `simplify` does, and also returns the nodes of its elements."""
    try:
        return _locate(raw_html, recipe, private_data=private_data, viewport=viewport)
    except RecursionError as error:
        raise BadSession("a page whose styles or elements are nested too deeply to be read: leave it out") from error


@paused_collection()
def _locate(
    raw_html: str | bytes, recipe: Recipe | str | None, *, private_data: bool, viewport: Viewport
) -> LocatedPage:
    source = raw_html if isinstance(raw_html, bytes) else raw_html.encode("utf-8", "replace")
    rules = find_recipe(source) if recipe is None else recipe if isinstance(recipe, Recipe) else load_recipe(recipe)
    document, landmarks, styles = parse(source, viewport)
    walk = Walk(rules.rules_on(document), Labels(landmarks.labelled), styles, private_data=private_data)
    walk.run(document.body.first_child if document.body is not None else None)
    draft = _Draft(walk, _title(document))
    if private_data:
        shops = (*document.css("footer")[-1:], *document.css("[itemprop=email], [itemprop=telephone]"))
        draft.remove_private_data([node.text(separator="\n") for node in shops])
    names = draft.names()
    nodes = {target.node.mem_id: name for target, name in zip(walk.targets, names, strict=True) if target.node and name}
    html = draft.html(names)
    return LocatedPage(SimplifiedPage(settle(html), html), document, nodes, frozenset(walk.hidden))


class _Draft:
    """A page between the walk and its HTML: the pieces to write, and the words from which names are derived."""

    def __init__(self, walk: Walk, title: str) -> None:
        walk.labels.settle(walk.targets)
        self._cards = set_cards(walk.parts, walk.headings, walk.targets, walk.visible, walk.pieces)
        self.targets = walk.targets
        self._walk = walk
        self._title = quoted(title)
        self._attributes = [shown_attributes(target) for target in walk.targets]
        self._labels = ["" if target.is_container else self._label(target) for target in walk.targets]

    def _label(self, target: Target) -> str:
        """Returns the words from which a target's name is derived."""
        if label := label_of(target):
            return label
        if target.tag == "a":
            return host_of(target.attributes.get("href")) or kind_of(target)
        words = self._text_beside(target.piece, is_after=target.input_type in TICKED_INPUTS)
        return words if words and target.tag == "input" else f"{words} {kind_of(target)}".strip()

    def _text_beside(self, piece: int, *, is_after: bool) -> str:
        """Returns the short text directly before or after a piece, at most one element further out.

        Returns "" for texts with other characters than letters, such as prices.
        """
        pieces, visible = self._walk.pieces, self._walk.visible
        index = bisect.bisect_left(visible, piece) - (not is_after)
        if not 0 <= index < len(visible):
            return ""
        words = pieces[visible[index]].strip(" :*")
        start, end = (piece + 1, visible[index]) if is_after else (visible[index] + 1, piece)
        between = [text for text in pieces[start:end] if text[:2] == "</"]
        is_near = len(between) < 2 and _ENDS_OF_TARGETS.isdisjoint(between)
        return words if is_near and len(words) <= _LONGEST_NEIGHBOR and words.replace(" ", "").isalpha() else ""

    def remove_private_data(self, shops_texts: list[str]) -> None:
        """Marks private values in texts, and removes them from the words from which names are derived.

        The shop's contact links and the examples in fields (`placeholder`) stay.

        Args:
            shops_texts: Texts with the shop's own values, which stay.
        """
        pieces, visible, attributes, cards = self._walk.pieces, self._walk.visible, self._attributes, self._cards
        texts = [pieces[index] for index in visible]
        texts += [*attributes, *self._labels, *(card.title for card in cards), self._title]
        if not find_private_data("\n".join(texts), mailboxes=True):
            return
        examples = [target.attributes.get("placeholder") or "" for target in self.targets]
        links = [
            label
            for label, target in zip(self._labels, self.targets, strict=True)
            if (target.attributes.get("href") or "").startswith(("mailto:", "tel:"))
        ]
        shops = "\n".join([*shops_texts, *examples, *links])
        shops_values = {span.text for span in find_private_data(shops, mailboxes=True)}
        joined = "\n".join([text.replace("\n", " ") for text in texts])
        lines = iter(mark_text(joined, shops_values).split("\n"))
        for index in visible:
            pieces[index] = next(lines)
        self._attributes = [next(lines) for _ in attributes]
        self._labels = [settle(next(lines)) for _ in self._labels]
        for card in cards:
            card.title = settle(next(lines))
        self._title = next(lines)

    def html(self, names: list[str]) -> str:
        """Returns the HTML of the page with the given names of its targets."""
        pieces = self._walk.pieces
        for target, name, attributes in zip(self.targets, names, self._attributes, strict=True):
            start = f"\n<{target.tag}" if target.is_block else f"{target.lead}<{target.tag}"
            pieces[target.piece] = f'{start} name="{name}"{attributes}>' if name else f"{start}{attributes}>"
        body = "".join(pieces)
        return f"<html>\n<head><title>{self._title}</title></head>\n<body>{body}\n</body>\n</html>"

    def names(self) -> list[str]:
        """Returns the names of all targets, in the order of the page; "" for containers without a name."""
        namer = Namer()
        targets = self.targets
        lasts = last_parts(targets, self._labels)
        names: list[str] = []
        for target, last in zip(targets, lasts, strict=True):
            names.append("" if target.is_container else namer.name(target.scope, last))
            if target.inner is not None:
                target.inner.pin(names[-1])
        for index, target in enumerate(targets):
            if target.is_container:
                name = namer.container(target.scope)
                inside = itertools.islice(names, index + 1, target.end)
                if name and any(inner.startswith(f"{name}.") for inner in inside):
                    names[index] = name
        return names


def _title(document: LexborHTMLParser) -> str:
    title = document.css_first("title:not(svg *)")
    return tidy(title.text()) if title is not None else ""
