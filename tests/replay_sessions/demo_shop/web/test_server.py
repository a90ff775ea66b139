"""The shop over HTTP: pages that stay, tabs with one cart, and the visit as the env shows it."""

import http.client
import json
from collections.abc import Iterator
from urllib.parse import quote

import pytest

from replay_sessions.demo_shop.realistic import RealisticShop
from replay_sessions.demo_shop.web.server import Visits, shop_server
from replay_sessions.foundation.errors import BadConfig
from replay_sessions.recorder.journal import Journal
from replay_sessions.schema import Click, TypeAndSubmit
from tests.replay_sessions.importers.rrweb.made_recordings import Recorded
from tests.replay_sessions.recorder.conftest import batch


class Browser:
    """Asks for pages and follows where it is led."""

    def __init__(self, address: str) -> None:
        self._netloc = address.removeprefix("http://")

    def ask(self, path: str, method: str = "GET", body: bytes | None = None, host: str = "") -> tuple[int, str, str]:
        """The status, the page, and the path that it stands under."""
        connection = http.client.HTTPConnection(self._netloc, timeout=60)
        connection.request(method, path, body, {"Host": host} if host else {})
        response = connection.getresponse()
        content = response.read().decode()
        connection.close()
        if response.status == 303:
            return self.ask(response.headers["Location"])
        return response.status, content, path


@pytest.fixture
def visits() -> Visits:
    return Visits(0, "compact")


@pytest.fixture
def browser(visits, tmp_path) -> Iterator[Browser]:
    with (
        Journal(tmp_path / "recordings", most_session_bytes=1 << 20) as journal,
        shop_server(visits, journal, "token", script=b"", port=0) as server,
    ):
        yield Browser(server.address)


def test_a_visit_from_its_first_page_to_the_purchase(browser, visits):
    status, page, path = browser.ask("/")
    assert status == 200
    assert visits.next_task in page
    _, page, path = browser.ask("/visits", "POST")
    assert "Welcome" in page
    _, page, path = browser.ask(f"{path}/search?q={quote('red kettle')}")
    assert path.endswith("?q=red+kettle")
    path = path.partition("?")[0]
    opened = page.split("/do/search_results.")[1].partition('"')[0]
    _, page, path = browser.ask(f"{path}/do/search_results.{opened}")
    for action in ("product.add_to_cart", "cart.checkout"):
        _, page, path = browser.ask(f"{path}/do/{action}", "POST")
    assert "Thank you" in page
    assert "thank-you" in page


def test_a_page_stays_the_same_and_tabs_share_a_cart(browser):
    _, home, start = browser.ask("/visits", "POST")
    _, results, found = browser.ask(f"{start}/do/nav_bar.kettle")
    slugs = [part.partition(".")[0] for part in results.split("/do/search_results.")[1:]]
    carts = []
    for slug in slugs[:2]:  # each in a tab of its own
        _, _, tab = browser.ask(f"{found}/do/search_results.{slug}.view_product")
        carts.append(browser.ask(f"{tab}/do/product.add_to_cart", "POST")[1])
    assert [cart.count("<article") for cart in carts] == [1, 2]
    assert browser.ask(start)[1] == home
    assert browser.ask(found)[1] == results
    assert "Cart (2)" in browser.ask(f"{start}/do/nav_bar.tent")[1]


def test_addresses_that_a_page_does_not_have_are_not_found(browser):
    _, _, start = browser.ask("/visits", "POST")
    visit = start.rpartition("/")[0]
    for path in (f"{start}/do/product.buy_now", f"{start}/do/x", f"{visit}/1", "/visit/x/0", f"{visit}/99999999", "/x"):
        assert browser.ask(path)[0] == 404, path
    assert browser.ask("/", host="evil.example")[0] == 421


def test_a_visit_is_shown_as_the_env_shows_it_once_it_is_recorded(browser):
    _, _, start = browser.ask("/visits", "POST")
    visit = start.split("/")[2]
    assert "Nothing was recorded" in browser.ask(f"/visit/{visit}/session")[1]
    recorded = Recorded()
    recorded.tab("<a id='kettle' href='/kettle'>Red kettle<script>alert(1)</script></a>").click("kettle")
    posted = json.dumps(batch(recorded.events, session=visit)).encode()
    assert browser.ask("/token/batches", "POST", posted)[0] == 200
    status, page, _ = browser.ask(f"/visit/{visit}/session")
    assert status == 200
    assert "click red_kettle" in page
    assert "terminate" in page
    assert "<iframe sandbox " in page
    assert "alert(1)" not in page


def test_a_visit_acts_only_on_its_page():
    visit = Visits(0, "compact").begin()
    for action in (
        Click(name="product.buy_now"),
        Click(name="nav_bar.search_input"),
        TypeAndSubmit(name="x", text="y"),
    ):
        with pytest.raises(BadConfig, match="has no"):
            visit.act(0, action)
    assert isinstance(visit.pages[0], RealisticShop)
