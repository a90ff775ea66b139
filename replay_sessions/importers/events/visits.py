"""Converts the events of a session to rows of actions, each with the screen of its page.

    page view  shows a screen. If no action led to it, the shopper came by an element of the screen before: the search
               field, a link of the menu, an offer, the cart, the checkout. That action is inferred, and its step is
               marked so. If no element leads to the page, the navigation is left out and counted.
    action     is done on the current screen. If the screen lacks the element for an action of the cart, a checkout or a
               purchase, every page of this kind gets it (`Shop.controls`), used or not. An action at the address of an
               earlier page goes back to that page, such as another tab. A click there is inferred, because the page is
               shown only because of it; an action of the cart is not, or each cart of a second tab would go unscored.

Within a session each address keeps its product, lists, title and promotions. A view that loads the page replaces the
lists that it names; any other view adds to them.

A purchase ends a session, and later events begin another. Any other session ends with a terminate action. It is
inferred if the page of the last click was not logged, or if the log has no action on pages of this kind. In the second
case all other actions there are inferred, so the page alone would reveal the end. The page that confirms an order is
not shown, because the purchase was done on the page before.
"""

from collections import Counter
from collections.abc import Iterable
from typing import TypeVar

from msgspec.structs import replace

from replay_sessions.importers.events.mapping import LISTS, VIEWS, Event, View
from replay_sessions.importers.events.page_views import Entry, PageView, split_page_views
from replay_sessions.importers.events.screens import (
    CART_LINK,
    CHECKOUT,
    CONTINUE,
    SEARCH_BUTTON,
    SEARCH_INPUT,
    Screen,
    product_screen,
)
from replay_sessions.importers.events.shop import Control, Shop
from replay_sessions.importers.events.targets import OTHER, Target, find_on
from replay_sessions.importers.sessions import PURCHASE
from replay_sessions.importers.sources.row_tables import Row

Item = TypeVar("Item")
_TO_CHECKOUT: dict[View, Target] = {"cart": Target(CHECKOUT), "checkout": Target(CONTINUE)}
_NOWHERE = Screen(kind="page", path="", title="")  # the screen before the first page


class Visit:
    """A visit, which reads the events of a session and collects rows of actions.

    Args:
        shop: The shop.
        about: The columns of all rows: the ids of session and user.
        order_ids: The ids of the user's earlier orders; orders of this visit are added.

    Attributes:
        sessions: The rows of each finished session.
        controls: Pairs of a page kind and an element that actions on such pages need.
        acted_on: Kinds of pages on which the log has actions.
        actions: The number of events, by kind and by whether they became actions.
    """

    def __init__(self, shop: Shop, about: Row, order_ids: set[str | None]) -> None:
        self.sessions: list[list[Row]] = []
        self.controls: set[tuple[View, Control]] = set()
        self.acted_on: set[View] = set()
        self.actions: Counter[tuple[str | None, bool]] = Counter()
        self._shop = shop
        self._about = about
        self._entry: Entry
        self._order_ids = order_ids
        self._begin()

    def _begin(self) -> None:
        self._rows: list[Row] = []
        self._screen = _NOWHERE
        self._address = ""  # of the current page, also if another page opened over it
        self._seen: dict[str, Screen] = {}  # by address
        self._leading: Event | None = None  # the last action that leads to a page, until the page is shown
        self._order: Entry | None = None  # the purchase that ended the session

    def read(self, entries: Iterable[Entry]) -> None:
        """Reads all events of the session, which are in the order of time."""
        for page_view in split_page_views(entries, self._shop):
            self._entry = page_view.entries[0]
            if self._order and not self._is_of_order(page_view, self._order):
                self._begin()
            if page_view.is_background:
                screen = self._read_screen(page_view)
                self._seen[screen.path] = screen
                continue
            if page_view.views and not self._order:
                self._show(page_view)
            for self._entry in page_view.entries:
                if not self._entry.is_view:
                    self._act(self._entry.event)
        if not self._order:
            self._end()

    def _show(self, page_view: PageView) -> None:
        """Shows the page of a page view and infers how the shopper came there."""
        kind, before = page_view.kind, self._screen
        is_confirmation = kind == "thank_you" or (kind in ("page", "error") and before is not _NOWHERE)
        if PURCHASE in page_view.kinds and is_confirmation:
            return
        screen = self._read_screen(page_view)
        if not self._search(page_view, screen) and not self._leading and before is not _NOWHERE:
            self._navigate(page_view.views[0], screen)
        self._screen = self._seen[screen.path] = screen
        self._address = page_view.address
        self._leading = None

    def _read_screen(self, page_view: PageView) -> Screen:
        """Returns the screen of a page view, with what the visit has seen at its address before."""
        kind, address, detail, views = page_view.kind, page_view.address, page_view.product, page_view.views
        seen = self._seen.get(address, _NOWHERE)
        path = kind if page_view.is_over_page else address or kind
        is_load = any(map(self._shop.is_load, views))
        leading = None if page_view.is_background else self._leading
        if kind == "page" and leading and leading.item:  # the page of the clicked product
            kind, detail = "product", leading.item
        elif detail and kind == "product":
            is_other = seen.detail is not None and seen.detail.id != detail.id
            path = f"product/{detail.id}" if page_view.is_opened or is_other or not address else address
        elif seen.detail and kind in ("page", "listing") and (page_view.own_kind == "page" or not is_load):
            kind, detail = "product", seen.detail
        query = next((event.query for event in views if event.query), None if is_load else seen.query)
        if path != address or query not in (None, seen.query):
            seen = self._seen.get(path, _NOWHERE) if kind == "product" and address else _NOWHERE
        offers = seen.offers
        if page_view.offers:
            offers = tuple(_merged({offer.id: offer for offer in offers}, page_view.offers, is_load).values())
        has_own_list = path == address or (not address and kind in ("page", *LISTS))
        catalogue = self._shop.catalogue.get(address) or self._shop.catalogue.get("", ())
        links, promotions = seen.links, self._shop.promotions.get(address, ())
        if shown := [link for event in views for link in event.links]:
            links = tuple(_merged(dict.fromkeys(links), dict.fromkeys(shown), is_load))
        if promotions:
            links = tuple(dict.fromkeys([*links, *promotions]))
        in_cart = (event.offers for event in views if event.kind in ("cart", "checkout") and event.offers)
        return Screen(
            kind=kind,
            path=path,
            title=next((event.title for event in views if event.title), seen.title or (detail.name if detail else "")),
            query=query,
            offers=offers or (catalogue if has_own_list else ()),
            detail=detail,
            cart=next(in_cart, self._screen.cart),
            links=links,
        )

    def _search(self, page_view: PageView, after: Screen) -> bool:
        """Adds the search that led to a page, and returns whether it did.

        A page of results, or with a query, follows a search. If it was shown before with the same query, the shopper
        may have gone back to it: then the search is inferred if the log calls it one, and else none is added. Nor is
        one if another action led to the page, or if the page before had the same query.
        """
        before, seen = self._screen, self._seen.get(after.path)
        is_logged = any(event.word in self._shop.search_words for event in page_view.views)
        is_page = "search" in page_view.kinds or after.query is not None
        is_again = seen is not None and seen.query == after.query
        if not is_page or (is_again and not is_logged):
            return False
        self.actions["search", self._leading is None] += 1
        is_same = after.query == before.query and (after.query is not None or after.path == before.path)
        if self._leading or is_same:
            return False
        if after.query is None:
            self._click(page_view.views[0], Target(SEARCH_BUTTON, "search"))
        else:
            columns = {"text": after.query, "is_inferred": is_again}
            self._add(page_view.views[0], "type_and_submit", SEARCH_INPUT, **columns)
        return True

    def _navigate(self, event: Event, after: Screen) -> None:
        """Adds an inferred click from the current page to the next; if no element leads there, leaves the event out."""
        before = self._screen
        is_same_page = (after.path, after.query) == (before.path, before.query)
        if is_same_page or before.path == after.kind or (before.path == "search" and after.kind in ("page", *LISTS)):
            return  # the page was shown already, or had opened over another page
        link = self._shop.menu_names.get(after.path)
        target = Target(link) if link else None
        if after.kind == "cart":
            target = Target(CART_LINK)
        elif after.kind == "checkout":
            target = _TO_CHECKOUT.get(before.kind, Target(f"{before.kind}.checkout", "checkout"))
        elif after.detail and (offer := before.offer_names.get(after.detail.id)):
            target = Target(f"{offer}.view_product")
        if target:
            self._click(event, target, is_inferred=True)
        else:
            self._leave_out(event, "came from a page without a link to it")

    def _act(self, event: Event) -> None:
        if event.kind is None or (self._order and event.kind != PURCHASE):
            self._leave_out(event)
        elif event.kind in VIEWS:
            self._open_over_list(event)
        elif event.kind == PURCHASE:
            self._buy(event)
        elif self._rows and self._rows[-1].get("is_inferred") and _is_done(self._rows[-1], event):
            self._rows[-1]["is_inferred"] = False  # the log has the page before the click that led to it
            self.acted_on.add(self._rows[-1]["page"].kind)
            self.actions[event.kind, True] += 1
        else:
            if self._screen is _NOWHERE:
                self._screen, self._address = self._first_screen(event), event.path
            self._act_on_page(event)

    def _act_on_page(self, event: Event) -> None:
        """Adds an action on the current screen, or on the page seen at the address of the action."""
        target = find_on(self._screen, event)
        earlier = self._earlier_screen(event, target)
        if earlier:
            target = find_on(earlier, event)
        self.actions[event.kind, target is not None] += 1
        if target is None:
            self._leave_out(event, "not on its page")
            return
        if earlier:
            self._add(event, None, event="back to an open page" if event.kind in OTHER else "back to an earlier page")
            self._screen, self._address = earlier, earlier.path
        self._click(event, target, is_inferred=earlier is not None and event.kind not in OTHER)
        self._change(event)

    def _earlier_screen(self, event: Event, target: Target | None) -> Screen | None:
        """Returns the page seen at the address of an action, if it has the element and the current page is another.

        Without an address it is the last page that has the element; for a product that is added to the cart without an
        address that was seen, the last page of this product.

        Args:
            target: The element of the current page that the action may have been done on.
        """
        has_address, is_here, is_add = self._entry.has_address, event.path == self._address, event.kind == "add_to_cart"
        is_seen = has_address and event.path in self._seen
        others = (None, *OTHER.values())
        if (target not in others and (is_here or not is_seen)) or (has_address and not is_seen and not is_add):
            return None
        for screen in [self._seen[event.path]] if is_seen else reversed(self._seen.values()):
            earlier = replace(screen, cart=self._screen.cart)
            is_of_product = screen.detail is not None and event.item is not None and screen.detail.id == event.item.id
            if find_on(earlier, event) not in others and (is_seen or is_of_product or not is_add):
                return None if earlier.path == self._screen.path else earlier
        return None

    def _open_over_list(self, event: Event) -> None:
        """Shows a product over the list; if no action opened it, adds an inferred click on its quick view."""
        name = self._screen.offer_names.get(event.item.id) if event.item else None
        if name and self._screen.detail != event.item:
            self._add(event, "click", f"{name}.quickview", is_inferred=True)
        self._screen = replace(self._screen, detail=event.item or self._screen.detail)

    def _first_screen(self, event: Event) -> Screen:
        """Returns the page of a session that begins with an action; `_NOWHERE` if the action needs a logged page."""
        kind = self._shop.kind_of(event.path)
        if event.kind == "remove_from_cart":
            return Screen(kind="cart", path="cart", title="", cart=event.offers)
        if event.kind == PURCHASE and (kind in ("cart", "checkout", "thank_you") or not event.item):
            return Screen(kind="checkout", path="checkout", title="", cart=event.offers)
        if event.item and event.kind in ("add_to_cart", PURCHASE):
            return product_screen(event.item, event.path)
        return _NOWHERE

    def _change(self, event: Event) -> None:
        """Changes the screen by the effect of an action, before the next page is shown."""
        screen, item = self._screen, event.item or self._screen.detail
        remaining = tuple(offer for offer in screen.cart if not item or offer.id != item.id)
        match event.kind:
            case "select_item" | "follow_link":
                self._leading = event
            case "quickview":
                self._screen = replace(screen, detail=item)
            case "add_to_cart":
                self._screen = replace(screen, cart=(*remaining, item) if item else remaining)
            case "remove_from_cart":
                self._screen = replace(screen, cart=remaining)

    def _buy(self, event: Event) -> None:
        if event.order_id in self._order_ids or (self._order and _is_same_order(self._entry, self._order)):
            self._leave_out(event, "of the same order")
            return
        self.actions[PURCHASE, True] += 1
        if self._order:
            self._begin()
        if self._screen is _NOWHERE:
            self._screen = self._first_screen(event)
        kind = self._screen.kind
        self._click(event, Target(f"{kind}.place_order", None if kind == "checkout" else "place_order"))
        self._order = self._entry
        self._order_ids |= {event.order_id} - {None}
        self.sessions.append(self._rows)

    def _is_of_order(self, page_view: PageView, order: Entry) -> bool:
        """Returns whether all events of a page belong to the order, as its confirmation or as its further items."""
        is_its_page = page_view.kind == "thank_you" or page_view.address == order.event.path
        expected = {None, PURCHASE, "page", "listing", "thank_you"} if is_its_page else {None, PURCHASE}
        return page_view.kinds <= expected and all(
            entry.event.order_id in self._order_ids or _is_same_order(entry, order)
            for entry in page_view.entries
            if entry.event.kind == PURCHASE
        )

    def _end(self) -> None:
        """Ends a session without a purchase by a terminate action."""
        event, leading = self._entry.event, self._leading
        if leading and leading.item:  # the page of the last click was not logged
            screen = product_screen(leading.item, f"product/{leading.item.id}")
            self._screen = replace(screen, cart=self._screen.cart)
        if self._screen is not _NOWHERE:
            is_inferred = leading is not None or self._screen.kind not in self._shop.acted_on
            self._add(event, "terminate", is_inferred=is_inferred)
        self.sessions.append(self._rows)

    def _click(self, event: Event, target: Target, *, is_inferred: bool = False) -> None:
        if target.control:
            self.controls.add((self._screen.kind, target.control))
        self._add(event, PURCHASE if event.kind == PURCHASE else "click", target.name, is_inferred=is_inferred)

    def _leave_out(self, event: Event, why: str = "") -> None:
        self._add(event, None, event=f"{event.word} {why}".strip())

    def _add(self, event: Event, action: str | None, name: str | None = None, /, **columns: object) -> None:
        if action not in (None, "terminate") and not columns.get("is_inferred"):
            self.acted_on.add(self._screen.kind)
        row = {
            **self._about,
            "row": self._entry.location,
            "type": action,
            "event": event.word,
            "page": self._screen,
            "name": name,
            "timestamp": self._entry.timestamp,
            "url": self._screen.path,
        }
        self._rows.append(row | columns)


def _merged(before: dict[str, Item], added: dict[str, Item], is_load: bool) -> dict[str, Item]:
    """Returns what a page holds after further views of it; a load replaces what it names anew."""
    return added if is_load and added else {**before, **added}


def _is_done(row: Row, event: Event) -> bool:
    """Returns whether an event is the action of a row, on the same element."""
    target = find_on(row["page"], event)
    return target is not None and target.name == row["name"]


def _is_same_order(entry: Entry, order: Entry) -> bool:
    """Returns whether two purchases are of the same order, because some logs have an event for each item."""
    event, first = entry.event, order.event
    if event.order_id and first.order_id:
        return event.order_id == first.order_id
    return event.path == first.path or (entry.timestamp is not None and entry.timestamp == order.timestamp)
