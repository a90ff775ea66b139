"""The realistic shop itself: which page follows an action. It draws nothing; what leads nowhere changes nothing.

RealisticShop(variant) ─► .page ─► shopper acts ─► .respond(action) ─► .page … until .outcome
"""

from collections.abc import Sequence
from typing import Literal, Self

from replay_sessions.demo_shop.catalogue import DEPARTMENTS, NOUNS, SIZES
from replay_sessions.demo_shop.realistic import pages
from replay_sessions.demo_shop.realistic.articles import Article, article_of
from replay_sessions.demo_shop.realistic.pages import price_of
from replay_sessions.demo_shop.realistic.search import find_articles
from replay_sessions.demo_shop.realistic.variant import CONTROL, ShopVariant
from replay_sessions.schema import Action, Click, Terminate, TypeAndSubmit

__all__ = ["RealisticShop"]

SEARCH_INPUT = "nav_bar.search_input"
GOOD_RATING = 4.0
BRANDS_SHOWN = 3


class RealisticShop:
    """One visit.

    Args:
        is_surrounded: Whether each page has the hundreds of other goods, 100 kB, that surround those of a large shop.

    Attributes:
        page: The page shown now, as simplified HTML.
        outcome: None while the visit lasts, then "purchase" or "terminate".
        revenue_cents: Of the purchase, without shipping; 0 where there is none.
    """

    def __init__(self, variant: ShopVariant = CONTROL, *, is_surrounded: bool = False) -> None:
        self.variant = variant
        self._look = pages.Look(variant, is_surrounded)
        self.outcome: Literal["purchase", "terminate"] | None = None
        self.revenue_cents: int | None = 0
        self._cart: list[Article] = []
        self._found: Sequence[Article] = ()
        self._query = ""
        self._number = 0
        self._refined: set[str] = set()
        self._opened: Article | None = None
        self.page = pages.home_page(self._look, 0)

    def __copy__(self) -> Self:
        """The same visit in another tab: each is somewhere else, and the cart is the same."""
        tab = object.__new__(type(self))
        tab.__dict__ |= self.__dict__ | {"_refined": set(self._refined)}
        return tab

    def respond(self, action: Action) -> None:
        """Takes one action: changes `page`, or sets `outcome` where the action ends the visit."""
        match action:
            case Terminate():
                self.outcome = "terminate"
            case TypeAndSubmit(name=name, text=text) if name == SEARCH_INPUT:
                self._search(text)
            case Click(name=name):
                self._click(name)
            case _:
                pass

    def _click(self, name: str) -> None:
        head, _, tail = name.partition(".")
        if name.endswith(".view_product"):
            self._open(tail.removesuffix(".view_product"))
        elif head == "departments" and tail in DEPARTMENTS:
            self.page = pages.department_page(tail, self._look, len(self._cart))
        elif head in ("categories", "nav_bar") and tail in NOUNS:
            self._search(tail)
        elif head == "refinements" and name in {known for known, _, _ in self._refinements()}:
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
        self._found = find_articles(query, self.variant.order)
        self._show_results(0)

    def _refinements(self) -> list[tuple[str, str, bool]]:
        """By price, by stars and by the brands most bought among what was found."""
        if len(self._found) < 2:
            return []
        prices = sorted(price_of(one, self.variant) for one in self._found)
        bands = dict.fromkeys(-(-prices[len(prices) * part // 4] // 100) for part in (1, 2))
        known = [(f"refinements.price.under_{band}", f"Under ${band}") for band in bands]
        if self.variant.ratings:
            known.append(("refinements.customer_reviews.4_stars_up", "4 stars and up"))
        most = sorted(self._found, key=lambda one: -one.reviews)
        brands = list(dict.fromkeys(one.product.brand for one in most))[:BRANDS_SHOWN]
        known += [(f"refinements.brand.{brand}", brand.title()) for brand in brands]
        return [(name, label, name in self._refined) for name, label in known]

    def _fits(self, article: Article) -> bool:
        """All set refinements, of which several brands are alternatives."""
        brands = {name.rsplit(".", 1)[1] for name in self._refined if name.startswith("refinements.brand.")}
        bands = [int(name.rsplit("_", 1)[1]) for name in self._refined if name.startswith("refinements.price.")]
        stars = "refinements.customer_reviews.4_stars_up" in self._refined
        return (
            (not brands or article.product.brand in brands)
            and all(price_of(article, self.variant) < 100 * band for band in bands)
            and (not stars or article.rating >= GOOD_RATING)
        )

    def _show_results(self, number: int) -> None:
        found = [one for one in self._found if self._fits(one)]
        self._number = max(0, min(number, (len(found) - 1) // pages.PAGE_ARTICLES))
        self.page = pages.results_page(
            self._query, found, self._number, self._refinements(), self._look, len(self._cart)
        )

    def _open(self, slug: str) -> None:
        if (article := article_of(slug)) is not None:
            self._opened = article
            self._show_product(None)

    def _show_product(self, chosen_size: str | None) -> None:
        assert self._opened is not None
        self.page = pages.product_page(self._opened, chosen_size, self._look, len(self._cart))

    def _click_on_product(self, name: str) -> None:
        if self._opened is None:
            return
        size = name.removeprefix("product.options.size.")
        match name:
            case "product.add_to_cart" if self._opened.in_stock:
                self._cart.append(self._opened)
                self.page = pages.cart_page(self._cart, self._look)
            case "product.buy_now" if self._opened.in_stock:
                self._cart.append(self._opened)
                self._pay()
            case "product.reviews" | "reviews.next" if self.variant.ratings:
                self.page = pages.reviews_page(self._opened, self._look, len(self._cart))
            case "reviews.back_to_product":
                self._show_product(None)
            case "product.back_to_results":
                self._show_results(self._number)
            case _ if size in SIZES:
                self._show_product(size)

    def _click_on_cart(self, name: str) -> None:
        match name:
            case "nav_bar.cart" | "checkout.back_to_cart":
                self.page = pages.cart_page(self._cart, self._look)
            case "cart.continue_shopping":
                self.page = pages.home_page(self._look, len(self._cart))
            case "cart.checkout" if self._cart:
                self._pay()
            case "checkout.place_order" if self._cart:
                self._bought()
            case _:
                slug = name.removeprefix("cart.").removesuffix(".remove")
                kept = [one for one in self._cart if one.slug != slug]
                if len(kept) < len(self._cart):
                    self._cart[:] = kept
                    self.page = pages.cart_page(self._cart, self._look)

    def _pay(self) -> None:
        if self.variant.checkout_page:
            self.page = pages.checkout_page(self._cart, self._look)
        else:
            self._bought()

    def _bought(self) -> None:
        self.outcome = "purchase"
        self.revenue_cents = sum(price_of(one, self.variant) for one in self._cart)
