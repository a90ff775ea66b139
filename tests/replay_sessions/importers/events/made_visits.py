"""A small shop whose visits are written as GA4 exports them, beside what the shopper did."""

from tests.replay_sessions.importers.events.test_events import ga4

PRODUCTS = [{"item_id": f"S{n}", "item_name": f"Mug number {n}", "price": 5.5 + n} for n in range(12)]
LISTS = {f"/c/{n}": PRODUCTS[4 * n : 4 * n + 4] for n in range(3)}


class MadeVisit:
    """Writes the events of a visit: lists, products in tabs, related lists, promotions, a mini-cart, other tags.

    Args:
        lists: Whether the shop logs its lists.

    Attributes:
        events: The events of GA4.
        actions: What the shopper did, in order.
    """

    def __init__(self, session, random, *, lists=True):
        self.events = []
        self.actions = []
        self._session = session
        self._random = random
        self._lists = lists
        self._cart = []
        self._tabs = []

    def write(self):
        for _ in range(self._random.randint(1, 3)):
            address = self._random.choice(list(LISTS))
            self._log("page_view", address)
            self._list(address, LISTS[address])
            for _ in range(self._random.randint(1, 2)):
                self._open(address, self._random.choice(LISTS[address]))
                if self._random.random() < 0.5:
                    self._log("page_view", address)
                    self._list(address, LISTS[address])
                else:
                    break
            for _ in range(self._random.randint(0, 2)):
                self._use_cart()
        return self

    def _open(self, address, product):
        self._act("select_item", address, product)
        page = f"/p/{product['item_id']}"
        self._log("page_view", page)
        self._log("view_item", page, [product])
        self._log("user_engagement", address)  # of the page before, which is sent late
        self._list(page, self._random.sample(PRODUCTS, 2))
        self._tabs.append((page, product))

    def _use_cart(self):
        page, product = self._random.choice(self._tabs)  # any tab, the last opened or not
        if self._cart and self._random.random() < 0.5:
            self._act("remove_from_cart", page, self._cart.pop(self._random.randrange(len(self._cart))))
        elif product not in self._cart:
            self._cart.append(product)
            self._act("add_to_cart", page, product)
        if self._random.random() < 0.3:
            self._log("view_promotion", page, [{"promotion_name": "Sale"}])
        self._log("scroll", "/help")

    def _act(self, word, address, product):
        self.actions.append((word, product["item_id"]))
        self._log(word, address, [product])

    def _list(self, address, items):
        if self._lists:
            self._log("view_item_list", address, items)

    def _log(self, word, address, items=()):
        self.events.append(ga4(word, address, len(self.events), items, self._session))
