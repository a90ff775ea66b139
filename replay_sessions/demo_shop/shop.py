"""Simulates the small demo shop: its pages, and which page follows an action.

    DemoShop(random, wanted) ─► .page ─► shopper acts ─► .respond(action) ─► .page … until .outcome

Pages are in the ShopCART observation format: simplified HTML with hierarchical element names. They hold about ten
elements, and texts do not repeat what the name of an element says. The shop answers any action, even if no simulated
shopper would take it: an action that leads nowhere leaves the page unchanged.
"""

from html import escape
from random import Random
from typing import ClassVar, Literal, assert_never

from replay_sessions.demo_shop.catalogue import DEPARTMENTS, SIZES, Product, draw_other_products
from replay_sessions.schema import Action, Click, Scroll, Terminate, TypeAndSubmit

PageSize = Literal["small", "compact", "realistic"]
MatchNote = Literal["many items", "exact match", "no match"]
PriceNote = Literal["fair price", "high price"]
ReviewNote = Literal["mostly good reviews", "mostly bad reviews"]

SEARCH = '<form role="search"><input name="search_input" type="text" value="{query}"/></form>'


def home_page() -> str:
    """Writes the first page of every session."""
    links = "".join(f'<a name="departments.{department}">{department}</a>' for department in DEPARTMENTS)
    return _page("home", SEARCH.format(query="") + links)


def results_page(query: str, note: MatchNote, products: list[Product], brand: str, style: str) -> str:
    """Writes the search results: how well they match, refinements by brand and style, products, a link to more."""
    refinements = "".join(
        f'<li name="refinements.{kind}.{value}" role="checkbox">{kind}</li>'
        for kind, value in (("brand", brand), ("style", style))
    )
    rows = "".join(f'<a name="search_results.{"_".join(product)}.view_product">view</a>' for product in products)
    body = f'{SEARCH.format(query=escape(query))}<h1>{note}</h1>{refinements}{rows}<a name="pagination.next">next</a>'
    return _page("results", body)


def product_page(product: Product, price: PriceNote, chosen_size: str | None) -> str:
    """Writes the page of one product: price note, sizes, and the links to reviews, cart, purchase and results."""
    body = (
        f"<h1>{' '.join(product)}</h1><p>{price}</p>{size_options(chosen_size)}"
        '<a name="product.reviews">reviews</a><button name="product.add_to_cart">add to cart</button>'
        '<button name="product.buy_now">buy now</button><a name="product.back_to_results">back to results</a>'
    )
    return _page("product", body)


def size_options(chosen_size: str | None) -> str:
    """Writes the sizes of a product; the chosen one is marked."""
    return "".join(
        f'<li name="product.options.size.{size}" role="radio"{chosen}>{size}</li>'
        for size in SIZES
        for chosen in [' aria-checked="true"' if size == chosen_size else ""]
    )


def reviews_page(note: ReviewNote) -> str:
    """Writes the page with the product's reviews."""
    body = (
        f'<h1>{note}</h1><a name="reviews.next">more reviews</a><a name="reviews.back_to_product">back to product</a>'
    )
    return _page("reviews", body)


def cart_page(product: Product) -> str:
    """Writes the cart with one product in it."""
    body = (
        f"<h1>cart</h1><p>{' '.join(product)}</p>"
        '<button name="cart.checkout">checkout</button><button name="cart.remove">remove</button>'
    )
    return _page("cart", body)


def _page(title: str, body: str) -> str:
    return f"<html><head><title>{title}</title></head><body>{body}</body></html>"


PRODUCTS_ON_A_PAGE = 5
# The probability that the results hold the wanted product, by the action before.
MATCH_AFTER_FULL_QUERY = 0.75
MATCH_AFTER_REFINEMENT = 0.65
MATCH_AFTER_OTHER = 0.5
HIGH_PRICE = 0.35
BAD_REVIEWS = 0.3


class Shop:
    """One visit to a shop.

    Attributes:
        search_input: The name of the search field.
        page: The current page, as simplified HTML.
        outcome: None while the visit lasts, then "purchase" or "terminate".
        revenue_cents: Revenue of the purchase, without shipping. None if goods have no price in this shop.
    """

    search_input: ClassVar[str]
    page: str
    outcome: Literal["purchase", "terminate"] | None = None
    revenue_cents: int | None = None

    def respond(self, action: Action) -> None:
        """Applies an action: changes `page`, or sets `outcome` if the action ends the visit."""
        match action:
            case Terminate():
                self.outcome = "terminate"
            case TypeAndSubmit(name=self.search_input, text=text):
                self._search(text)
            case TypeAndSubmit() | Scroll():
                pass
            case Click(name=name):
                self._click(name)
            case _:
                assert_never(action)

    def _search(self, text: str) -> None:
        raise NotImplementedError

    def _click(self, name: str) -> None:
        raise NotImplementedError


class DemoShop(Shop):
    """One visit to the small shop by a shopper who wants one product."""

    search_input = "search_input"

    def __init__(self, random: Random, wanted: Product) -> None:
        self._random = random
        self._wanted = wanted
        self._query = ""
        self._results = ""
        self._opened: Product | None = None
        self._price: PriceNote = "high price" if random.random() < HIGH_PRICE else "fair price"
        self._bad_reviews = random.random() < BAD_REVIEWS
        self.page = home_page()

    def _search(self, text: str) -> None:
        self._query = text
        matches = len({self._wanted.brand, self._wanted.style} & set(text.split()))
        if not matches:
            self._show_results("many items")
        else:
            self._show_results(self._draw(MATCH_AFTER_FULL_QUERY if matches == 2 else MATCH_AFTER_OTHER))

    def _click(self, name: str) -> None:
        head, _, tail = name.partition(".")
        if head == "departments" and tail in DEPARTMENTS:
            self._query = ""
            self._show_results("many items")
        elif head == "refinements":
            self._show_results(self._draw(MATCH_AFTER_REFINEMENT))
        elif name == "pagination.next":
            self._show_results(self._draw(MATCH_AFTER_OTHER))
        elif head in ("search_results", "recommended"):
            self._open(tail.removesuffix(".view_product"))
        elif self._opened is not None:
            self._click_on_product(name, self._opened)

    def _click_on_product(self, name: str, opened: Product) -> None:
        size = name.removeprefix("product.options.size.")
        match name:
            case "product.buy_now" | "cart.checkout":
                self.outcome = "purchase"
            case "product.add_to_cart":
                self.page = cart_page(opened)
            case "product.reviews" | "reviews.next":
                note: ReviewNote = "mostly bad reviews" if self._bad_reviews else "mostly good reviews"
                self.page = reviews_page(note)
            case "product.back_to_results":
                self.page = self._results
            case "reviews.back_to_product" | "cart.remove":
                self.page = product_page(opened, self._price, None)
            case _ if size != name:
                self.page = product_page(opened, self._price, size)

    def _draw(self, chance: float) -> MatchNote:
        return "exact match" if self._random.random() < chance else "no match"

    def _show_results(self, note: MatchNote) -> None:
        products = draw_other_products(self._wanted, PRODUCTS_ON_A_PAGE, self._random)
        if note == "exact match":
            products[self._random.randrange(len(products))] = self._wanted
        wanted = self._wanted
        self._results = results_page(self._query, note, products, wanted.brand, wanted.style)
        self.page = self._results

    def _open(self, slug: str) -> None:
        parts = slug.split("_")
        if len(parts) == 3:
            self._opened = Product(*parts)
            self.page = product_page(self._opened, self._price, None)
