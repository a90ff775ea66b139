"""Splits the events of a session into page views. The kind of a page follows from all events of its page view.

A page view is a run of events at one address. Events of unlisted types belong to the run around them, whatever their
address. Lists and promotions of an earlier page that stand between two runs at one address come from a page in the
background: they part no run. Within a run another page view begins if a view follows an action that leads away or a
purchase, if another product is viewed, and if the cart, the checkout or results open over the page or close.
"""

from collections.abc import Iterable, Iterator
from itertools import groupby
from operator import attrgetter
from typing import NamedTuple

from msgspec.structs import replace

from replay_sessions.importers.events.mapping import LISTS, VIEWS, Event, Offer, View
from replay_sessions.importers.events.shop import Shop
from replay_sessions.importers.sessions import PURCHASE

LEADING = ("select_item", "follow_link")  # actions that lead to the next page
_STAGES = {"search": 0, "cart": 1, "checkout": 2}  # pages that may open over others


class Entry(NamedTuple):
    """An event with its location in the log and its time.

    Attributes:
        is_over_list: Whether the event opens a product over the list, so that the page stays.
        has_address: Whether the address is the event's, and not that of the event before.
    """

    location: str
    timestamp: str | None
    event: Event
    is_over_list: bool = False
    has_address: bool = True

    @property
    def is_view(self) -> bool:
        return self.event.kind in VIEWS and not self.is_over_list


class PageView:
    """The events of one page.

    Args:
        address: The address of the page; "" if unknown.
        own_kind: The kind of the page at the address. `kind` differs if, for example, a cart opened over the page.
        is_opened: Whether a product was opened at the address of a list.
        is_background: Whether the page is not shown, because its events came while another page was.

    Attributes:
        entries: All events of the page.
        views: The events that are views.
        product: The product that the page is about; None if there is none.
        offers: The offers in the page's lists, by id.
        kinds: The kinds of all events.
    """

    def __init__(self, address: str, own_kind: View, *, is_opened: bool = False, is_background: bool = False) -> None:
        self.address = address
        self.own_kind = own_kind
        self.is_opened = is_opened
        self.is_background = is_background
        self.entries: list[Entry] = []
        self.views: list[Event] = []
        self.product: Offer | None = None
        self.offers: dict[str, Offer] = {}
        self.kinds: set[str | None] = set()

    def add(self, entry: Entry) -> None:
        event = entry.event
        self.entries.append(entry)
        self.kinds.add(event.kind)
        if entry.is_view:
            self.views.append(event)
            if event.kind == "product":
                self.product = self.product or event.item
            if event.kind in LISTS:
                self.offers.update((offer.id, offer) for offer in event.offers)

    @property
    def kind(self) -> View:
        kinds, own_kind = self.kinds, self.own_kind
        if "checkout" in kinds or own_kind == "checkout":
            return "checkout"
        if "cart" in kinds or own_kind == "cart":
            return "cart"
        if "search" in kinds:
            return "search"
        if "product" in kinds and any(event.kind == "product" for event in self.views):
            return "product"
        return "listing" if self.offers or (own_kind == "page" and "listing" in kinds) else own_kind

    @property
    def is_over_page(self) -> bool:
        """True if the cart, the checkout or results opened over another page."""
        return self.kind in _STAGES and self.kind != self.own_kind


def split_page_views(entries: Iterable[Entry], shop: Shop) -> Iterator[PageView]:
    """Yields the page views of a session. A page view without views has actions on the page shown before."""
    for run, is_background in _runs(entries, shop):
        if not run[0].is_view:  # a log may hold an action before the view of its page
            number = next((number for number, entry in enumerate(run) if entry.is_view), 0)
            run.insert(0, run.pop(number))
        address = run[0].event.path
        page_view = PageView(address, shop.kind_of(address), is_background=is_background)
        for entry in run:
            if page_view.entries and _is_another(page_view, entry):
                yield page_view
                is_opened = entry.event.kind == "product"
                page_view = PageView(address, page_view.own_kind, is_opened=is_opened)
            page_view.add(entry)
        yield page_view


def _runs(entries: Iterable[Entry], shop: Shop) -> list[tuple[list[Entry], bool]]:
    """Returns the runs of events at one address, each with whether it is of a page in the background."""
    runs: list[tuple[list[Entry], bool]] = []
    addresses: set[str] = set()
    for address, group in groupby(_addressed(entries, shop), key=attrgetter("event.path")):
        run = list(group)
        if len(runs) > 1 and runs[-2][0][0].event.path == address and _is_background(runs[-1][0], addresses, shop):
            background, (before, _) = runs.pop()[0], runs.pop()
            runs += [(background, True), (before + run, False)]
        else:
            addresses |= {runs[-1][0][0].event.path} if runs else set()
            runs.append((run, False))
    return runs


def _is_background(run: list[Entry], addresses: set[str], shop: Shop) -> bool:
    """Returns whether a run holds nothing but lists and promotions of a page with one of these addresses."""
    is_seen = run[0].event.path in addresses
    return is_seen and all(entry.event.kind in ("page", "listing") and not shop.is_load(entry.event) for entry in run)


def _addressed(entries: Iterable[Entry], shop: Shop) -> Iterator[Entry]:
    """Yields the entries, each with an address.

    An event without an address, of an unlisted type, or that opens a product over a list, gets the address before.
    """
    address, before = "", None
    for entry in entries:
        event = entry.event
        is_below = bool(address) and event.path.startswith(f"{address}/")
        is_over_list = shop.has_quickview and event.kind == "product" and (is_below or before == "quickview")
        has_address = bool(event.path)
        if not event.path or event.kind is None or is_over_list:
            event = replace(event, path=address)
        address, before = event.path, event.kind or before
        yield Entry(entry.location, entry.timestamp, event, is_over_list, has_address)


def _is_another(page_view: PageView, entry: Entry) -> bool:
    """Returns whether an event at the same address begins another page view."""
    event, before, own_kind = entry.event, page_view.kind, page_view.own_kind
    kind = event.kind
    if PURCHASE in page_view.kinds and kind not in (None, PURCHASE):
        return True
    if not entry.is_view or not page_view.views:
        return False
    if not page_view.kinds.isdisjoint(LEADING):
        return True
    if kind in _STAGES:
        return _STAGES[kind] > max(_STAGES.get(page_kind, -1) for page_kind in (before, own_kind))
    if page_view.is_over_page or (page_view.is_opened and kind in LISTS):
        return True
    if not page_view.address and kind != "page" and before not in ("page", kind):
        return True  # without addresses, only kinds distinguish pages
    if kind != "product" or event.item is None:
        return False
    product, item = page_view.product, event.item
    return product.id != item.id if product else own_kind in LISTS and item.id in page_view.offers
