"""Infers a shop from all events of its log: the kinds of its pages, its menu, and the elements that can be clicked."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable
from functools import lru_cache
from importlib.resources import files
from typing import Literal

import msgspec

from replay_sessions.foundation.records import Record
from replay_sessions.importers.events.mapping import LISTS, VIEWS, Event, EventMapping, Kind, Offer, View
from replay_sessions.private_data import remove_from_url
from replay_sessions.simplify.names import slug

# Elements that all pages of a kind have because a logged action on such a page needs them: a button in each offer that
# adds it to the cart; buttons that add another product, remove one, lead to the checkout, or place the order; the rows
# of the cart, on a page that is not the cart's; and a button for searches without a logged query.
Control = Literal[
    "offer.add_to_cart", "add_to_cart", "remove_from_cart", "mini_cart", "checkout", "place_order", "search"
]
_ADDRESSES: dict[str, str] = msgspec.toml.decode((files(__package__) / "addresses.toml").read_bytes())
_RECOGNIZED: tuple[View, ...] = ("thank_you", "checkout", "cart", "error")  # the first that matches counts


class Shop(Record):
    """The parts that all pages of a shop have in common.

    Attributes:
        menu: The title of each link in the menu, by its name.
        menu_names: For each address, the name of the menu's link to it or to a page with the same title.
        kinds: The kind of each address, if the events contradict the address; products are left out.
        catalogue: The offers that were clicked on at each address where the log shows no list. "" is the address of
            clicks without one, if the log has no lists at all.
        has_lists: Whether the log shows lists.
        promotions: The texts of the links that were followed at each address.
        has_quickview: Whether each offer has a button that opens it over the list.
        search_words: The log's words for searches.
        loads: The kinds of views that begin a page; other views add lists and promotions to a page.
        controls: Pairs of a page kind and an element that each page of this kind has.
        acted_on: Page kinds on which the log has actions; all, until all visits are read.
    """

    menu: dict[str, str]
    menu_names: dict[str, str]
    kinds: dict[str, View]
    catalogue: dict[str, tuple[Offer, ...]]
    has_lists: bool
    promotions: dict[str, tuple[str, ...]]
    has_quickview: bool
    search_words: frozenset[str]
    loads: tuple[View, ...]
    controls: frozenset[tuple[View, Control]] = frozenset()
    acted_on: frozenset[View] = frozenset(VIEWS)

    def kind_of(self, path: str) -> View:
        """Returns the kind of the page at an address; "page" if unknown."""
        return self.kinds.get(path) or kind_by_address(path)

    def is_load(self, event: Event) -> bool:
        """Returns whether an event begins a page, and does not add to one."""
        return event.kind in self.loads and not (event.kind == "page" and event.links)


class _PageFacts:
    """The counts of the events at one address."""

    def __init__(self) -> None:
        self.titles: Counter[str] = Counter()
        self.kinds: Counter[Kind] = Counter()
        self.clicks: Counter[Offer] = Counter()
        self.promotions: Counter[str] = Counter()
        self.products: set[str] = set()  # two at most: more make no difference
        self.queries = self.loads = self.lists = 0

    def add(self, event: Event) -> None:
        kind = event.kind
        if kind == "page" or kind in LISTS:
            self.titles[event.title] += 1
            self.queries += event.query is not None
            self.loads += kind == "page" and not event.links
        if kind == "product" and event.item and len(self.products) < 2:
            self.products.add(event.item.id)
        if kind == "select_item":
            self.clicks.update(event.offers[:1])
        if kind == "follow_link":
            self.promotions.update(event.links[:1])
        self.lists += kind in LISTS and bool(event.offers)
        if kind is not None:
            self.kinds["page" if kind == "listing" and not event.offers else kind] += 1

    def kind(self, path: str) -> View:
        kinds = self.kinds
        views = max(kinds["page"], kinds["listing"], kinds["product"])
        by_address = kind_by_address(path)
        if 2 * max(kinds["cart"], kinds["checkout"]) >= max(views, 1):
            if by_address in ("cart", "checkout"):  # the cart may have events of the checkout (its button)
                return by_address
            return "cart" if kinds["cart"] >= kinds["checkout"] else "checkout"
        if 2 * max(kinds["search"], self.queries) >= max(views, 1):
            return "search"
        is_list = kinds["listing"] or self.clicks
        if kinds["product"] and (len(self.products) < 2 or not is_list):
            return "product"
        if is_list:
            return "listing"
        if 2 * kinds["purchase"] >= max(kinds["page"], 1):
            return "thank_you"
        is_error = any(re.match(_ADDRESSES["titles"], title.lower()) for title, _ in self.titles.most_common(1))
        return "error" if is_error else by_address


def build_shop(events: Iterable[Event], mapping: EventMapping) -> Shop:
    """Builds a shop from the events of all sessions, without `controls` and `acted_on`."""
    pages: defaultdict[str, _PageFacts] = defaultdict(_PageFacts)
    for event in events:
        pages[event.path].add(event)
    anywhere = pages.pop("", _PageFacts())  # of events without an address
    has_lists = any(page.lists for page in (anywhere, *pages.values()))
    clicks = {path: page.clicks for path, page in pages.items() if page.clicks and not page.lists}
    if not has_lists and anywhere.clicks:
        clicks[""] = anywhere.clicks
    kinds = {path: mapping.pages.get(path) or page.kind(path) for path, page in pages.items()}
    linked = {path: page.titles for path, page in pages.items() if page.titles and kinds[path] in ("page", "listing")}
    titles = {path: texts.most_common(1)[0][0] or remove_from_url(path) for path, texts in linked.items()}
    addresses: dict[str, str] = {}  # by title, because a page may have several addresses
    for path in sorted(titles, key=lambda path: -linked[path].total()):
        if len(addresses) < mapping.menu_links or titles[path] in addresses:
            addresses.setdefault(titles[path], path)
    names = build_names("menu", tuple((path, titles[path]) for path in sorted(addresses.values())))
    return Shop(
        menu={name: titles[path] for path, name in names.items()},
        menu_names={path: names[addresses[title]] for path, title in titles.items() if title in addresses},
        # Products are left out, because they are many and their own events show the kind.
        kinds={path: kind for path, kind in kinds.items() if kind != kind_by_address(path) and kind != "product"},
        catalogue={path: _most_clicked(offers, mapping.min_clicks) for path, offers in clicks.items()},
        has_lists=has_lists,
        promotions={path: tuple(page.promotions) for path, page in pages.items() if page.promotions},
        has_quickview=any("quickview" in mapping.kinds_of(word) for word in mapping.types),
        search_words=frozenset(word for word in mapping.types if "search" in mapping.kinds_of(word)),
        loads=("page",) if any(page.loads for page in pages.values()) else LISTS,
    )


@lru_cache(10_000)
def kind_by_address(path: str) -> View:
    """Returns the kind of a page by its address alone; "page" if the address does not show it.

    >>> kind_by_address("https://shop.example/Cart.html?x=1"), kind_by_address("/checkout/order-received/17")
    ('cart', 'thank_you')
    >>> kind_by_address("/c/thank-you-cards")
    'page'
    """
    end = re.sub(r"[?#].*|\.\w{2,5}(?=[?#]|$)|/(?=[?#]|$)", "", path.lower().partition("://")[2] or path.lower())
    return next((kind for kind in _RECOGNIZED if re.search(_ADDRESSES[kind], end)), "page")


def _most_clicked(offers: Counter[Offer], min_clicks: int) -> tuple[Offer, ...]:
    """Returns the offers with enough clicks, sorted by position, each in its most frequent form."""
    by_id: dict[str, Offer] = {}
    totals: Counter[str] = Counter()
    for offer, count in offers.most_common():
        by_id.setdefault(offer.id, offer)
        totals[offer.id] += count
    frequent = [offer for offer in by_id.values() if totals[offer.id] >= min_clicks]
    return tuple(sorted(frequent, key=lambda offer: (offer.position or 0, offer.id)))


@lru_cache(64)
def name_offers(prefix: str, offers: tuple[Offer, ...]) -> dict[str, str]:
    """Returns the name of each offer by its id."""
    return build_names(prefix, tuple((offer.id, offer.name) for offer in offers))


@lru_cache(64)
def build_names(prefix: str, texts: tuple[tuple[str, str], ...]) -> dict[str, str]:
    """Returns a unique name for each key, made from its text.

    Args:
        prefix: The first part of all names.
        texts: Pairs of a key and a text.

    >>> build_names("menu", (("/a", "Apparel"), ("/b", "Apparel")))
    {'/a': 'menu.apparel', '/b': 'menu.apparel_2'}
    """
    names: dict[str, str] = {}
    taken: set[str] = set()
    numbers: Counter[str] = Counter()
    for key, text in texts:
        base = name = f"{prefix}.{slug(text) or slug(key) or 'item'}"
        while name in taken:
            numbers[base] += 1
            name = f"{base}_{numbers[base] + 1}"
        taken.add(name)
        names.setdefault(key, name)
    return names
