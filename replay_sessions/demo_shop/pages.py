"""The demo shop's pages, in the ShopCART observation format: simplified HTML whose elements carry hierarchical names.

`small` pages hold about ten elements and leave out what a name already says; `realistic` pages add what surrounds the
same elements in a real shop (navigation, some fifty products with prices and ratings, refinements, footer): 500 and
more elements, about 100 kB. The elements that shoppers of the demo shop use are the same in both.
"""

from html import escape
from random import Random
from typing import Literal

from replay_sessions.demo_shop.catalogue import BRANDS, DEPARTMENTS, NOUNS, SIZES, STYLES, Product

__all__ = [
    "MatchNote",
    "PageSize",
    "PriceNote",
    "cart_page",
    "home_page",
    "product_page",
    "results_page",
    "reviews_page",
]

PageSize = Literal["small", "realistic"]
MatchNote = Literal["many items", "exact match", "no match"]
PriceNote = Literal["fair price", "high price"]
ReviewNote = Literal["mostly good reviews", "mostly bad reviews"]

SEARCH = '<form role="search"><input name="search_input" type="text" value="{query}"/></form>'


def home_page(size: PageSize, random: Random) -> str:
    """The first page of every session."""
    links = "".join(f'<a name="departments.{department}">{department}</a>' for department in DEPARTMENTS)
    return _page("home", SEARCH.format(query="") + links, size, random)


def results_page(
    query: str, note: MatchNote, products: list[Product], brand: str, style: str, size: PageSize, random: Random
) -> str:
    """Search results: a heading that says how well they fit, refinements for a brand and a style, products, next."""
    refinements = "".join(
        f'<li name="refinements.{kind}.{value}" role="checkbox">{kind if size == "small" else value}</li>'
        for kind, value in (("brand", brand), ("style", style))
    )
    detail = _product_detail if size == "realistic" else _brief_detail
    rows = "".join(
        f'<a name="search_results.{product.slug}.view_product">{detail(product, random)}' for product in products
    )
    body = f'{SEARCH.format(query=escape(query))}<h1>{note}</h1>{refinements}{rows}<a name="pagination.next">next</a>'
    return _page("results", body, size, random)


def product_page(product: Product, price: PriceNote, chosen_size: str | None, size: PageSize, random: Random) -> str:
    """One product: price note, size options (the chosen one is marked), reviews, cart, buy, back."""
    options = "".join(
        f'<li name="product.options.size.{option}" role="radio"{chosen}>{option}</li>'
        for option in SIZES
        for chosen in [' aria-checked="true"' if option == chosen_size else ""]
    )
    body = (
        f"<h1>{product.title}</h1><p>{price}</p>{options}"
        '<a name="product.reviews">reviews</a><button name="product.add_to_cart">add to cart</button>'
        '<button name="product.buy_now">buy now</button><a name="product.back_to_results">back to results</a>'
    )
    return _page("product", body, size, random)


def reviews_page(note: ReviewNote, size: PageSize, random: Random) -> str:
    """What others say of the product."""
    body = (
        f'<h1>{note}</h1><a name="reviews.next">more reviews</a><a name="reviews.back_to_product">back to product</a>'
    )
    return _page("reviews", body, size, random)


def cart_page(product: Product, size: PageSize, random: Random) -> str:
    """The cart with one product in it."""
    body = (
        f"<h1>cart</h1><p>{product.title}</p>"
        '<button name="cart.checkout">checkout</button><button name="cart.remove">remove</button>'
    )
    return _page("cart", body, size, random)


def _page(title: str, body: str, size: PageSize, random: Random) -> str:
    if size == "realistic":
        body = _navigation() + body + _recommendations(random) + _footer()
    return f"<html><head><title>{title}</title></head><body>{body}</body></html>"


def _navigation() -> str:
    links = "".join(f'<a name="nav_bar.{noun}" aria-label="Shop for {noun}">{noun.title()}</a>' for noun in NOUNS)
    return f'<div name="nav_bar" role="navigation" aria-label="Primary">{links}</div>'


def _brief_detail(product: Product, random: Random) -> str:
    return "view</a>"


def _product_detail(product: Product, random: Random) -> str:
    dollars, cents = random.randrange(9, 190), random.choice((0, 49, 95, 99))
    stars, count = random.randrange(30, 50) / 10, random.randrange(3, 9000)
    return (
        f"{product.title.title()}</a>"
        f'<div class="product-review"><span class="product-rating">{stars} out of 5 stars</span>'
        f'<span class="product-rating-count">{count} reviews</span></div>'
        f'<div class="product-price"><span>${dollars}.{cents:02}</span></div>'
        f'<div class="product-delivery">FREE delivery in {random.randrange(1, 9)} days on orders over $35</div>'
    )


def _recommendations(random: Random) -> str:
    """Strips of other articles, as they surround a real page: about 470 links."""
    strips = []
    for noun in NOUNS:
        cards = []
        for brand in random.sample(BRANDS, 20):
            product = Product(brand, random.choice(STYLES), noun)
            cards.append(
                f'<a name="recommended.{product.slug}.view_product">{product.title.title()}</a>'
                f'<span class="product-rating">{random.randrange(30, 50) / 10} out of 5 stars</span>'
                f'<span class="product-price">${random.randrange(9, 190)}.{random.choice((0, 49, 95, 99)):02}</span>'
            )
        strips.append(f'<section class="strip"><h2>More {noun} ideas</h2>{"".join(cards)}</section>')
    return "".join(strips)


def _footer() -> str:
    topics = ("about_us", "careers", "press", "returns", "shipping", "help", "gift_cards", "privacy", "imprint")
    links = "".join(f'<a name="footer.{topic}">{topic.replace("_", " ").title()}</a>' for topic in topics)
    return f'<div name="footer" role="contentinfo">{links}</div>'
