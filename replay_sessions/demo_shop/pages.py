"""The small shop's pages, in the ShopCART observation format: simplified HTML whose elements carry hierarchical names.

They hold about ten elements and leave out whatever the name of an element contains.
"""

from html import escape
from typing import Literal

from replay_sessions.demo_shop.catalogue import DEPARTMENTS, SIZES, Product

PageSize = Literal["small", "compact", "realistic"]
MatchNote = Literal["many items", "exact match", "no match"]
PriceNote = Literal["fair price", "high price"]
ReviewNote = Literal["mostly good reviews", "mostly bad reviews"]

SEARCH = '<form role="search"><input name="search_input" type="text" value="{query}"/></form>'


def home_page() -> str:
    """The first page of every session."""
    links = "".join(f'<a name="departments.{department}">{department}</a>' for department in DEPARTMENTS)
    return _page("home", SEARCH.format(query="") + links)


def results_page(query: str, note: MatchNote, products: list[Product], brand: str, style: str) -> str:
    """Search results: a heading that says how well they fit, refinements for a brand and a style, products, next."""
    refinements = "".join(
        f'<li name="refinements.{kind}.{value}" role="checkbox">{kind}</li>'
        for kind, value in (("brand", brand), ("style", style))
    )
    rows = "".join(f'<a name="search_results.{"_".join(product)}.view_product">view</a>' for product in products)
    body = f'{SEARCH.format(query=escape(query))}<h1>{note}</h1>{refinements}{rows}<a name="pagination.next">next</a>'
    return _page("results", body)


def product_page(product: Product, price: PriceNote, chosen_size: str | None) -> str:
    """One product: price note, size options (the chosen one is marked), reviews, cart, buy, back."""
    options = "".join(
        f'<li name="product.options.size.{option}" role="radio"{chosen}>{option}</li>'
        for option in SIZES
        for chosen in [' aria-checked="true"' if option == chosen_size else ""]
    )
    body = (
        f"<h1>{' '.join(product)}</h1><p>{price}</p>{options}"
        '<a name="product.reviews">reviews</a><button name="product.add_to_cart">add to cart</button>'
        '<button name="product.buy_now">buy now</button><a name="product.back_to_results">back to results</a>'
    )
    return _page("product", body)


def reviews_page(note: ReviewNote) -> str:
    """What others say of the product."""
    body = (
        f'<h1>{note}</h1><a name="reviews.next">more reviews</a><a name="reviews.back_to_product">back to product</a>'
    )
    return _page("reviews", body)


def cart_page(product: Product) -> str:
    """The cart with one product in it."""
    body = (
        f"<h1>cart</h1><p>{' '.join(product)}</p>"
        '<button name="cart.checkout">checkout</button><button name="cart.remove">remove</button>'
    )
    return _page("cart", body)


def _page(title: str, body: str) -> str:
    return f"<html><head><title>{title}</title></head><body>{body}</body></html>"
