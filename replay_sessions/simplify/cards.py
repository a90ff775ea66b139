"""Finds the cards of a page and their titles, which become parts of the names of the targets in them.

Cards are the elements that a recipe calls `card`, and those that a page repeats: list items and rows, siblings of the
same tag and class, and siblings of the same custom element (`<product-card>`). A card's title is its first heading.
Without a heading, the first target in a card is its title (`Women` of a menu that opens below it). If this is the same
for all siblings (`Expand`, `Expand`), the first text is the title. A repeated part without its own title is no card.
"""

import bisect
import html
import re
from collections import Counter

from replay_sessions.simplify.apart import address_key, tell_apart, without_remarks, words_key
from replay_sessions.simplify.card_tree import ITEMS, Heading, Node, Part, tree_of
from replay_sessions.simplify.names import Scope, leaf
from replay_sessions.simplify.targets import Target, words_of

_NO_CARDS = frozenset(
    {"", "a", "body", "button", "form", "html", "label", "main", "option", "select", "tbody", "ul", "ol"}
)
_REPEAT = "view"
_LETTER = re.compile(r"[^\W\d_]")
_MAX_TEXTS = 5
_SEVERAL = 3
_MOST_OF_ONE = 16  # the most targets in a card of one product; a card with more is a list
_MOST_ALIKE = 0.7  # if a larger share of siblings has the same title, it is the name of their kind
_LIST = frozenset({"\n<dd>", "\n<dl>", "\n<dt>", "\n<li>", "\n<ol>", "\n<ul>"})
_PLACE = re.compile(  # "slide 3 of 7", "3 / 7": the position in a carousel
    r"\W*(?:[^\W\d_]+\W+)?\d+\s*(?:/|of|von|sur|de|di|van|av|af|из|z|z\.)\s*\d+\W*", re.IGNORECASE
)


def set_cards(
    parts: list[Part], headings: list[Heading], targets: list[Target], texts: list[int], pieces: list[str]
) -> list[Scope]:
    """Finds the titles of all cards, makes the cards scopes of their targets, and returns these scopes.

    Args:
        parts: Parts in the order of their ends.
        headings: Headings of the page.
        targets: Targets of the page; their scopes are changed in place.
        texts: Indices of the pieces that are texts or images.
        pieces: Pieces of the page.
    """
    if not parts:
        return []
    nodes = tree_of(parts, headings, len(targets))
    titles = _Titles(targets, texts, pieces)
    for node in reversed(nodes):
        if node.children:
            titles.give_children(node)
            _hand_up(node)
            node.children = []  # breaks the reference cycles, which would keep the page in memory
    return _set_scopes(nodes, targets)


class _Titles:
    """Finds the titles of parts in their content."""

    def __init__(self, targets: list[Target], texts: list[int], pieces: list[str]) -> None:
        self._targets = targets
        self._texts = texts
        self._pieces = pieces

    def give_children(self, node: Node) -> None:
        """Finds the titles of a part's children. Call it for inner parts first."""
        by_tag: dict[str, list[Node]] = {}
        for child in node.children:
            part = child.part
            headings = child.headings
            if len(headings) > 1:
                headings.sort()
            if part.inside is not part.outside and (card := part.card) is not None:
                if card.title and _PLACE.fullmatch(card.title):
                    card.title = ""
                if headings and not card.title:
                    card.title = _heading(child)
                child.title = card.title
            # A part with a single target and no heading gets no title and does not count as a sibling of others.
            if (headings or part.last - part.first > 1) and not child.title and part.tag not in _NO_CARDS:
                by_tag.setdefault(part.tag, []).append(child)
        for tag, siblings in by_tag.items():
            if tag in ITEMS:
                self._title_group(siblings, is_list=True)
            elif len(siblings) > 1:
                for group in _by_class(siblings):
                    self._title_group(group, is_list=False)

    def _title_group(self, group: list[Node], *, is_list: bool) -> None:
        """Finds the titles of siblings of one kind."""
        headed = [node for node in group if node.headings and leaf(_heading(node)) not in ("", "price")]
        if is_list or len(headed) > 1:
            for node in headed:
                node.title = _heading(node)
                if node.part.last - node.part.first == 1 and leaf(words_of(self._targets[node.part.first])) == leaf(
                    node.title
                ):
                    node.title = ""  # nothing but a link around a heading
                    node.is_one_of_many = len(headed) > 1
        untitled = [node for node in group if not node.headings and node.part.first < node.first_inner]
        if len(untitled) < 2 and not is_list:
            return
        untitled = [node for node in untitled if not self._titles_a_list(node)]
        if not self._give(untitled, [self._first_words(node.part.first, node.first_inner) for node in untitled]):
            self._give(untitled, [self._first_text(node.part) for node in untitled])

    def _titles_a_list(self, node: Node) -> bool:
        """Returns whether a part is a list or several links with headings, and sets the text before them as title."""
        part = node.part
        begin = part.piece + 1
        before = self._pieces[begin : self._targets[part.first].piece]
        if not _LIST.isdisjoint(before):
            offset = next(index for index, piece in enumerate(before) if piece in _LIST)
        else:
            first = self._targets[part.first : min(part.first + _MAX_TEXTS, part.last)]
            if sum(target.tag == "a" and target.heading != "" for target in first) < _SEVERAL:
                return False
            offset = len(before)
        node.title = self._first_text(node.part, begin + offset)
        return True

    def _first_words(self, start: int, end: int) -> str:
        """Returns the words of the first link that has any, otherwise those of the first target.

        If the alternative text of an image begins with the link's words, it is returned instead.
        """
        first = self._targets[start : min(start + _MAX_TEXTS, end)]
        for target in first:
            if (
                target.tag == "a"
                and (last := leaf(words := words_of(target))) not in ("", "price")
                and _LETTER.search(words)
            ):
                alts = [other.alt for other in first if other.alt]
                return next((alt for alt in alts if leaf(alt).startswith(f"{last}_")), words)
        return words_of(first[0])

    def _give(self, nodes: list[Node], titles: list[str]) -> bool:
        """Gives siblings their titles and returns True; returns False if most titles are the same."""
        leaves = [leaf(title) for title in titles]
        if len(leaves) > 1 and self._are_alike(nodes, leaves):
            return False
        for node, title, last in zip(nodes, titles, leaves, strict=True):
            if last and last != "price" and _LETTER.search(title):
                node.title = title
        return True

    def _are_alike(self, nodes: list[Node], leaves: list[str]) -> bool:
        """Returns whether most siblings would have the same title.

        That is, either more than _MOST_ALIKE of them, or at least _SEVERAL and more than half, if they lead to one URL
        or to none. Products of the same title lead to different URLs. Copies of one form lead nowhere, and a single
        sibling more or less hardly changes their share.
        """
        title, count = Counter(leaves).most_common(1)[0]
        if count > _MOST_ALIKE * len(leaves):
            return True
        if count < _SEVERAL or 2 * count <= len(leaves):
            return False
        parts = [node.part for node, last in zip(nodes, leaves, strict=True) if last == title]
        return len({_address(self._targets[part.first : part.last]) for part in parts}) == 1

    def _first_text(self, part: Part, end: int | None = None) -> str:
        """Returns the first text in a part, or up to piece `end`, with a letter and no price or remark; "" if none."""
        start = bisect.bisect_left(self._texts, part.piece)
        candidates: list[str] = []
        for piece in self._texts[start : start + _MAX_TEXTS]:
            if piece >= (part.end if end is None else end):
                break
            if (
                "<" not in self._pieces[piece]
                and _LETTER.search(words := html.unescape(self._pieces[piece]).strip())
                and leaf(words) != "price"
            ):
                candidates.append(words)
        if len(candidates) < 2:
            return candidates[0] if candidates else ""
        alt = next((target.alt for target in self._targets[part.first : part.last] if target.alt), "")
        is_kept = without_remarks(candidates, alt, _address(self._targets[part.first : part.last]))
        return candidates[is_kept.index(True)]


def _hand_up(node: Node) -> None:
    """Passes to a part the headings of children without a title, and the first target that is in an inner card."""
    for child in node.children:
        part = child.part
        inner = part.first if child.title else child.first_inner
        if (child.title or inner < part.last) and inner < node.first_inner:
            node.first_inner = inner
        if child.headings and not child.title and not child.is_one_of_many:
            node.headings += child.headings


def _by_class(nodes: list[Node]) -> list[list[Node]]:
    """Returns the groups of several nodes with the same first class, because other classes express states.

    Custom elements (`<product-card>`) are grouped by their tag instead.
    """
    groups: dict[str, list[Node]] = {}
    for node in nodes:
        element = node.part.node
        classes = (element.attributes.get("class") or "").split() if element is not None else []
        kind = element.tag or "" if element is not None and "-" in (element.tag or "") else "".join(classes[:1])
        if kind:
            groups.setdefault(kind, []).append(node)
    return [group for group in groups.values() if len(group) > 1]


def _heading(node: Node) -> str:
    """Returns the first heading of a part; "" if it has none, or if the headings are those of several links."""
    headings = node.headings
    if not headings or (headings[0].link >= 0 and len({heading.link for heading in headings}) >= _SEVERAL):
        return ""
    return headings[0].words


def _set_scopes(nodes: list[Node], targets: list[Target]) -> list[Scope]:
    """Inserts the cards between the scopes of the walk, and gives each target its innermost scope."""
    cards: list[Scope] = []
    extents: list[tuple[int, int]] = []  # ranges of the targets that distinguish cards by their URLs
    done = 0
    current = nodes[0]
    for node in nodes:
        part = node.part
        if done < part.first:
            done, current = _settle(targets, done, part.first, current)
        scope = outer_scope = node.parent.scope if node.parent is not None else part.outside
        if part.inside is not part.outside:
            outer = scope = part.inside
            while outer.parent is not None and outer.parent is not part.outside:
                outer = outer.parent
            outer.parent = outer_scope
        if not node.title:
            pass
        elif (card := part.card) is not None:
            card.title = node.title
        elif outer_scope.card is None or outer_scope.card.title != node.title:
            scope = Scope(scope, "", _REPEAT, node.title)
        if scope is not outer_scope and scope.repeat is not None and scope.title:
            cards.append(scope)
            is_small = node.first_inner >= part.last and part.last - part.first <= _MOST_OF_ONE
            extents.append((part.first, part.last if is_small else part.first))
        node.scope = scope
        current = node
    _settle(targets, done, nodes[0].part.last, current)
    _tell_apart(cards, extents, targets)
    return cards


def _tell_apart(cards: list[Scope], extents: list[tuple[int, int]], targets: list[Target]) -> None:
    """Gives cards of the same title and scope words that distinguish them, from long titles or the URLs in them."""
    lasts = [leaf(card.title) for card in cards]
    names = [(card.parent and card.parent.named, last) for card, last in zip(cards, lasts, strict=True)]
    titles = [card.title for card in cards]
    address = [targets[first:last] for first, last in extents]
    for index, words in tell_apart(names, titles, lasts, lambda index: _address(address[index])).items():
        cards[index].apart = words


def _settle(targets: list[Target], start: int, end: int, node: Node) -> tuple[int, Node]:
    """Gives a range of targets the scopes of the innermost parts around them.

    Args:
        start, end: Range of the targets.
        node: The innermost part around the first target.

    Returns:
        `end` and the innermost part around the last target.
    """
    for index in range(start, end):
        while node.part.last <= index and node.parent is not None:
            node = node.parent
        target = targets[index]
        if target.is_container:
            continue
        if target.scope is node.part.inside:
            target.scope = node.scope
        else:
            target.scope.parent = node.scope  # the target's scope is a list item that is no part
    return end, node


def _address(targets: list[Target]) -> str | None:
    """Returns the URL to which more than half of the links lead, or the first of two; None for a list of links."""
    addresses = [address for target in targets if (address := target.attributes.get("href"))]
    keys = [address_key(address) or words_key(address, "") for address in addresses]
    key, count = Counter(keys).most_common(1)[0] if keys else ("", 0)
    return addresses[keys.index(key)] if key and (2 * count > len(keys) or len(keys) <= 2) else None
