"""The realistic shop's pages: what surrounds the goods in a shop, and the goods with their price, stars and stock.

Prices and ratings are those of the catalogue under the variant, on every page the same. `read.py` reads them again.
"""

from collections.abc import Iterable, Iterator, Sequence
from html import escape
from typing import NamedTuple

from replay_sessions.demo_shop.catalogue import BRANDS, DEPARTMENTS, NOUNS, PHRASES, SIZES
from replay_sessions.demo_shop.realistic.articles import Article, ShopVariant, kind_of

PAGE_ARTICLES = 8
STRIP = 20  # goods of each kind, below a page that is surrounded


class PageWriter(NamedTuple):
    """Writes the pages of one visit.

    Attributes:
        is_surrounded: Whether hundreds of other goods stand below, as in a large shop.
        cart: What is in it now; the shop changes it in place.
    """

    variant: ShopVariant
    is_surrounded: bool
    cart: list[Article]

    @property
    def _words(self) -> dict[str, str]:
        words: dict[str, str] = PHRASES["realistic"]["wording"][self.variant.wording]
        return words

    @property
    def _total(self) -> str:
        total = sum(self.price_cents(article) for article in self.cart)
        return f'<p class="total">Total: {_money(total + (self.variant.shipping_cents if self.cart else 0))}</p>'

    def price_cents(self, article: Article) -> int:
        """What an article costs."""
        return round(article.price_cents * self.variant.price_factor)

    def home(self) -> str:
        """The first page of every visit."""
        return self._page("home", f"<h1>Welcome</h1>{_links('departments', DEPARTMENTS)}")

    def department(self, department: str) -> str:
        """A department's kinds of article."""
        links = _links("categories", DEPARTMENTS[department])
        return self._page("department", f"<h1>{department.title()}</h1>{links}")

    def results(
        self, query: str, results: Sequence[Article], number: int, refinements: Iterable[tuple[str, str, bool]]
    ) -> str:
        """A page of search results.

        Args:
            results: All of them.
            number: Of the page, from 0.
            refinements: Name, label, and whether it is set.
        """
        on_page = results[number * PAGE_ARTICLES : (number + 1) * PAGE_ARTICLES]
        heading = f"{len(results)} {self._words['found']}" if results else self._words["nothing"]
        boxes = "".join(
            f'<li name="{name}" role="checkbox" aria-checked="{str(is_set).lower()}">{label}</li>'
            for name, label, is_set in refinements
        )
        cards = self._cards(on_page, "search_results")
        more = '<a name="pagination.next">Next</a>' if len(results) > (number + 1) * PAGE_ARTICLES else ""
        before = '<a name="pagination.previous">Previous</a>' if number else ""
        body = f"<h1>{heading}</h1><p>page {number + 1}</p><ul>{boxes}</ul><main>{cards}</main>{before}{more}"
        return self._page("results", body, query=query)

    def product(self, article: Article, chosen_size: str | None) -> str:
        """One article."""
        words = self._words
        sizes = "".join(
            f'<li name="product.options.size.{size}" role="radio"{chosen}>{size}</li>'
            for size in SIZES
            for chosen in [' aria-checked="true"' if size == chosen_size else ""]
        )
        buttons = "<p>Currently unavailable.</p>"
        if article.in_stock:
            buttons = f'<button name="product.add_to_cart">{words["add"]}</button>'
            buttons += f'<button name="product.buy_now">{words["buy"]}</button>'
        reviews = f'<a name="product.reviews">{words["reviews"]}</a>' if self.variant.ratings else ""
        others = [other for other in kind_of(article.product.noun) if other != article][:4]
        body = (
            f"{self._headline(article)}<ul>{sizes}</ul>{buttons}{reviews}"
            '<a name="product.back_to_results">Back to results</a>'
            f"<aside><h2>{words['more']}</h2>{self._cards(others, 'also_viewed')}</aside>"
        )
        return self._page("product", body)

    def reviews(self, article: Article) -> str:
        """What others say of an article."""
        review = "Does what it should." if article.rating >= 4 else "It came late and broke."
        body = (
            f"{self._headline(article)}<p>{review}</p>"
            '<a name="reviews.next">More reviews</a><a name="reviews.back_to_product">Back to the product</a>'
        )
        return self._page("reviews", body)

    def cart_page(self) -> str:
        """The cart, with shipping and the total."""
        words, shipping_cents = self._words, self.variant.shipping_cents
        rows = "".join(
            f'<div><span>{article.title}</span><span class="price">{_money(self.price_cents(article))}</span>'
            f'<button name="cart.{article.slug}.remove">Remove</button></div>'
            for article in self.cart
        )
        shipping = f"Shipping: {_money(shipping_cents)}" if shipping_cents else "FREE shipping"
        pay = f'<button name="cart.checkout">{words["pay"]}</button>' if self.cart else "<p>It is empty.</p>"
        body = (
            f'<h1>{words["cart"]}</h1>{rows}<p class="shipping">{shipping}</p>{self._total}'
            f'{pay}<a name="cart.continue_shopping">Continue shopping</a>'
        )
        return self._page("cart", body)

    def checkout(self) -> str:
        """One more page before the purchase."""
        body = (
            f"<h1>Checkout</h1>{self._total}"
            f'<button name="checkout.place_order">{self._words["order"]}</button>'
            '<a name="checkout.back_to_cart">Back to the cart</a>'
        )
        return self._page("checkout", body)

    def _cards(self, articles: Iterable[Article], part: str) -> str:
        return "".join(
            f'<section><a name="{part}.{article.slug}.view_product">{article.title}</a>{self._facts(article)}</section>'
            for article in articles
        )

    def _headline(self, article: Article) -> str:
        return f"<h1>{article.title}</h1>{self._facts(article)}"

    def _facts(self, article: Article) -> str:
        """Badge, stars, price and stock."""
        badge = '<span class="badge">Best seller</span>' if article.bestseller and self.variant.badges else ""
        stars = ""
        if self.variant.ratings:
            stars = f'<span class="rating">{article.rating} out of 5 stars</span>'
            stars += f'<span class="reviews">{article.reviews:,} reviews</span>'
        stock = "" if article.in_stock else '<span class="stock">Out of stock</span>'
        return f'{badge}{stars}<span class="price">{_money(self.price_cents(article))}</span>{stock}'

    def _page(self, title: str, body: str, query: str = "") -> str:
        search = f'<form role="search"><input name="nav_bar.search_input" type="text" value="{escape(query)}"/></form>'
        cart = f'<a name="nav_bar.cart">Cart ({len(self.cart)})</a>'
        header = f'<header>{search}<nav name="nav_bar">{_links("nav_bar", NOUNS)}</nav>{cart}</header>'
        around = "".join(self._strips()) if self.is_surrounded else ""
        return f"<html><head><title>{title}</title></head><body>{header}{body}{around}{_FOOTER}</body></html>"

    def _strips(self) -> Iterator[str]:
        """Other goods: the most bought of some kinds."""
        for noun in NOUNS:
            best = sorted(kind_of(noun), key=lambda article: -article.reviews)[:STRIP]
            yield f"<aside><h2>Most bought: {noun}</h2>{self._cards(best, f'recommended_{noun}')}</aside>"


def _money(cents: int) -> str:
    return f"${cents // 100}.{cents % 100:02}"


def _links(part: str, names: Iterable[str]) -> str:
    return "".join(f'<a name="{part}.{name}">{name.replace("_", " ").title()}</a>' for name in names)


_TOPICS = ("about_us", "careers", "press", "returns", "shipping", "help", "gift_cards", "privacy", "imprint")
_FOOTER = (
    f'<footer name="footer">{_links("footer", _TOPICS)}'
    f"<p>{len(BRANDS)} brands, all in stock most of the time.</p></footer>"
)
