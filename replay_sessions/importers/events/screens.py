"""Pages of a shop whose log holds none: what was on the screen, the names of its elements, and the page as HTML.

A `Screen` says what a page offers; visits.py infers from it how a shopper came from one page to the next. A `Shop`
knows the menu and writes pages by the templates in layout.toml.
"""

from functools import lru_cache
from html import escape
from importlib.resources import files

import msgspec

from replay_sessions.elements import find_elements
from replay_sessions.foundation.records import Record
from replay_sessions.importers.events.mapping import Offer, View
from replay_sessions.importers.logged_pages import Pages, Target, Unresolved
from replay_sessions.importers.sources.row_tables import Row
from replay_sessions.simplify import SimplifiedPage
from replay_sessions.simplify.names import slug

SEARCH_INPUT = "search_input"
CART_LINK = "nav_bar.cart"
ADD_TO_CART = "product.add_to_cart"
CHECKOUT = "cart.checkout"
CONTINUE = "checkout.continue"
PLACE_ORDER = "checkout.place_order"


class Screen(Record):
    """A page as the log knows it.

    Attributes:
        path: Its address or key; "" where the log has none.
        offers: The list that it shows, in order.
        detail: The product that it is about, or that is open over the list.
        cart: What is in the cart.
        links: The texts of links beside the menu, such as promotions.
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
        """Id -> name of each offer in the list, without what one does with it (`.view_product`)."""
        return name_offers("results", self.offers)

    @property
    def cart_names(self) -> dict[str, str]:
        """Id -> name of what is in the cart, where the page shows it."""
        return name_offers("cart", self.cart if self.kind in ("cart", "checkout") else ())

    @property
    def link_names(self) -> dict[str, str]:
        return build_names("promotions", tuple((text, text) for text in self.links))


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
    for key, text in texts:
        base = name = f"{prefix}.{slug(text) or slug(key) or 'item'}"
        number = 1
        while name in taken:
            number += 1
            name = f"{base}_{number}"
        taken.add(name)
        names.setdefault(key, name)
    return names


class Shop(Record):
    """The parts that all pages of a shop have in common.

    Attributes:
        menu: Address -> title of the pages that every page links to.
        catalogue: Address -> what a page offers, where the events themselves do not list it.
        has_quickview: Each offer has a button that opens it over the list.
    """

    menu: dict[str, str]
    catalogue: dict[str, tuple[Offer, ...]]
    has_quickview: bool

    @property
    def menu_names(self) -> dict[str, str]:
        """Address -> name of each link of the menu."""
        return build_names("menu", tuple(self.menu.items()))

    def write(self, screen: Screen) -> str:
        """The page as simplified HTML."""
        links = [(name, self.menu[path]) for path, name in self.menu_names.items()]
        links += [(name, text) for text, name in screen.link_names.items()]
        cart = screen.cart if screen.cart_names else ()
        main = self._fill(
            "listing" if screen.kind in ("page", "product") else screen.kind,
            detail=self._offer("detail", screen.detail) if screen.detail else "",
            offers="".join(self._offer("offer", offer, screen.offer_names[offer.id]) for offer in screen.offers),
            rows="".join(self._offer("cart_row", offer, screen.cart_names[offer.id]) for offer in cart),
        )
        return self._fill(
            "page",
            title=screen.title or screen.path,
            query=screen.query or "",
            menu="".join(self._fill("link", name=name, text=text) for name, text in links),
            cart_count=str(len(screen.cart)),
            main=main,
        )

    def _offer(self, template: str, offer: Offer, name: str = "") -> str:
        price = self._fill("price", text=offer.price) if offer.price else ""
        facts = price + "".join(self._fill("fact", text=text) for text in offer.details)
        buttons = self._fill("button", name=f"{name}.quickview", text="Quick view") if self.has_quickview else ""
        return self._fill(template, name=name, text=offer.name, facts=facts, buttons=buttons)

    def _fill(self, template: str, **values: str) -> str:
        """A template with values in it: HTML where the template's own parts are meant, else text."""
        return _TEMPLATES[template].format(
            **{name: value if name in _HTML else escape(value) for name, value in values.items()}
        )


_CACHED_PAGES = 512
_TEMPLATES: dict[str, str] = msgspec.toml.decode((files(__package__) / "layout.toml").read_bytes())
_HTML = ("menu", "main", "detail", "offers", "rows", "facts", "buttons")


class RenderedPages(Pages):
    """Pages written from screens; a row's `page` is its screen, its `name` the element that was acted on."""

    removes_private_data = False

    def __init__(self, shop: Shop) -> None:
        self._page = lru_cache(_CACHED_PAGES)(lambda screen: _RenderedPage(shop.write(screen)))

    def page(self, row: Row) -> "_RenderedPage":
        return self._page(row["page"])


class _RenderedPage:
    def __init__(self, html: str) -> None:
        self.page = SimplifiedPage(html)
        self._names = {element.name for element in find_elements(html)}

    def find(self, target: Target, *, typed: bool) -> str:
        name = target.get("name")
        if name not in self._names:
            raise Unresolved(f"the page has no element named {name!r}")
        return name or ""
