"""The cards of a page and their titles: what is in a card is named after it, so that names need no numbers.

Cards are what a recipe's rules say (`card`), and what a page repeats: list items and rows, and elements that stand
beside others of their tag and class, or of a tag that is the site's own (`<product-card>`). A card's title is its first
heading. Without one, the first thing to act on in it titles what comes after (`Women` of a menu that opens below it);
where that is the same in all of them (`Expand`, `Expand`), the first text does. A repeated part without a title of its
own is no card.
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
_MOST_OF_ONE = 16  # what can be acted on in a card of one product; more is a list
_MOST_ALIKE = 0.7  # of the titles of siblings; if more are the same, they say what all of them are
_LIST = frozenset({"\n<dd>", "\n<dl>", "\n<dt>", "\n<li>", "\n<ol>", "\n<ul>"})
_PLACE = re.compile(  # "slide 3 of 7", "3 / 7": where a card stands in a carousel
    r"\W*(?:[^\W\d_]+\W+)?\d+\s*(?:/|of|von|sur|de|di|van|av|af|из|z|z\.)\s*\d+\W*", re.IGNORECASE
)


def set_cards(
    parts: list[Part], headings: list[Heading], targets: list[Target], texts: list[int], pieces: list[str]
) -> list[Scope]:
    """Finds the titles of all cards, sets them as scopes of what is in them, and gives them back.

    Args:
        parts: In the order of their ends.
        texts: Which of the pieces are texts.
    """
    if not parts:
        return []
    nodes = tree_of(parts, headings, len(targets))
    titles = _Titles(targets, texts, pieces)
    for node in reversed(nodes):
        if node.children:
            titles.give_children(node)
            _hand_up(node)
            node.children = []  # parts that held each other would hold the page
    return _set_scopes(nodes, targets)


class _Titles:
    """Finds titles of parts in what they hold."""

    def __init__(self, targets: list[Target], texts: list[int], pieces: list[str]) -> None:
        self._targets = targets
        self._texts = texts
        self._pieces = pieces

    def give_children(self, node: Node) -> None:
        """Finds titles of a part's children; those inside them are known."""
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
            # What has no heading and holds one thing to act on gets no title, and helps none beside it to one.
            if (headings or part.last - part.first > 1) and not child.title and part.tag not in _NO_CARDS:
                by_tag.setdefault(part.tag, []).append(child)
        for tag, alike in by_tag.items():
            if tag in ITEMS:
                self._title_group(alike, is_list=True)
            elif len(alike) > 1:
                for group in _by_class(alike):
                    self._title_group(group, is_list=False)

    def _title_group(self, group: list[Node], *, is_list: bool) -> None:
        """Finds titles of siblings of one kind."""
        headed = [node for node in group if node.headings and leaf(_heading(node)) not in ("", "price")]
        if is_list or len(headed) > 1:
            for node in headed:
                node.title = _heading(node)
                if node.part.last - node.part.first == 1 and leaf(words_of(self._targets[node.part.first])) == leaf(
                    node.title
                ):
                    node.title = ""  # a link around a heading, and nothing else
                    node.is_one_of_many = len(headed) > 1
        rest = [node for node in group if not node.headings and node.part.first < node.first_inner]
        if len(rest) < 2 and not is_list:
            return
        rest = [node for node in rest if not self._titles_a_list(node)]
        if not self._give(rest, [self._first_words(node.part.first, node.first_inner) for node in rest]):
            self._give(rest, [self._first_text(node.part) for node in rest])

    def _titles_a_list(self, node: Node) -> bool:
        """Returns whether a part is a list or several links with headings; its text before those is its title."""
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
        """The words of the first link that has some, or of a picture that go on from those, else of the first."""
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
        """Gives siblings their titles, unless those say what all of them are."""
        leaves = [leaf(title) for title in titles]
        if len(leaves) > 1 and self._are_alike(nodes, leaves):
            return False
        for node, title, last in zip(nodes, titles, leaves, strict=True):
            if last and last != "price" and _LETTER.search(title):
                node.title = title
        return True

    def _are_alike(self, nodes: list[Node], leaves: list[str]) -> bool:
        """Returns whether most siblings would bear one title: nearly all, or several and over half to one place.

        Products of one title are told apart by where they lead; a page's copies of one form lead nowhere, and one
        sibling more or less changes little about how many they are.
        """
        title, often = Counter(leaves).most_common(1)[0]
        if often > _MOST_ALIKE * len(leaves):
            return True
        if often < _SEVERAL or 2 * often <= len(leaves):
            return False
        parts = [node.part for node, last in zip(nodes, leaves, strict=True) if last == title]
        return len({_address(self._targets[part.first : part.last]) for part in parts}) == 1

    def _first_text(self, part: Part, end: int | None = None) -> str:
        """The first text in a part, or up to `end`, that says more than a number and is no remark; "" for none."""
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
    """Tells a part what the cards inside leave to it."""
    for child in node.children:
        part = child.part
        inner = part.first if child.title else child.first_inner
        if (child.title or inner < part.last) and inner < node.first_inner:
            node.first_inner = inner
        if child.headings and not child.title and not child.is_one_of_many:
            node.headings += child.headings


def _by_class(nodes: list[Node]) -> list[list[Node]]:
    """Those of the nodes that have others of their first class beside them; other classes say their state.

    An element of the site's own (`<product-card>`) is of its tag, whatever its classes.
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
    """The heading that titles a part; "" if it has none, or only such as stand in several links, of which none does."""
    headings = node.headings
    if not headings or (headings[0].link >= 0 and len({heading.link for heading in headings}) >= _SEVERAL):
        return ""
    return headings[0].words


def _set_scopes(nodes: list[Node], targets: list[Target]) -> list[Scope]:
    """Makes scopes of the cards, sets them between those of the walk, and gives each target the one that it is in."""
    cards: list[Scope] = []
    extents: list[tuple[int, int]] = []  # of the targets by whose addresses cards are told apart
    done = 0
    current = nodes[0]
    for node in nodes:
        part = node.part
        if done < part.first:
            done, current = _settle(targets, done, part.first, current)
        scope = around = node.parent.scope if node.parent is not None else part.outside
        if part.inside is not part.outside:
            outer = scope = part.inside
            while outer.parent is not None and outer.parent is not part.outside:
                outer = outer.parent
            outer.parent = around
        if not node.title:
            pass
        elif (card := part.card) is not None:
            card.title = node.title
        elif around.card is None or around.card.title != node.title:
            scope = Scope(scope, "", _REPEAT, node.title)
        if scope is not around and scope.repeat is not None and scope.title:
            cards.append(scope)
            is_small = node.first_inner >= part.last and part.last - part.first <= _MOST_OF_ONE
            extents.append((part.first, part.last if is_small else part.first))
        node.scope = scope
        current = node
    _settle(targets, done, nodes[0].part.last, current)
    _tell_apart(cards, extents, targets)
    return cards


def _tell_apart(cards: list[Scope], extents: list[tuple[int, int]], targets: list[Target]) -> None:
    """Gives cards of one title in one place what tells them apart: where their pictures lead, or their first links."""
    lasts = [card.title_word() for card in cards]
    names = [(card.parent and card.parent.named, last) for card, last in zip(cards, lasts, strict=True)]
    titles = [card.title for card in cards]
    address = [targets[first:last] for first, last in extents]
    for index, words in tell_apart(names, titles, lasts, lambda index: _address(address[index])).items():
        cards[index].apart = words


def _settle(targets: list[Target], start: int, end: int, node: Node) -> tuple[int, Node]:
    """Gives targets the scopes of the parts that they are in, of which `node` is the innermost for the first."""
    for index in range(start, end):
        while node.part.last <= index and node.parent is not None:
            node = node.parent
        target = targets[index]
        if target.is_container:
            continue
        if target.scope is node.part.inside:
            target.scope = node.scope
        else:
            target.scope.parent = node.scope  # that of a list item which is no part
    return end, node


def _address(targets: list[Target]) -> str | None:
    """Where the links lead, if more than half of them or one of two lead to one place; those of a list do not."""
    addresses = [address for target in targets if (address := target.attributes.get("href"))]
    keys = [address_key(address) or words_key(address, "") for address in addresses]
    key, often = Counter(keys).most_common(1)[0] if keys else ("", 0)
    return addresses[keys.index(key)] if key and (2 * often > len(keys) or len(keys) <= 2) else None
