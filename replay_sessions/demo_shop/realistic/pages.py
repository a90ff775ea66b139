"""The realistic shop's pages: what surrounds the goods in a shop, and the goods with their price, stars and stock.

Prices and ratings are those of the catalogue under the variant, on every page the same. `read.py` reads them again.
"""

from collections.abc import Iterable, Sequence
from html import escape
from typing import NamedTuple

from replay_sessions.demo_shop.catalogue import BRANDS, DEPARTMENTS, NOUNS, SIZES
from replay_sessions.demo_shop.realistic.articles import Article, kind_of
from replay_sessions.demo_shop.realistic.variant import ShopVariant

__all__ = [
    "PAGE_ARTICLES",
    "Look",
    "cart_page",
    "checkout_page",
    "department_page",
    "home_page",
    "money",
    "price_of",
    "product_page",
    "results_page",
    "reviews_page",
]

PAGE_ARTICLES = 8
STRIP = 20  # goods of each kind, below a page that is surrounded


class Look(NamedTuple):
    """How the shop's pages look: the variant, and whether hundreds of other goods stand below, as in a large shop."""

    variant: ShopVariant
    is_surrounded: bool


WORDS = {
    "plain": {
        "nothing": "nothing found",
        "found": "results",
        "add": "Add to cart",
        "buy": "Buy now",
        "cart": "Cart",
        "pay": "Proceed to checkout",
        "order": "Place your order",
        "reviews": "Customer reviews",
        "more": "You may also like",
    },
    "warm": {
        "nothing": "sorry, we have found nothing",
        "found": "hand-picked for you",
        "add": "Yes, into my cart",
        "buy": "I want it now",
        "cart": "Your lovely cart",
        "pay": "On to the last step",
        "order": "Make it mine",
        "reviews": "What our friends say",
        "more": "More to fall in love with",
    },
}


def price_of(article: Article, variant: ShopVariant) -> int:
    """What an article costs, in cents."""
    return round(article.price_cents * variant.price_factor)


def money(cents: int) -> str:
    return f"${cents // 100}.{cents % 100:02}"


def home_page(look: Look, in_cart: int) -> str:
    """The first page of every visit."""
    links = "".join(f'<a name="departments.{name}">{name.title()}</a>' for name in DEPARTMENTS)
    return _page("home", f"<h1>Welcome</h1>{links}", look, in_cart)


def department_page(department: str, look: Look, in_cart: int) -> str:
    """A department's kinds of article."""
    links = "".join(f'<a name="categories.{noun}">{noun.title()}</a>' for noun in DEPARTMENTS[department])
    return _page("department", f"<h1>{department.title()}</h1>{links}", look, in_cart)


def results_page(
    query: str,
    found: Sequence[Article],
    number: int,
    refinements: Sequence[tuple[str, str, bool]],
    look: Look,
    in_cart: int,
) -> str:
    """A page of search results.

    Args:
        found: All of them.
        number: Of the page, from 0.
        refinements: Name, label, and whether it is set.
    """
    words = WORDS[look.variant.wording]
    shown = found[number * PAGE_ARTICLES : (number + 1) * PAGE_ARTICLES]
    heading = f"{len(found)} {words['found']}" if found else words["nothing"]
    boxes = "".join(
        f'<li name="{name}" role="checkbox" aria-checked="{str(is_set).lower()}">{label}</li>'
        for name, label, is_set in refinements
    )
    cards = "".join(_card(article, "search_results", look) for article in shown)
    more = '<a name="pagination.next">Next</a>' if len(found) > (number + 1) * PAGE_ARTICLES else ""
    before = '<a name="pagination.previous">Previous</a>' if number else ""
    body = f"<h1>{heading}</h1><p>page {number + 1}</p><ul>{boxes}</ul><main>{cards}</main>{before}{more}"
    return _page("results", body, look, in_cart, query=query)


def product_page(article: Article, chosen_size: str | None, look: Look, in_cart: int) -> str:
    """One article."""
    words = WORDS[look.variant.wording]
    sizes = "".join(
        f'<li name="product.options.size.{size}" role="radio"{chosen}>{size}</li>'
        for size in SIZES
        for chosen in [' aria-checked="true"' if size == chosen_size else ""]
    )
    buttons = "<p>Currently unavailable.</p>"
    if article.in_stock:
        labels = {"add_to_cart": words["add"], "buy_now": words["buy"]}
        buttons = "".join(f'<button name="product.{name}">{label}</button>' for name, label in labels.items())
    reviews = f'<a name="product.reviews">{words["reviews"]}</a>' if look.variant.ratings else ""
    alike = [one for one in kind_of(article.product.noun) if one is not article][:4]
    strip = f"<h2>{words['more']}</h2>" + "".join(_card(one, "also_viewed", look) for one in alike)
    body = (
        f"<h1>{article.title}</h1>{_told(article, look)}<ul>{sizes}</ul>{buttons}{reviews}"
        f'<a name="product.back_to_results">Back to results</a><aside>{strip}</aside>'
    )
    return _page("product", body, look, in_cart)


def reviews_page(article: Article, look: Look, in_cart: int) -> str:
    """What others say of an article."""
    good = "Does what it should." if article.rating >= 4 else "It came late and broke."
    body = (
        f"<h1>{article.title}</h1>{_told(article, look)}<p>{good}</p>"
        '<a name="reviews.next">More reviews</a><a name="reviews.back_to_product">Back to the product</a>'
    )
    return _page("reviews", body, look, in_cart)


def cart_page(lines: Sequence[Article], look: Look) -> str:
    """The cart, with shipping and the total."""
    words = WORDS[look.variant.wording]
    rows = "".join(
        f'<div><span>{one.title}</span><span class="price">{money(price_of(one, look.variant))}</span>'
        f'<button name="cart.{one.slug}.remove">Remove</button></div>'
        for one in lines
    )
    total = sum(price_of(one, look.variant) for one in lines) + (look.variant.shipping_cents if lines else 0)
    shipping = f"Shipping: {money(look.variant.shipping_cents)}" if look.variant.shipping_cents else "FREE shipping"
    pay = f'<button name="cart.checkout">{words["pay"]}</button>' if lines else "<p>It is empty.</p>"
    body = (
        f'<h1>{words["cart"]}</h1>{rows}<p class="shipping">{shipping}</p><p class="total">Total: {money(total)}</p>'
        f'{pay}<a name="cart.continue_shopping">Continue shopping</a>'
    )
    return _page("cart", body, look, len(lines))


def checkout_page(lines: Sequence[Article], look: Look) -> str:
    """One more page before the purchase."""
    total = sum(price_of(one, look.variant) for one in lines) + look.variant.shipping_cents
    order = WORDS[look.variant.wording]["order"]
    body = (
        f'<h1>Checkout</h1><p class="total">Total: {money(total)}</p>'
        f'<button name="checkout.place_order">{order}</button><a name="checkout.back_to_cart">Back to the cart</a>'
    )
    return _page("checkout", body, look, len(lines))


def _card(article: Article, place: str, look: Look) -> str:
    return f'<section><a name="{place}.{article.slug}.view_product">{article.title}</a>{_told(article, look)}</section>'


def _told(article: Article, look: Look) -> str:
    """Badge, stars, price and stock."""
    badge = '<span class="badge">Best seller</span>' if article.bestseller and look.variant.badges else ""
    stars = ""
    if look.variant.ratings:
        stars = f'<span class="rating">{article.rating} out of 5 stars</span>'
        stars += f'<span class="reviews">{article.reviews:,} reviews</span>'
    stock = "" if article.in_stock else '<span class="stock">Out of stock</span>'
    return f'{badge}{stars}<span class="price">{money(price_of(article, look.variant))}</span>{stock}'


def _page(title: str, body: str, look: Look, in_cart: int, query: str = "") -> str:
    search = f'<form role="search"><input name="nav_bar.search_input" type="text" value="{escape(query)}"/></form>'
    links = "".join(f'<a name="nav_bar.{noun}">{noun.title()}</a>' for noun in NOUNS)
    header = f'<header>{search}<nav name="nav_bar">{links}</nav><a name="nav_bar.cart">Cart ({in_cart})</a></header>'
    around = "".join(_strips(look)) if look.is_surrounded else ""
    return f"<html><head><title>{title}</title></head><body>{header}{body}{around}{_FOOTER}</body></html>"


def _strips(look: Look) -> Iterable[str]:
    """Other goods: the most bought of some kinds."""
    for noun in NOUNS:
        best = sorted(kind_of(noun), key=lambda one: -one.reviews)[:STRIP]
        cards = "".join(_card(one, f"recommended_{noun}", look) for one in best)
        yield f"<aside><h2>Most bought: {noun}</h2>{cards}</aside>"


_TOPICS = ("about_us", "careers", "press", "returns", "shipping", "help", "gift_cards", "privacy", "imprint")
_FOOTER = (
    '<footer name="footer">'
    + "".join(f'<a name="footer.{topic}">{topic.replace("_", " ").title()}</a>' for topic in _TOPICS)
    + f"<p>{len(BRANDS)} brands, all in stock most of the time.</p></footer>"
)
