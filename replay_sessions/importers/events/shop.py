"""A shop as its log knows it, counted over all events: what its pages are, its menu, and what it has to click on."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable
from functools import lru_cache
from importlib.resources import files
from typing import Literal

import msgspec

from replay_sessions.foundation.records import Record
from replay_sessions.importers.events.mapping import LISTS, Event, EventMapping, Kind, Offer, View
from replay_sessions.private_data import remove_from_url
from replay_sessions.simplify.names import slug

# What a page of a kind has because a logged action on one needs it: a button in each offer that puts it into the cart,
# one that puts something else into it or takes something out, one that leads to the checkout, one that orders, one that
# searches for words that the log does not know.
Control = Literal["offer.add_to_cart", "add_to_cart", "remove_from_cart", "checkout", "place_order", "search"]
_ADDRESSES: dict[str, str] = msgspec.toml.decode((files(__package__) / "addresses.toml").read_bytes())
_RECOGNIZED: tuple[View, ...] = ("thank_you", "checkout", "cart", "error")  # the first that fits


class Shop(Record):
    """The parts that all pages of a shop have in common.

    Attributes:
        menu: Names of the links that every page has -> their titles.
        menu_names: Address -> name of the menu's link to it, or to a page of the same title.
        kinds: Address -> what its page is, where the events say otherwise than the address.
        catalogue: Address -> what a page offers, where the events themselves do not list it.
        promotions: Address -> the texts of the links that were followed there.
        has_quickview: Each offer has a button that opens it over the list.
        search_words: The log's words for searches.
        controls: Page kinds and what each page of that kind has.
        acted_on: Page kinds on which the log holds actions.
    """

    menu: dict[str, str]
    menu_names: dict[str, str]
    kinds: dict[str, View]
    catalogue: dict[str, tuple[Offer, ...]]
    promotions: dict[str, tuple[str, ...]]
    has_quickview: bool
    search_words: frozenset[str]
    controls: frozenset[tuple[View, Control]] = frozenset()
    acted_on: frozenset[View] = frozenset()

    def kind_of(self, path: str) -> View:
        """Returns what the page at an address is; "page" where nothing says more."""
        return self.kinds.get(path) or kind_by_address(path)


class _PageFacts:
    """The counts of the events at one address."""

    def __init__(self) -> None:
        self.titles: Counter[str] = Counter()
        self.kinds: Counter[Kind] = Counter()
        self.clicks: Counter[Offer] = Counter()
        self.promotions: Counter[str] = Counter()
        self.products: set[str] = set()  # no more than two
        self.queries = 0

    def add(self, event: Event) -> None:
        kind = event.kind
        if kind == "page" or kind in LISTS:
            self.titles[event.title] += 1
            self.queries += event.query is not None
        if kind == "product" and event.item and len(self.products) < 2:
            self.products.add(event.item.id)
        if kind == "select_item":
            self.clicks.update(event.offers)
        if kind == "follow_link":
            self.promotions.update(event.links[:1])
        if kind is not None:
            self.kinds["page" if kind == "listing" and not event.offers else kind] += 1

    def kind(self, path: str) -> View:
        kinds = self.kinds
        views = max(kinds["page"], kinds["listing"], kinds["product"])
        by_address = kind_by_address(path)
        if 2 * max(kinds["cart"], kinds["checkout"]) >= max(views, 1):
            if by_address in ("cart", "checkout"):  # the button to the checkout may tell of it on the cart's page
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
    """Counts what the events of all sessions say of the shop's pages."""
    pages: defaultdict[str, _PageFacts] = defaultdict(_PageFacts)
    for event in events:
        if event.path:
            pages[event.path].add(event)
    kinds = {path: mapping.pages.get(path) or page.kind(path) for path, page in pages.items()}
    linked = {path: page.titles for path, page in pages.items() if page.titles and kinds[path] in ("page", "listing")}
    titles = {path: texts.most_common(1)[0][0] or remove_from_url(path) for path, texts in linked.items()}
    first: dict[str, str] = {}  # by title: several addresses may be one page
    for path in sorted(titles, key=lambda path: -linked[path].total()):
        if len(first) < mapping.menu_links or titles[path] in first:
            first.setdefault(titles[path], path)
    names = build_names("menu", tuple((path, titles[path]) for path in sorted(first.values())))
    return Shop(
        menu={name: titles[path] for path, name in names.items()},
        menu_names={path: names[first[title]] for path, title in titles.items() if title in first},
        # Those of products and lists are never asked for, and are many.
        kinds={path: kind for path, kind in kinds.items() if kind != kind_by_address(path) and kind != "product"},
        catalogue={path: _most_clicked(page.clicks, mapping.min_clicks) for path, page in pages.items() if page.clicks}
        if mapping.event.items is None
        else {},
        promotions={path: tuple(page.promotions) for path, page in pages.items() if page.promotions},
        has_quickview=any("quickview" in mapping.kinds_of(word) for word in mapping.types),
        search_words=frozenset(word for word in mapping.types if "search" in mapping.kinds_of(word)),
    )


@lru_cache(10_000)
def kind_by_address(path: str) -> View:
    """
    >>> kind_by_address("https://shop.example/Cart.html?x=1"), kind_by_address("/checkout/order-received/17")
    ('cart', 'thank_you')
    >>> kind_by_address("/c/thank-you-cards")
    'page'
    """
    end = re.sub(r"[?#].*|\.\w{2,5}(?=[?#]|$)|/(?=[?#]|$)", "", path.lower().partition("://")[2] or path.lower())
    return next((kind for kind in _RECOGNIZED if re.search(_ADDRESSES[kind], end)), "page")


def _most_clicked(offers: Counter[Offer], min_clicks: int) -> tuple[Offer, ...]:
    """The offers with enough clicks by their places, each as it was seen most often."""
    by_id: dict[str, Offer] = {}
    totals: Counter[str] = Counter()
    for offer, count in offers.most_common():
        by_id.setdefault(offer.id, offer)
        totals[offer.id] += count
    shown = [offer for offer in by_id.values() if totals[offer.id] >= min_clicks]
    return tuple(sorted(shown, key=lambda offer: (offer.position or 0, offer.id)))


@lru_cache(64)
def name_offers(prefix: str, offers: tuple[Offer, ...]) -> dict[str, str]:
    """Id -> name of each offer."""
    return build_names(prefix, tuple((offer.id, offer.name) for offer in offers))


@lru_cache(64)
def build_names(prefix: str, texts: tuple[tuple[str, str], ...]) -> dict[str, str]:
    """Keys -> names that differ, made of texts.

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
