"""The realistic shop itself: which page follows an action. It draws nothing; what leads nowhere changes nothing.

RealisticShop(variant) ─► .page ─► shopper acts ─► .respond(action) ─► .page … until .outcome
"""

from collections.abc import Sequence
from typing import Self

from replay_sessions.demo_shop.catalogue import DEPARTMENTS, NOUNS, SIZES
from replay_sessions.demo_shop.realistic.articles import CONTROL, Article, ShopVariant, articles, find_articles
from replay_sessions.demo_shop.realistic.pages import PAGE_ARTICLES, PageWriter
from replay_sessions.demo_shop.shop import Shop

SEARCH_INPUT = "nav_bar.search_input"
GOOD_RATING = 4.0
MAX_BRANDS = 3
_STARS = "refinements.customer_reviews.4_stars_up"


class RealisticShop(Shop):
    """One visit.

    Args:
        is_surrounded: Whether each page has the hundreds of other goods, 100 kB, that surround those of a large shop.
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
        """The same visit in another tab: each is somewhere else, and the cart is the same."""
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
        """By price, by stars and by the brands most bought among the results: name, label, and whether it is set."""
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
        """All set refinements, of which several brands are alternatives."""
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
                rest = [article for article in self._cart if article.slug != slug]
                if len(rest) < len(self._cart):
                    self._cart[:] = rest  # in place: the other tabs have the same cart
                    self.page = self._pages.cart_page()

    def _pay(self) -> None:
        if self.variant.checkout_page:
            self.page = self._pages.checkout()
        else:
            self._buy()

    def _buy(self) -> None:
        self.outcome = "purchase"
        self.revenue_cents = sum(map(self._pages.price_cents, self._cart))
