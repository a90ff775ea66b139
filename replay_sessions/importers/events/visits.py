"""The events of a session -> rows of actions, each with the screen that it was done on.

    view     shows a screen. If no action led to it, the shopper came by an element of the screen before: the search
             field, a link of the menu, an offer, the cart, the checkout. That action is inferred: its step says so.
             Where no element leads there, the navigation is left out and counted.
    action   acts on an element of the screen; where the screen does not have it, it is left out and counted

A session that ends on a known screen, without a purchase, ends in a terminate.
"""

from collections.abc import Iterable

from msgspec.structs import replace

from replay_sessions.importers.events.mapping import VIEWS, Event
from replay_sessions.importers.events.screens import (
    ADD_TO_CART,
    CART_LINK,
    CHECKOUT,
    CONTINUE,
    PLACE_ORDER,
    SEARCH_INPUT,
    Screen,
    Shop,
)
from replay_sessions.importers.sessions import PURCHASE
from replay_sessions.importers.sources.row_tables import Row

_NOWHERE = Screen(kind="page", path="", title="")  # before the first page


class Visit:
    """One session as it is read; `rows` are its rows so far.

    Args:
        about: What all rows have: the ids of session and user.
    """

    def __init__(self, shop: Shop, about: Row) -> None:
        self.rows: list[Row] = []
        self._shop = shop
        self._about = about
        self._screen = _NOWHERE
        self._seen: dict[str, Screen] = {}  # by address: a browser goes back to them without an event
        self._location = ""
        self._timestamp: str | None = None
        self._leading: Event | None = None  # an action whose page was not shown yet

    def read(self, events: Iterable[tuple[str, str | None, Event]]) -> list[Row]:
        """The rows of all events of the session, in the order of time, each with where it stands in the log and when
        it was."""
        is_over = False
        for self._location, self._timestamp, event in events:
            if is_over:
                self._leave_out(event, "")  # counted as what comes after the purchase (importers/sessions.py)
                continue
            (self._show if event.kind in VIEWS else self._act)(event)
            is_over = event.kind == PURCHASE and self.rows[-1]["type"] == PURCHASE
        if not is_over and self._screen is not _NOWHERE and self._leading is None:
            self._add(event, "terminate")
        return self.rows

    def _go_back(self, event: Event, path: str) -> None:
        """Shows a page again where an event was on another page than the one that was shown last."""
        former = self._seen.get(path)
        if former and path != self._screen.path:
            self._add(event, None, kind=None, event="back to an earlier page")
            self._screen, self._leading = replace(former, cart=self._screen.cart), None

    def _show(self, event: Event) -> None:
        if event.kind == "product":
            self._go_back(event, event.path.rpartition("/")[0])
        before, leading, self._leading = self._screen, self._leading, None
        after = self._product(event) if event.kind == "product" else self._page(event, leading)
        if before is not _NOWHERE and not leading:
            if (after.path, after.query) == (before.path, before.query):
                self._screen = _merge(before, after)
                return
            self._infer(event, before, after)
        self._screen = self._seen[after.path] = after

    def _product(self, event: Event) -> Screen:
        before, path, title = self._screen, event.path, event.title
        detail = next(iter(event.offers), None)
        if before.offers and path.startswith(f"{before.path}/"):  # open over the list
            return replace(before, detail=detail)
        if detail:
            is_list = before.offers and path == before.path  # the log calls it by the page where it was clicked
            path = f"product/{detail.id}" if is_list or not path else path
            title = title or detail.name
        return Screen(kind="product", path=path, title=title, detail=detail, cart=before.cart)

    def _page(self, event: Event, leading: Event | None) -> Screen:
        """Any other page.

        Args:
            leading: The action that led there.
        """
        offers = event.offers or self._shop.catalogue.get(event.path, ())
        opened = leading.offers if leading and leading.kind == "select_item" else ()
        return Screen(
            kind=event.kind,  # type: ignore[arg-type]  # a view
            path=event.path, title=event.title, query=event.query, cart=self._screen.cart, links=event.links,
            offers=tuple({offer.id: offer for offer in offers}.values()) if event.kind == "listing" else (),
            detail=next(iter(opened), None) if event.kind in ("page", "listing") else None,
        )  # fmt: skip

    def _infer(self, event: Event, before: Screen, after: Screen) -> None:
        """Infers how the shopper came from a page to the next one without an action in the log."""
        if after.query and after.query != before.query:
            self._add(event, "type_and_submit", SEARCH_INPUT, text=after.query)
            return
        name = self._shop.menu_names.get(after.path)
        if after.kind == "cart":
            name = CART_LINK
        elif after.kind == "checkout":
            name = {"cart": CHECKOUT, "checkout": CONTINUE}.get(before.kind)
        elif after.detail and (offer := before.offer_names.get(after.detail.id)):
            is_over_list = after.offers == before.offers and self._shop.has_quickview
            name = f"{offer}.quickview" if is_over_list else f"{offer}.view_product"
        if name:
            self._add(event, "click", name, is_inferred=True)
        else:
            self._leave_out(event, "came from a page without a link to it")

    def _act(self, event: Event) -> None:
        self._go_back(event, event.path)
        screen = self._screen
        name = _name_on(screen, event)
        if name is None:
            self._leave_out(event, "not on its page" if event.kind else "")
            return
        last = self.rows[-1] if self.rows else {}
        if last.get("is_inferred") and last["name"] == name:
            last["is_inferred"] = False  # the log has the page before the click that led to it
            return
        self._add(event, PURCHASE if event.kind == "purchase" else "click", name)
        item = event.offers[:1]
        rest = tuple(offer for offer in screen.cart if offer.id not in [other.id for other in item])
        match event.kind:
            case "select_item" | "follow_link":  # the next page follows from them
                self._leading = event
            case "quickview":
                self._screen = replace(screen, detail=item[0])
            case "add_to_cart":
                self._screen = replace(screen, cart=(*rest, *item))
            case "remove_from_cart":
                self._screen = replace(screen, cart=rest)

    def _leave_out(self, event: Event, why: str) -> None:
        self._add(event, None, event=f"{event.word} {why}".strip())

    def _add(self, event: Event, action: str | None, name: str | None = None, /, **columns: object) -> None:
        row = {
            **self._about,
            "row": self._location,
            "kind": event.kind,
            "type": action,
            "event": event.word,
            "page": self._screen,
            "name": name,
            "timestamp": self._timestamp,
            "url": self._screen.path,
        }
        self.rows.append(row | columns)


def _name_on(screen: Screen, event: Event) -> str | None:
    """The name of the element of a screen that an action was done on."""
    match event:
        case Event(kind="select_item", offers=(item, *_)) if name := screen.offer_names.get(item.id):
            return f"{name}.view_product"
        case Event(kind="quickview", offers=(item, *_)) if name := screen.offer_names.get(item.id):
            return f"{name}.quickview"
        case Event(kind="remove_from_cart", offers=(item, *_)) if name := screen.cart_names.get(item.id):
            return f"{name}.remove"
        case Event(kind="add_to_cart", offers=(item, *_)) if screen.detail and item.name == screen.detail.name:
            return ADD_TO_CART
        case Event(kind="follow_link", links=(link, *_)):
            return screen.link_names.get(link)
        case Event(kind="purchase") if screen.kind == "checkout":
            return PLACE_ORDER
    return None


def _merge(before: Screen, after: Screen) -> Screen:
    """A page that several events describe: what each of them knows of it."""
    return replace(
        before,
        kind=before.kind if after.kind == "page" else after.kind,
        title=before.title or after.title,
        offers=after.offers or before.offers,
        detail=after.detail or before.detail,
        links=(*dict.fromkeys((*before.links, *after.links)),),
    )
