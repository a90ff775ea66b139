"""Simulates the realistic shop: its pages, and which page follows an action. It is deterministic.

    RealisticShop(variant) ─► .page ─► shopper acts ─► .respond(action) ─► .page … until .outcome

Pages show goods with price, stars and stock, within the usual header, navigation and footer of a shop. Prices and
ratings come from the catalogue and the variant, and are the same on every page. `read.py` parses the pages.
"""

from collections.abc import Iterable, Iterator, Sequence
from html import escape
from typing import NamedTuple, Self

from replay_sessions.demo_shop.catalogue import BRANDS, DEPARTMENTS, NOUNS, PHRASES, SIZES
from replay_sessions.demo_shop.realistic.articles import CONTROL, Article, ShopVariant, articles, find_articles, kind_of
from replay_sessions.demo_shop.shop import Shop, size_options

PAGE_ARTICLES = 8
STRIP = 20  # other goods of each kind below a page of a large shop


class PageWriter(NamedTuple):
    """Writes the pages of one visit.

    Attributes:
        is_surrounded: Whether hundreds of other goods stand below, as in a large shop.
        cart: Articles in the cart; the shop changes the list in place.
    """

    variant: ShopVariant
    is_surrounded: bool
    cart: list[Article]

    @property
    def _words(self) -> dict[str, str]:
        return dict(PHRASES["realistic"]["wording"][self.variant.wording])

    @property
    def _total(self) -> str:
        total = sum(self.price_cents(article) for article in self.cart)
        return f'<p class="total">Total: {_money(total + (self.variant.shipping_cents if self.cart else 0))}</p>'

    def price_cents(self, article: Article) -> int:
        """Returns the price of an article under the variant."""
        return round(article.price_cents * self.variant.price_factor)

    def home(self) -> str:
        """Writes the first page of every visit."""
        return self._page("home", f"<h1>Welcome</h1>{_links('departments', DEPARTMENTS)}")

    def department(self, department: str) -> str:
        """Writes the page of a department, with its kinds of article."""
        links = _links("categories", DEPARTMENTS[department])
        return self._page("department", f"<h1>{department.title()}</h1>{links}")

    def results(
        self, query: str, results: Sequence[Article], number: int, refinements: Iterable[tuple[str, str, bool]]
    ) -> str:
        """Writes a page of search results.

        Args:
            results: All results, not only those of this page.
            number: Number of the page, from 0.
            refinements: Name and label of each refinement, and whether it is set.
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
        """Writes the page of one article."""
        words = self._words
        buttons = "<p>Currently unavailable.</p>"
        if article.in_stock:
            buttons = f'<button name="product.add_to_cart">{words["add"]}</button>'
            buttons += f'<button name="product.buy_now">{words["buy"]}</button>'
        reviews = f'<a name="product.reviews">{words["reviews"]}</a>' if self.variant.ratings else ""
        others = [other for other in kind_of(article.product.noun) if other != article][:4]
        body = (
            f"<h1>{article.title}</h1>{self._facts(article)}<ul>{size_options(chosen_size)}</ul>{buttons}{reviews}"
            '<a name="product.back_to_results">Back to results</a>'
            f"<aside><h2>{words['more']}</h2>{self._cards(others, 'also_viewed')}</aside>"
        )
        return self._page("product", body)

    def reviews(self, article: Article) -> str:
        """Writes the page with the reviews of an article."""
        review = "Does what it should." if article.rating >= 4 else "It came late and broke."
        body = (
            f"<h1>{article.title}</h1>{self._facts(article)}<p>{review}</p>"
            '<a name="reviews.next">More reviews</a><a name="reviews.back_to_product">Back to the product</a>'
        )
        return self._page("reviews", body)

    def cart_page(self) -> str:
        """Writes the page of the cart, with shipping and the total."""
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
        """Writes the page that some variants have between the cart and the purchase."""
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

    def _facts(self, article: Article) -> str:
        """Writes the badge, stars, price and stock of an article."""
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
        strips = "".join(self._strips()) if self.is_surrounded else ""
        return f"<html><head><title>{title}</title></head><body>{header}{body}{strips}{_FOOTER}</body></html>"

    def _strips(self) -> Iterator[str]:
        """Yields the most bought goods of each kind, as a section per kind."""
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


SEARCH_INPUT = "nav_bar.search_input"
GOOD_RATING = 4.0
MAX_BRANDS = 3
_STARS = "refinements.customer_reviews.4_stars_up"


class RealisticShop(Shop):
    """One visit to the realistic shop.

    Args:
        is_surrounded: Whether each page also has hundreds of other goods, 100 kB, as in a large shop.
    """

    search_input = SEARCH_INPUT

    def __init__(self, variant: ShopVariant = CONTROL, *, is_surrounded: bool = False) -> None:
        self.variant = variant
        self.revenue_cents = 0  # until there is a purchase
        self._cart: list[Article] = []
        self._pages = PageWriter(variant, is_surrounded, self._cart)
        self._results: Sequence[Article] = ()
        self._query = ""
        self._number = 0
        self._refined: set[str] = set()
        self._opened: Article | None = None
        self.page = self._pages.home()

    def __copy__(self) -> Self:
        """Copies the visit for another tab. Tabs share the cart, and each has its own page and results."""
        tab = object.__new__(type(self))
        tab.__dict__ |= self.__dict__ | {"_refined": set(self._refined)}
        return tab

    def _click(self, name: str) -> None:
        head, _, tail = name.partition(".")
        if name.endswith(".view_product"):
            if (article := articles().get(tail.removesuffix(".view_product"))) is not None:
                self._opened = article
                self.page = self._pages.product(article, None)
        elif head == "departments" and tail in DEPARTMENTS:
            self.page = self._pages.department(tail)
        elif head in ("categories", "nav_bar") and tail in NOUNS:
            self._search(tail)
        elif head == "refinements" and name in (refinement for refinement, _, _ in self._refinements()):
            self._refined ^= {name}
            self._show_results(0)
        elif head == "pagination":
            self._show_results(self._number + (1 if tail == "next" else -1))
        elif head in ("product", "reviews"):
            self._click_on_product(name)
        elif head in ("cart", "checkout") or name == "nav_bar.cart":
            self._click_on_cart(name)

    def _search(self, query: str) -> None:
        self._query, self._refined = query, set()
        self._results = find_articles(query, self.variant.order)
        self._show_results(0)

    def _refinements(self) -> list[tuple[str, str, bool]]:
        """Returns refinements by price, stars and the most bought brands: name, label, and whether each is set."""
        if len(self._results) < 2:
            return []
        prices = sorted(map(self._pages.price_cents, self._results))
        bands = dict.fromkeys(-(-prices[len(prices) * part // 4] // 100) for part in (1, 2))
        labels = {f"refinements.price.under_{band}": f"Under ${band}" for band in bands}
        if self.variant.ratings:
            labels[_STARS] = "4 stars and up"
        most_bought = sorted(self._results, key=lambda article: -article.reviews)
        brands = list(dict.fromkeys(article.product.brand for article in most_bought))[:MAX_BRANDS]
        labels |= {f"refinements.brand.{brand}": brand.title() for brand in brands}
        return [(name, label, name in self._refined) for name, label in labels.items()]

    def _fits(self, article: Article) -> bool:
        """Returns True if an article matches all set refinements; several brands are alternatives."""
        brands = {name.rsplit(".", 1)[1] for name in self._refined if name.startswith("refinements.brand.")}
        bands = [int(name.rsplit("_", 1)[1]) for name in self._refined if name.startswith("refinements.price.")]
        return (
            (not brands or article.product.brand in brands)
            and all(self._pages.price_cents(article) < 100 * band for band in bands)
            and (_STARS not in self._refined or article.rating >= GOOD_RATING)
        )

    def _show_results(self, number: int) -> None:
        results = [article for article in self._results if self._fits(article)]
        self._number = max(0, min(number, (len(results) - 1) // PAGE_ARTICLES))
        self.page = self._pages.results(self._query, results, self._number, self._refinements())

    def _click_on_product(self, name: str) -> None:
        article = self._opened
        if article is None:
            return
        size = name.removeprefix("product.options.size.")
        match name:
            case "product.add_to_cart" if article.in_stock:
                self._cart.append(article)
                self.page = self._pages.cart_page()
            case "product.buy_now" if article.in_stock:
                self._cart.append(article)
                self._pay()
            case "product.reviews" | "reviews.next" if self.variant.ratings:
                self.page = self._pages.reviews(article)
            case "reviews.back_to_product":
                self.page = self._pages.product(article, None)
            case "product.back_to_results":
                self._show_results(self._number)
            case _ if size in SIZES:
                self.page = self._pages.product(article, size)

    def _click_on_cart(self, name: str) -> None:
        match name:
            case "nav_bar.cart" | "checkout.back_to_cart":
                self.page = self._pages.cart_page()
            case "cart.continue_shopping":
                self.page = self._pages.home()
            case "cart.checkout" if self._cart:
                self._pay()
            case "checkout.place_order" if self._cart:
                self._buy()
            case _:
                slug = name.removeprefix("cart.").removesuffix(".remove")
                remaining = [article for article in self._cart if article.slug != slug]
                if len(remaining) < len(self._cart):
                    self._cart[:] = remaining  # in place, because the tabs of a visit share the cart
                    self.page = self._pages.cart_page()

    def _pay(self) -> None:
        if self.variant.checkout_page:
            self.page = self._pages.checkout()
        else:
            self._buy()

    def _buy(self) -> None:
        self.outcome = "purchase"
        self.revenue_cents = sum(map(self._pages.price_cents, self._cart))
