"""The report in headless Chromium, as a person uses it, with the network watched and hostile pages in its frames."""

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from benchmarks.leaderboard.ranking import LeaderboardConfig, run_leaderboard
from benchmarks.report.__main__ import main
from tests.benchmarks.report.conftest import HOSTILE, blocks_of
from tests.demo_stores import demo_store_at
from tests.oracles.browser import browser as browser
from tests.stores import store_at

pytestmark = pytest.mark.browser

DESKTOP = {"width": 1280, "height": 800}
PHONE = {"width": 390, "height": 844}
PATIENCE_S = 20
LETTERS = "ABCD"
MARKS = """nodes => nodes.map(node => [
    (node.matches('[name]') ? node : node.querySelector('[name]')).getAttribute('name'), node.dataset.mark])"""
# What can be acted on and lies under the line around another's mark (3 to 5 pixels, 2 away from it).
COVERED = """[...document.querySelectorAll('[data-mark]')].flatMap(mark => {
    const own = mark.getBoundingClientRect(), line = 7;
    return [...document.querySelectorAll('[data-acts]')].filter(other => {
        if (mark.contains(other) || other.contains(mark)) return false;
        const at = other.getBoundingClientRect();
        const across = at.left < own.right + line && at.right > own.left - line;
        return across && at.top < own.bottom + line && at.bottom > own.top - line;
    }).map(other => `${mark.textContent} over ${other.textContent}`);
})"""
LARGEST_BYTES = 20_000_000

PLACES = """[...document.querySelectorAll('[name]')].map(node => node.getBoundingClientRect())
    .map(at => [at.x + Math.min(at.width / 2, 40), at.y + at.height / 2])"""


class Visit:
    """A report open in a page, and what the page said and asked for meanwhile."""

    def __init__(self, page: Any, report: Path) -> None:
        self.page, self.address = page, report.resolve().as_uri()
        self.said: list[str] = []
        self.requests: list[str] = []
        page.on("console", lambda message: self.said.append(f"{message.type}: {message.text}"))
        page.on("pageerror", lambda error: self.said.append(f"error: {error}"))
        page.on("request", lambda request: self.requests.append(request.url))
        page.on("dialog", lambda dialog: self.said.append(f"dialog: {dialog.message}"))
        page.context.on("page", lambda other: self.requests.append(f"new window {other.url}"))
        self.go("")

    def go(self, fragment: str) -> None:
        self.page.goto(self.address + fragment)

    def opened(self) -> tuple[str, int, str]:
        """Session, step and agent that the address names."""
        parts = self.page.evaluate("location.hash.slice(1).split('/').map(decodeURIComponent)")
        return parts[1], int(parts[2]), parts[3] if len(parts) > 3 else ""

    def count(self) -> tuple[int, int]:
        """Sessions and steps that the filters let through."""
        words = self.page.inner_text("#count").replace(",", "").split()
        return int(words[0]), int(words[-2])

    def wait_for(self, expression: str) -> None:
        """Until it is true; asked again and again from here, since the report's policy lets nothing evaluate there."""
        deadline = time.monotonic() + PATIENCE_S
        while not self.page.evaluate(expression):
            assert time.monotonic() < deadline, f"never true: {expression}"
            self.page.wait_for_timeout(20)

    def frame(self) -> Any:
        """The document in the frame."""
        self.page.wait_for_selector("iframe.frame")
        found = self.page.query_selector("iframe.frame").content_frame()
        found.wait_for_load_state()
        return found


Opens = Callable[..., Visit]


@pytest.fixture
def visit(browser) -> Iterator[Opens]:
    """Opens a report; at the end nothing may have been said on the console or asked of anybody."""
    visits: list[Visit] = []

    def begin(report: Path, viewport: dict[str, int] = DESKTOP, **context: Any) -> Visit:
        page = browser.new_context(viewport=viewport, **context).new_page()
        visits.append(Visit(page, report))
        return visits[-1]

    yield begin
    for one in visits:
        assert one.said == []
        assert {address for address in one.requests if address.split("#")[0] != one.address} <= {
            "about:srcdoc",
            "data:,",
        }
        one.page.context.close()


def test_the_first_screen_names_the_best_agent(report, visit):
    page = visit(report).page
    assert page.inner_text("h1").startswith("copy_match: ")
    assert not page.is_visible("#sessions")
    bottom = page.locator(".ranked").first.bounding_box()
    assert bottom["y"] + bottom["height"] < DESKTOP["height"]


def test_a_link_to_a_step_opens_it_with_its_agent(report, visit):
    blocks = blocks_of(report)
    session = blocks["index"]["sessions"][7]
    label = blocks["index"]["agents"][1]["label"]
    one = visit(report)
    one.go(f"#session/{session['id']}/2/{quote(label, safe='')}")
    one.page.wait_for_selector("iframe.frame")
    assert one.page.inner_text(".session-head h2") == session["id"]
    assert one.page.inner_text(".stepper [aria-current]").startswith("3 ")
    assert one.page.locator(".answer:not(.faded) [data-agent='1']").count() == 1
    one.go("#session/nobody%20knows/1")
    one.wait_for("document.querySelector('#viewer').innerText.includes(\"No session 'nobody knows'\")")
    one.go("#session/%E0%A4%A")  # a broken escape
    one.page.wait_for_selector("iframe.frame")


def test_the_page_shows_the_logged_element_and_every_choice(report, visit):
    blocks = blocks_of(report)
    one = visit(report)
    checked = 0
    for session in blocks["index"]["sessions"][:6]:
        steps = blocks[f"sessions-{session['chapter']}"][session["place"]]
        for number, step in enumerate(steps):
            one.go(f"#session/{session['id']}/{number}")
            one.wait_for(f"document.title === '{session['id']}, step {number + 1}'")
            marks = one.frame().eval_on_selector_all("[data-mark]", MARKS)
            expected: dict[str, list[str]] = {}
            if step["logged"].get("name"):
                expected[step["logged"]["name"]] = ["logged"]
            for letter, answer in zip(LETTERS, step["answers"], strict=bool(step["answers"])):
                if name := answer.get("action", {}).get("name"):
                    words = expected.setdefault(name, [])
                    words += [letter] if "chosen" in words else ["chosen", letter]
            assert {name: mark.split() for name, mark in marks} == expected
            checked += len(marks)
    assert checked > 20


def test_the_first_mark_is_scrolled_into_view(visit, tmp_path, long_report):
    one = visit(long_report)
    one.go("#sessions")
    frame = one.frame()
    one.page.wait_for_timeout(300)
    assert frame.evaluate("scrollY") > 500
    top = frame.eval_on_selector("[data-mark]", "node => node.getBoundingClientRect().top")
    assert 0 <= top < DESKTOP["height"] / 2


@pytest.fixture(scope="module")
def long_report(tmp_path_factory) -> Path:
    """A page whose logged element stands far down."""
    from replay_sessions.schema import Click, Session, Step  # noqa: PLC0415 - of this fixture alone

    folder = tmp_path_factory.mktemp("long")
    page = "<html><body>" + "<p>line</p>" * 200 + "<a name='far'>far</a>" + "<p>line</p>" * 200 + "</body></html>"
    step = Step(page=page, action=Click(name="far"))
    sessions = (
        Session(session_id=f"s{number}", user_id=f"u{number}", steps=(step, step), source="test") for number in range(3)
    )
    store_at(folder / "store", sessions)
    run_leaderboard(
        LeaderboardConfig(agents=("random",), out=str(folder / "b"), store=str(folder / "store"), split="all")
    )
    assert main([str(folder / "b")]) == 0
    return folder / "b" / "report.html"


def test_keys_walk_steps_sessions_and_matches(report, visit):
    sessions = blocks_of(report)["index"]["sessions"]
    one = visit(report)
    page = one.page
    page.keyboard.press("f")
    page.wait_for_selector("iframe.frame")
    first, step, _ = one.opened()
    assert (first, step) == (sessions[0]["id"], 1)  # the first action is nobody's to answer
    page.keyboard.press("ArrowLeft")
    one.wait_for("document.title.endsWith('step 1')")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    one.wait_for("document.title.endsWith('step 3')")
    page.keyboard.press("j")
    one.wait_for(f"document.title.startsWith({sessions[1]['id']!r})")
    page.keyboard.press("k")
    one.wait_for(f"document.title.startsWith({sessions[0]['id']!r})")
    page.keyboard.press("2")
    one.wait_for("location.hash.split('/').length === 4")
    page.keyboard.press("0")
    one.wait_for("location.hash.split('/').length === 3")
    page.keyboard.press("n")
    one.wait_for("document.title.endsWith('step 3')")
    page.keyboard.press("p")
    one.wait_for("document.title.endsWith('step 2')")
    page.keyboard.press("/")
    one.wait_for("document.activeElement.id === 'search'")
    page.keyboard.type("jk?n2")  # words, not keys
    assert page.input_value("#search") == "jk?n2"
    page.keyboard.press("Escape")
    one.wait_for("document.activeElement.id !== 'search'")
    page.keyboard.press("?")
    assert page.is_visible("#help")
    page.keyboard.press("Escape")
    assert not page.is_visible("#help")
    page.keyboard.press("f")
    one.wait_for("!document.querySelector('#figures').hidden")


def test_a_click_into_the_page_leaves_the_keys_where_they_were(report, visit):
    one = visit(report)
    one.page.keyboard.press("f")
    one.wait_for("document.title.endsWith('step 2')")
    one.page.locator("iframe.frame").click(position={"x": 100, "y": 100})
    one.wait_for("document.activeElement === document.body")
    one.page.keyboard.press("ArrowRight")
    one.wait_for("document.title.endsWith('step 3')")


def test_only_compared_agents_are_listed_marked_and_able_to_disagree(report, visit):
    one = visit(report)
    one.go("#sessions")
    one.page.wait_for_selector("iframe.frame")
    one.page.click("#agents summary")
    assert one.page.inner_text("#agents-count") == "4 of 4"  # only baselines are here
    for number in (1, 2, 3):
        one.page.uncheck(f"#agent-boxes input[value='{number}']")
    one.wait_for("document.querySelectorAll('[data-agent]').length > 0")
    one.wait_for("[...document.querySelectorAll('.said')].every(line => line.dataset.agent === '0')")
    first = one.page.inner_text("#list li:first-child")
    assert "predicted" in first and "right: A" in first.replace("\u00a0", " ") and "B" not in first.split("right:")[1]
    one.page.check("#filter-disagree")
    one.wait_for("document.querySelector('#count').textContent.startsWith('0 of')")
    one.page.check("#agent-boxes input[value='2']")
    one.wait_for("!document.querySelector('#count').textContent.startsWith('0 of')")


def test_marks_cover_no_neighbour(report, visit):
    sessions = blocks_of(report)["index"]["sessions"][:4]
    one = visit(report)
    checked = 0
    for session in sessions:
        for number, _ in enumerate(session["steps"]):
            one.go(f"#session/{session['id']}/{number}")
            one.wait_for(f"document.title === {session['id'] + f', step {number + 1}'!r}")
            checked += one.frame().locator("[data-mark]").count()
            assert one.frame().evaluate(COVERED) == []
    assert checked > 10


def test_every_filter_leaves_the_steps_that_it_names(report, visit):
    blocks = blocks_of(report)
    index = blocks["index"]
    codes = [outcome["code"] for outcome in index["outcomes"]]
    one = visit(report)
    one.go("#sessions")
    one.page.wait_for_selector("iframe.frame")

    def expect(matches: Callable[[Any, Any, Any], bool], **filters: str | bool) -> None:
        for name, value in filters.items():
            if isinstance(value, bool):
                one.page.set_checked(f"#filter-{name}", value)
            elif name in ("agent", "answer", "type"):
                one.page.select_option(f"#filter-{name}", value)
            else:
                one.page.fill("#search" if name == "search" else f"#filter-{name}", value)
        found = []
        for session in index["sessions"]:
            steps = blocks[f"sessions-{session['chapter']}"][session["place"]]
            hits = [
                listed
                for listed, step in zip(session["steps"], steps, strict=True)
                if listed[1] and matches(session, listed, step)
            ]
            found += [len(hits)] if hits else []
        assert 0 < sum(found) < 5 * len(index["sessions"]), "a filter that lets all or nothing through tests nothing"
        one.wait_for(f"document.querySelector('#count').textContent.startsWith('{len(found)} of')")
        assert one.count() == (len(found), sum(found))
        one.page.click("#clear")
        one.wait_for("document.querySelector('#count').textContent.startsWith('60 of')")

    expect(lambda s, listed, step: codes[listed[1][1]] != "right", agent="1", answer="wrong")
    expect(lambda s, listed, step: codes[listed[1][2]] == "left_early", agent="2", answer="left_early")
    expect(lambda s, listed, step: any(codes[outcome] == "typed" for outcome in listed[1]), answer="typed")
    expect(lambda s, listed, step: listed[0] == 1, type="1")
    expect(lambda s, listed, step: len(set(listed[2])) >= 2, disagree=True)
    user = index["sessions"][9]["user"]
    expect(lambda s, listed, step: s["user"] == user, shopper=user)
    sought = "pagination.next"
    expect(
        lambda s, listed, step: (
            sought in step["logged"].get("name", "") or any(sought in a["reply"] for a in step["answers"])
        ),
        search=sought.upper(),
    )


def test_a_bar_of_the_first_screen_opens_its_steps(report, visit):
    one = visit(report)
    one.page.click(".ranked .best .segment.other_element")
    one.page.wait_for_selector("iframe.frame")
    assert one.page.input_value("#filter-answer") == "other_element"
    label = one.page.locator("#filter-agent option:checked").inner_text()
    assert label.endswith("copy_match")
    assert one.page.locator("[data-outcome='other_element']:not(.faded) .said", has_text="copy_match").count() == 1


def test_hostile_content_stays_in_its_frame(hostile_report, visit):
    sessions = blocks_of(hostile_report)["index"]["sessions"]
    one = visit(hostile_report)
    page = one.page
    assert HOSTILE.split()[0] in page.inner_text("#rationales")
    for number in range(4):
        one.go(f"#session/{quote(sessions[0]['id'], safe='')}/{number}")
        one.wait_for(f"document.title.endsWith('step {number + 1}')")
        frame = one.frame()
        assert frame.evaluate("document.scripts.length") == 0
        box = page.locator("iframe.frame").bounding_box()
        assert page.locator("iframe").count() == 1
        covered = page.evaluate(
            "([x, y]) => document.elementFromPoint(x, y).tagName", [box["x"] - 8, box["y"] + box["height"] / 2]
        )
        assert covered != "IFRAME"
        for x, y in frame.evaluate(PLACES):  # by the mouse alone: playwright's own clicks run scripts in the frame
            page.mouse.click(box["x"] + x, box["y"] + y)
        page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.wait_for_timeout(300)
    assert page.evaluate("window.broken") is None
    assert page.url.startswith(one.address)
    page.fill("#search", "</script>")
    one.wait_for("document.querySelector('#count').textContent.startsWith('6 of 6')")


def test_a_phone_has_room_for_it(report, visit):
    one = visit(report, viewport=PHONE, has_touch=True, color_scheme="dark")
    assert one.page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    one.go("#sessions")
    one.page.wait_for_selector("iframe.frame")
    assert one.page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert not one.page.is_visible("#search")
    one.page.click("#finder-toggle")
    assert one.page.is_visible("#search")
    one.page.locator("#list button").nth(3).click()
    assert not one.page.is_visible("#search")


def test_light_and_dark_follow_the_system_and_the_button(report, visit):
    colour = "getComputedStyle(document.body).backgroundColor"
    light, dark = visit(report, color_scheme="light").page, visit(report, color_scheme="dark").page
    assert (light.evaluate(colour), dark.evaluate(colour)) == ("rgb(255, 255, 255)", "rgb(20, 23, 26)")
    light.click("#theme")
    assert light.evaluate(colour) == "rgb(20, 23, 26)"


def test_a_thousand_sessions_fit_and_open_at_once(tmp_path, visit):
    demo_store_at(tmp_path / "store", 1000, seed=3)
    agents = ("random,majority,copy_match,oracle T 0.6=oracle?temperature=0.6,oracle greedy=oracle?temperature=0",)
    run_leaderboard(
        LeaderboardConfig(
            agents=agents,
            out=str(tmp_path / "b"),
            store=str(tmp_path / "store"),
            split="all",
            likelihood=True,
        )
    )
    assert main([str(tmp_path / "b")]) == 0
    report = tmp_path / "b" / "report.html"
    assert report.stat().st_size < LARGEST_BYTES
    one = visit(report)
    one.go("#sessions")
    one.page.wait_for_selector("iframe.frame")
    assert one.page.inner_text("#count").startswith("1,000 of 1,000 sessions")
    listed = "document.querySelectorAll('#list li').length"
    few = one.page.evaluate(listed)
    one.page.evaluate("document.querySelector('#list').scrollTop = 1e9")
    one.wait_for(f"{listed} > {few}")
    last = blocks_of(report)["index"]["sessions"][-1]["id"]
    one.go(f"#session/{last}/1")
    one.wait_for(f"document.title.startsWith({last!r})")
    assert last in one.page.text_content("#list [aria-current]")
    list_box, at = (one.page.locator(place).bounding_box() for place in ("#list", "#list [aria-current]"))
    assert list_box["y"] - 1 <= at["y"] <= list_box["y"] + list_box["height"]
