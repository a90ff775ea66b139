"""Renders the pages of a log without pages: the content of a page, the names of its elements, and its HTML.

A `Screen` is the content of a page; visits.py infers from it how a shopper came from one page to the next. The HTML
comes from the templates in layout.toml.
"""

from functools import lru_cache
from html import escape
from importlib.resources import files

import msgspec

from replay_sessions.foundation.records import Record
from replay_sessions.importers.events.mapping import Offer, View
from replay_sessions.importers.events.shop import Shop, build_names, name_offers
from replay_sessions.importers.logged_pages import NamedPage, Pages
from replay_sessions.importers.sources.row_tables import Row
from replay_sessions.private_data import remove_from_url
from replay_sessions.simplify import SimplifiedPage

SEARCH_INPUT = "search_input"
SEARCH_BUTTON = "search_button"
CART_LINK = "nav_bar.cart"
ADD_TO_CART = "product.add_to_cart"
CHECKOUT = "cart.checkout"
CONTINUE = "checkout.continue"


class Screen(Record):
    """The content of a page, as far as the log has it.

    Attributes:
        kind: The kind of the page.
        path: The address or key of the page; "" if the log has none.
        title: The title of the page.
        query: The search query; None if there is none.
        offers: The offers in the page's list, in order.
        detail: The product that the page is about, or that is open over the list.
        cart: The offers in the cart.
        links: The texts of links that are not in the menu, such as promotions.
    """

    kind: View
    path: str
    title: str
    query: str | None = None
    offers: tuple[Offer, ...] = ()
    detail: Offer | None = None
    cart: tuple[Offer, ...] = ()
    links: tuple[str, ...] = ()

    @property
    def offer_names(self) -> dict[str, str]:
        """The name of each offer in the list by its id, without the action (`.view_product`)."""
        return name_offers("results", self.offers)

    @property
    def cart_names(self) -> dict[str, str]:
        """The name of each offer in the cart by its id, without the action (`.remove`)."""
        return name_offers("cart", self.cart)

    @property
    def is_of_cart(self) -> bool:
        return self.kind in ("cart", "checkout")

    @property
    def link_names(self) -> dict[str, str]:
        return build_names("promotions", tuple((text, text) for text in self.links))


def product_screen(item: Offer, path: str) -> Screen:
    return Screen(kind="product", path=path, title=item.name, detail=item)


class RenderedPages(Pages):
    """Pages rendered from screens; `page` of a row is a Screen, and `name` is the element that was acted on."""

    removes_private_data = False

    def __init__(self, shop: Shop) -> None:
        self._shop = shop
        self._has_search = any(control == "search" for _, control in shop.controls)
        self._page = lru_cache(_CACHED_PAGES)(lambda screen: NamedPage(SimplifiedPage(self._write(screen))))

    def page(self, row: Row) -> NamedPage:
        return self._page(row["page"])

    def _write(self, screen: Screen) -> str:
        links = [*self._shop.menu.items(), *((name, text) for text, name in screen.link_names.items())]
        menu = "".join(_fill("link", name=name, text=text) for name, text in links)
        offer_names, cart_names = (
            screen.offer_names,
            screen.cart_names,
        )  # taken once, because each lookup hashes all offers
        offers = "".join(self._offer("offer", offer, screen, offer_names[offer.id]) for offer in screen.offers)
        cart = screen.cart if screen.is_of_cart or (screen.kind, "mini_cart") in self._shop.controls else ()
        main = _fill(
            screen.kind if screen.is_of_cart else "other",
            detail=self._offer("detail", screen.detail, screen) if screen.detail else "",
            rows="".join(self._offer("cart_row", offer, screen, cart_names[offer.id]) for offer in cart),
        )
        return _fill(
            "page",
            title=screen.title or remove_from_url(screen.path),
            query=screen.query or "",
            search=_fill("button", name=SEARCH_BUTTON, text="Search") if self._has_search else "",
            menu=_fill("menu", links=menu) if menu else "",
            cart_count=str(len(screen.cart)),
            main=main,
            offers=_fill("offers", items=offers) if offers or not screen.is_of_cart else "",
            buttons=self._buttons(screen.kind),
        )

    def _buttons(self, kind: View) -> str:
        """Returns the buttons of every page of a kind that logged actions need (`Shop.controls`)."""
        names = {
            "add_to_cart": ("other.add_to_cart", "Add another product to the cart"),
            "remove_from_cart": ("other.remove_from_cart", "Remove from the cart"),
            "checkout": (f"{kind}.checkout", "Checkout"),
            "place_order": (f"{kind}.place_order", "Place order"),
        }
        controls = (names[control] for control in names if (kind, control) in self._shop.controls)
        return "".join(_fill("button", name=name, text=text) for name, text in controls)

    def _offer(self, template: str, offer: Offer, screen: Screen, name: str = "") -> str:
        price = _fill("price", text=offer.price) if offer.price else ""
        facts = price + "".join(_fill("fact", text=text) for text in offer.details)
        quickview = _fill("button", name=f"{name}.quickview", text="Quick view") if self._shop.has_quickview else ""
        is_sold = (screen.kind, "offer.add_to_cart") in self._shop.controls
        add = _fill("button", name=f"{name}.add_to_cart", text="Add to cart") if is_sold else ""
        return _fill(template, name=name, text=offer.name, facts=facts, buttons=quickview + add)


_CACHED_PAGES = 512
_TEMPLATES: dict[str, str] = msgspec.toml.decode((files(__package__) / "layout.toml").read_bytes())
_PARTS = "search menu links main detail offers items rows facts buttons"
_HTML = frozenset(_PARTS.split())


def _fill(template: str, **values: str) -> str:
    """Fills a template with values; those in `_HTML` are HTML, all others are escaped."""
    return _TEMPLATES[template].format(
        **{name: value if name in _HTML else escape(value) for name, value in values.items()}
    )
