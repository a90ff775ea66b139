"""A person shops in Chromium; what was recorded and collected becomes what they did, on the pages that they saw."""

from collections.abc import Iterator
from contextlib import ExitStack
from difflib import unified_diff
from itertools import zip_longest
from random import Random
from typing import Any
from urllib.parse import urlsplit

import msgspec
import pytest

from replay_sessions import Click, SessionStore, Terminate, TypeAndSubmit
from replay_sessions.__main__ import main
from replay_sessions.demo_shop import SESSIONS_PER_USER, action_probabilities
from replay_sessions.demo_shop.shop import Shop
from replay_sessions.demo_shop.web.server import Visit, Visits, shop_server
from replay_sessions.recorder.journal import Journal
from replay_sessions.recorder.rrweb_bundle import recorder_script
from replay_sessions.schema import Action, Session, reply_action
from replay_sessions.simplify import simplify
from tests.contracts.replayed_logs import assert_the_log_earns_the_maximum
from tests.oracles.browser import launched

pytestmark = pytest.mark.browser

PATIENCE_MS = 300_000
MOST_ACTIONS = 8
SEEN = """() => {
    const copy = document.documentElement.cloneNode(true);
    const fields = document.querySelectorAll("input");
    copy.querySelectorAll("input").forEach((field, place) => field.setAttribute("value", fields[place].value));
    copy.querySelectorAll(".rr-block").forEach((block) => block.remove());
    return "<!DOCTYPE html>" + copy.outerHTML;
}"""
# What a browser tells a page then, but for one that a program drives: there all tabs count as seen.
COMES_INTO_SIGHT = "() => void dispatchEvent(new Event('visibilitychange'))"
ALL_SENT = "() => !Object.keys(localStorage).some((name) => name.startsWith('shop_r1.batch.'))"


@pytest.fixture
def browser(keeps_pages) -> Iterator[Any]:
    """Chromium, with or without its cache of whole pages that the back button returns to."""
    without = ["--disable-back-forward-cache"] if keeps_pages else []
    with launched("--disable-gpu", without=without) as found:
        yield found


class Shopper:
    """One person in one visit, who does what the shop's shoppers would, and notes what they did and saw.

    Args:
        page: A tab of their browser; the first time they come they are asked whether they agree, and who they are.

    Attributes:
        made: Each action, the page that it was done on, and why.
        ways: What kinds of things were done.
    """

    def __init__(self, page: Any, address: str, visits: Visits, chance: Random) -> None:
        self.chance = chance
        self.made: list[tuple[Action, str, str | None]] = []
        self.ways: set[str] = set()
        page.goto(address)
        with page.expect_navigation():
            page.click("text=Begin")
        visit = visits.find(page.url.split("/")[-2])
        assert visit is not None
        self.visit: Visit = visit
        self.tabs = [page]
        self.depths = {page: 0}
        if visit.number % SESSIONS_PER_USER == 0:
            page.click("text=Yes, record")
            page.fill("textarea", visit.persona.text)
            page.click("text=Send")

    @property
    def page(self) -> Any:
        return self.tabs[-1]

    @property
    def shop(self) -> Shop:
        """The shop as it is on the page in sight."""
        return self.visit.pages[int(urlsplit(self.page.url).path.split("/")[-1])]

    def go_shopping(self) -> None:
        """Shops to the end."""
        while True:
            action = self.next_action()
            if isinstance(action, Terminate):
                self.leave()
                return
            self.note(action)
            if isinstance(action, TypeAndSubmit):
                self.search(action.text)
            else:
                self.click(action.name)
            if self.shop.outcome == "purchase":
                self.ways.add("purchase")
                _, seen, why = self.made[-1]
                self.made[-1] = (Click(name=action.name, click_type="purchase"), seen, why)
                self.wait_until_sent()
                return
            self.wander()

    def next_action(self) -> Action:
        history = [{"action": msgspec.json.encode(reply_action(action))} for action, _, _ in self.made]
        person = {"persona": self.visit.persona.text, "goal": self.visit.goal}
        likely = action_probabilities({"page": self.shop.page, "history": history, **person})
        if len(self.made) >= MOST_ACTIONS:
            return Terminate()
        return self.chance.choices(list(likely), list(likely.values()))[0]

    def note(self, action: Action) -> None:
        self.made.append((action, simplify(self.page.evaluate(SEEN)).html, None))

    def search(self, text: str) -> None:
        self.page.click("[name=q]", click_count=3)
        self.page.keyboard.type(text)
        with self.page.expect_navigation():
            if self.chance.random() < 0.5:
                self.ways.add("search by the return key")
                self.page.keyboard.press("Enter")
            else:
                self.ways.add("search by the button")
                self.page.click("text=Search")
        self.depths[self.page] += 1

    def click(self, name: str) -> None:
        words = {"refinements": "refine", "reviews": "reviews", "options": "options", "add_to_cart": "cart"}
        self.ways |= {way for word, way in words.items() if word in name.split(".")}
        element = self.page.locator(f'a[href$="/do/{name}"], form[action$="/do/{name}"] button')
        if name.endswith("view_product") and self.chance.random() < 0.3:
            self.ways.add("two tabs")
            with self.page.context.expect_page() as opened:
                element.click(modifiers=["Control"])
            self.tabs.append(opened.value)
            self.page.wait_for_load_state()
            self.depths[self.page] = 0
            self.page.bring_to_front()
            return
        with self.page.expect_navigation():
            element.click()
        self.depths[self.page] += 1
        if name == "product.add_to_cart":
            self.page.fill("textarea", f"I want it, {len(self.made)}.")
            self.page.click("text=Send")
            self.made[-1] = (*self.made[-1][:2], f"I want it, {len(self.made)}.")

    def wander(self) -> None:
        """Goes back, or to another tab, which is no action."""
        if self.depths[self.page] and self.chance.random() < 0.25:
            self.ways.add("back")
            self.page.go_back(wait_until="commit")
            self.depths[self.page] -= 1
            self.page.wait_for_function("() => document.readyState === 'complete'")
            how = self.page.evaluate("() => performance.getEntriesByType('navigation')[0].type")
            self.ways.add("loaded again" if how == "back_forward" else "kept whole")
        elif len(self.tabs) > 1 and self.chance.random() < 0.4:
            self.tabs.insert(0, self.tabs.pop())
            self.page.bring_to_front()
            self.page.evaluate(COMES_INTO_SIGHT)
        self.page.wait_for_function("() => window.ShopR1?.isRecording()")

    def leave(self) -> None:
        self.wait_until_sent()
        self.note(Terminate())
        if self.chance.random() < 0.5:
            self.ways.add("leave by the link")
            self.page.click("text=Leave the shop")
        else:
            self.ways.add("leave by closing")

    def wait_until_sent(self) -> None:
        self.page.wait_for_timeout(1_100)
        self.page.wait_for_function(ALL_SENT)


@pytest.mark.parametrize(
    ("page_size", "sessions", "keeps_pages"), [("small", 12, False), ("compact", 20, False), ("compact", 4, True)]
)
def test_imported_sessions_equal_the_actions_in_the_browser(browser, page_size, sessions, keeps_pages, tmp_path):
    visits = Visits(3, page_size)
    shoppers: list[Shopper] = []
    with ExitStack() as running:
        journal = running.enter_context(Journal(tmp_path / "recordings", most_session_bytes=1 << 28))
        script = recorder_script()
        server = running.enter_context(shop_server(visits, journal, "token", script=script, port=0))
        for first in range(0, sessions, SESSIONS_PER_USER):
            with browser.new_context(viewport={"width": 900, "height": 700}) as context:
                context.set_default_timeout(PATIENCE_MS)
                for number in range(first, first + SESSIONS_PER_USER):
                    shopper = Shopper(context.new_page(), server.address, visits, Random(f"{page_size} {number}"))
                    shopper.go_shopping()
                    shoppers.append(shopper)
                    for tab in shopper.tabs:
                        tab.close()
    words = ["import", "rrweb", str(tmp_path / "recordings"), "--terminate-at-end", "--workers", "1"]
    assert main([*words, "--out", str(tmp_path / "store")]) == 0
    store = SessionStore.open(tmp_path / "store")
    assert len(store) == sessions
    different = {shopper.visit.number: differences(shopper, store.session(shopper.visit.id)) for shopper in shoppers}
    assert {number: told for number, told in different.items() if told} == {}
    for shopper in shoppers:
        session = store.session(shopper.visit.id)
        assert session.goal == shopper.visit.goal
        assert session.persona.text == shopper.visit.persona.text
        assert not any(step.gap for step in session.steps)
    assert len({session.user_id for session in store.sessions()}) == sessions // SESSIONS_PER_USER
    assert store.manifest.left_out_steps == {}
    assert not store.manifest.rejected
    ways = {way: sum(way in shopper.ways for shopper in shoppers) for way in WAYS[page_size]}
    assert sessions < 10 or all(ways.values()), ways
    assert keeps_pages == any("kept whole" in shopper.ways for shopper in shoppers)
    assert_the_log_earns_the_maximum(store)


EVERYWHERE = ("search by the return key", "search by the button", "options", "back", "two tabs", "purchase")
WAYS = {
    "small": (*EVERYWHERE, "refine", "reviews", "leave by the link", "leave by closing"),
    "compact": (*EVERYWHERE, "refine", "reviews", "cart", "leave by the link", "leave by closing"),
}


def differences(shopper: Shopper, session: Session) -> list[str]:
    """What was made and what was imported, where that is not the same."""
    made = [(str(action), page, why) for action, page, why in shopper.made]
    read = [(str(step.action), step.page, step.rationale) for step in session.steps]
    nothing = ("", "", None)
    told = []
    for number, (one, other) in enumerate(zip_longest(made, read, fillvalue=nothing)):
        if one != other:
            lines = unified_diff(one[1].splitlines(), other[1].splitlines(), lineterm="", n=0)
            told.append(f"step {number}: {one[::2]} {other[::2]} {list(lines)[3:9]}")
    return told
