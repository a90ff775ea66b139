"""The local page in a real browser: a person gets through a session, and no page of a store gets out of its frame."""

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import msgspec
import pytest

from agents.human import sitting
from agents.human.introduction import CONSENT
from agents.registry import make_agent
from replay_sessions.demo_shop import SOURCE, generate_sessions
from replay_sessions.schema import Action, Click, Session, Step, Terminate, TypeAndSubmit
from replay_sessions.store import SessionStore
from shop_env.evaluation.evaluate import evaluate
from shop_env.replies import Reply, parse_reply
from tests.agents.human.conftest import Client, Serve, store_of
from tests.agents.human.test_command import start
from tests.oracles.browser_visibility import chromium

pytestmark = pytest.mark.browser

HOSTILE_PAGES = Path(__file__).parents[2].joinpath("fixtures", "hostile_pages.txt").read_text("utf-8").splitlines()
SEED = 8  # two short sessions in which all kinds of actions occur
MARKER = "https://evil.example"
WIDTHS = {"desktop": (1280, 800), "phone": (390, 844)}


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    playwright = pytest.importorskip("playwright.sync_api", reason="pip install 'shop-r1[browser]'")
    if chromium() is None:
        pytest.skip("no chromium: apt-get install chromium")
    with playwright.sync_playwright() as running:
        launched = running.chromium.launch(executable_path=chromium(), args=["--no-sandbox"])
        yield launched
        launched.close()


@pytest.fixture
def page(browser: Any) -> Iterator[Any]:
    """A browser's page on which an error of our own scripts fails the test."""
    with browser.new_context(viewport=dict(zip(("width", "height"), WIDTHS["desktop"], strict=True))) as context:
        opened = context.new_page()
        errors: list[str] = []
        opened.on("pageerror", lambda error: errors.append(str(error)))
        yield opened
        assert errors == []


def open_step(page: Any, client: Client) -> None:
    page.goto(client.server.address)
    wait_for_step(page, 0)


def wait_for_step(page: Any, answered: int) -> None:
    """Waits until a step is shown, or the end."""
    page.wait_for_function(
        """(answered) => document.querySelector("#message:not([hidden])")
            || (document.querySelector("#progress").textContent.includes(` ${answered} step`)
                && !document.querySelector("#work").inert)""",
        arg=answered,
    )


def click_on_page(page: Any, name: str) -> None:
    """Clicks where an element is seen on the page in the frame."""
    place = page.evaluate(
        """(name) => {
            const frame = document.getElementById("frame");
            const all = [...frame.contentDocument.querySelectorAll("[data-acts]")];
            const element = all.find((one) => one.getAttribute("name") === name);
            element.scrollIntoView({ block: "center" });
            const [inner, outer] = [element.getBoundingClientRect(), frame.getBoundingClientRect()];
            return [outer.left + inner.left + 10, outer.top + inner.top + inner.height / 2];
        }""",
        name,
    )
    page.mouse.click(*place)


def by_mouse(page: Any, action: Action, rationale: str) -> None:
    if isinstance(action, Terminate):
        page.click("#leave")
    else:
        click_on_page(page, action.name)
    if isinstance(action, TypeAndSubmit):
        page.fill("#text", action.text)
    page.click("#why summary")
    page.fill("#rationale", rationale)
    page.click("#submit")


def by_keyboard(page: Any, action: Action, rationale: str) -> None:
    if isinstance(action, Terminate):
        page.keyboard.press("0")
    else:
        page.keyboard.press("/")
        page.keyboard.type(action.name)
        page.keyboard.press("Enter")
    if isinstance(action, TypeAndSubmit):
        page.keyboard.type(action.text)
    elif not page.evaluate("document.activeElement.id === 'submit'"):
        raise AssertionError("Enter would not submit")
    for _ in range(3):
        if page.evaluate("document.activeElement.localName === 'summary'"):
            break
        page.keyboard.press("Tab" if isinstance(action, TypeAndSubmit) else "Shift+Tab")
    page.keyboard.press("Enter")  # opens "Why?"
    page.keyboard.press("Tab")
    page.keyboard.type(rationale)
    page.keyboard.press("Control+Enter")


@pytest.mark.parametrize("way", [by_mouse, by_keyboard])
def test_a_session_driven_in_the_browser_is_recorded_as_the_agent_that_does_the_same(
    page: Any, serve: Serve, tmp_path: Path, way: Any
) -> None:
    sessions = [msgspec.structs.replace(one, official_split="test") for one in generate_sessions(2, seed=SEED)]
    shop_store = store_of(tmp_path / "store", sessions, SOURCE)
    # The shoppers' own policy searches, filters, chooses and leaves; with a temperature, so that all of these occur.
    wanted = evaluate(make_agent("oracle?temperature=1"), shop_store, "test")
    kinds = {type(parse_reply(record.reply or "").action) for record in wanted}  # type: ignore[union-attr]
    assert kinds == {Click, TypeAndSubmit, Terminate}
    client = serve(shop_store)
    open_step(page, client)
    for answered, record in enumerate(wanted):
        wait_for_step(page, answered)
        reply = parse_reply(record.reply or "")
        assert isinstance(reply, Reply)
        way(page, reply.action, reply.rationale)
    page.wait_for_selector("#message:not([hidden])")
    assert "Thank you" in page.inner_text("#message")
    person = make_agent(f"human?replies={tmp_path / 'people'}")
    answers = {record.reply for record in evaluate(person, shop_store, "test")}
    assert answers == {record.reply for record in wanted}
    recording = sitting_of(client)
    assert [recording[1].reply(step.key) for step in recording[0].steps] == [record.reply for record in wanted]
    assert evaluate(Recorded(recording), shop_store, "test") == wanted


class Recorded:
    """Replays by the order of the steps, so that equal pages keep their own replies."""

    def __init__(self, recording: Any) -> None:
        steps, kept = recording
        self._replies = iter([kept.reply(step.key) for step in steps.steps])

    def reset(self, *, seed: int | None = None) -> None:
        """Nothing to forget."""

    def act(self, observation: Any) -> str:
        return str(next(self._replies))


def sitting_of(client: Client) -> Any:
    return client.server.sitting._recording, client.server.sitting._replies


class Listener:
    """A server that nothing should ever ask."""

    def __init__(self) -> None:
        heard = self.heard = []  # type: list[str]

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                heard.append(f"{self.command} {self.path}")
                self.send_response(200)
                self.send_header("Content-Length", "0")
                self.end_headers()

            do_POST = do_GET  # noqa: N815 - the name is the base class's

            def log_message(self, *_: object) -> None:
                """Says nothing."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()


@pytest.fixture
def listener() -> Iterator[Listener]:
    listening = Listener()
    yield listening
    listening.server.shutdown()
    listening.server.server_close()


def planted(page: str, listener: Listener) -> str:
    """A hostile page that would be heard: it asks the listener, and marks the window that it can reach."""
    run = f"top.hacked=1;new Image().src='{listener.address}/run'"
    heard = page.replace(MARKER, listener.address).replace("alert(1)", run)
    return f'{heard}<a name="link" href="{listener.address}/link">link</a>'


COVERING = (
    "<style>body::before{content:'';position:fixed;inset:0;z-index:99;background:red}</style>"
    f'<a style="position:fixed;inset:0;background:red" name="cover" target="_top" href="{MARKER}/top">cover</a>'
)
FORM = f'<form action="{MARKER}/form" target="_top"><input name="q"><button name="go">go</button></form>'
LOADING = (
    f'<img src="{MARKER}/img" onerror="alert(1)"><link rel="stylesheet" href="{MARKER}/css">'
    f'<link rel="prefetch" href="{MARKER}/p"><link rel="preconnect" href="{MARKER}">'
    f'<script src="{MARKER}/js"></script><script>alert(1)</script><iframe src="{MARKER}/frame"></iframe>'
    f'<p style="background:url({MARKER}/background)">x</p><style>@import "{MARKER}/import";</style>'
)
REFRESH = f'<meta http-equiv="refresh" content="0;url={MARKER}/refresh"><p>x</p>'


@pytest.mark.parametrize("is_cleaned", [True, False], ids=["cleaned", "by frame and policy alone"])
def test_hostile_pages_neither_run_nor_leave_their_frame(
    page: Any,
    serve: Serve,
    listener: Listener,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    is_cleaned: bool,
) -> None:
    """Also where cleaning let everything through: the frame's sandbox and the page's policy hold by themselves."""
    pages = [planted(one, listener) for one in (COVERING, FORM, LOADING, REFRESH, *HOSTILE_PAGES)]
    if not is_cleaned:
        monkeypatch.setattr(sitting, "page_document", lambda html, **_: html)
    steps = tuple(Step(page=one, action=Terminate()) for one in pages)
    session = Session(session_id="one", user_id="u", steps=steps, source="planted", official_split="test")
    client = serve(store_of(tmp_path / "store", [session]), first_action=True)
    popups: list[Any] = []
    page.on("dialog", lambda dialog: (popups.append(dialog.message), dialog.dismiss()))
    page.context.on("page", lambda opened: popups.append(opened.url))
    asked: set[str] = set()
    # What the policy stops is a request to playwright too, which fails.
    page.on("requestfinished", lambda request: asked.add(f"{request.method} {request.url}"))
    open_step(page, client)
    for number in range(len(pages)):
        wait_for_step(page, number)
        page.wait_for_timeout(60)
        box = page.locator("#scroll").bounding_box()
        for x in (0.1, 0.5):
            page.mouse.click(box["x"] + box["width"] * x, box["y"] + 40)
        page.keyboard.press("Tab")
        page.keyboard.press("Enter")
        page.mouse.click(box["x"] + 30, box["y"] + box["height"] - 20)
        if number:
            look_at_page_before(page)
        where = "(frame) => document.querySelector(frame).contentDocument?.location.href"
        assert page.evaluate(where, "#frame") == "about:srcdoc"
        # Where no glass is in front, a link that was not cleaned away ends on the browser's page "blocked".
        assert page.evaluate(where, "#past iframe") in (
            "about:srcdoc",
            None if number and not is_cleaned else "about:blank",
        )
        assert page.url == client.server.address
        assert not page.evaluate("'hacked' in window")
        page.keyboard.press("Escape")
        page.click("#leave")
        page.click("#submit")
    page.wait_for_selector("#message:not([hidden])")
    assert listener.heard == []
    assert popups == []
    asked = {one.replace(client.server.address, "/TOKEN/") for one in asked if client.server.address in one}
    files = {f"GET /TOKEN/{name}" for name in ("", "page.css", "page.js", "choices.js", "shown_page.js")}
    past = {f"GET /TOKEN/past/{number}" for number in range(len(pages) - 1)}
    assert asked == files | past | {"GET /TOKEN/step", "POST /TOKEN/prediction"}


def look_at_page_before(page: Any) -> None:
    """Opens the page of the step before, which no glass covers, and clicks and types in it."""
    page.click("#history li:last-child button")
    page.wait_for_selector("#past[open]")
    page.wait_for_timeout(60)
    box = page.locator("#past iframe").bounding_box()
    for x in (30, 80):
        page.mouse.click(box["x"] + x, box["y"] + 40)
        page.keyboard.press("Tab")
        page.keyboard.press("Enter")
    page.click("#past-close")


def test_the_same_pages_are_heard_where_nothing_guards(browser: Any, listener: Listener) -> None:
    """What the test above listens for does happen: else it would prove nothing."""
    for hostile, heard in ((LOADING, "GET /run"), (REFRESH, "GET /refresh"), (LOADING, "GET /css")):
        with browser.new_context() as context:
            page = context.new_page()
            page.set_content(planted(hostile, listener), wait_until="load")
            page.wait_for_timeout(500)
        assert heard in listener.heard


def test_another_site_cannot_frame_or_ask_the_page(page: Any, serve: Serve, shop_store: SessionStore) -> None:
    client = serve(shop_store)
    page.goto("about:blank")
    status = page.evaluate(
        """async (address) => {
            try { return (await fetch(address + "step")).status } catch { return "refused" }
        }""",
        client.server.address,
    )
    assert status == "refused"
    page.set_content(f'<iframe id="f" src="{client.server.address}"></iframe>')
    page.wait_for_timeout(300)
    assert page.frames[-1].evaluate("document.querySelector('#work') === null")


CONTRAST = """() => {
    const channels = (text) => text.match(/[\\d.]+/g).map(Number);
    const linear = (v) => v <= 10.31 ? v / 255 / 12.92 : ((v / 255 + .055) / 1.055) ** 2.4;
    const light = ([r, g, b]) => .2126 * linear(r) + .7152 * linear(g) + .0722 * linear(b);
    const behind = (element) => {
        for (let one = element; one; one = one.parentElement) {
            const colour = channels(getComputedStyle(one).backgroundColor);
            if (colour.length === 3 || colour[3] === 1) return colour;
        }
        return matchMedia("(prefers-color-scheme: dark)").matches ? [18, 18, 18] : [255, 255, 255];
    };
    const poor = [];
    for (const root of [document, document.getElementById("frame").contentDocument]) {
        for (const element of root.querySelectorAll("body, body *")) {
            const says = [...element.childNodes].some((node) => node.nodeType === 3 && node.data.trim());
            if (!says || !element.checkVisibility() || element.disabled) continue;
            const both = [light(channels(getComputedStyle(element).color)), light(behind(element))];
            const ratio = (Math.max(...both) + .05) / (Math.min(...both) + .05);
            if (ratio < 4.5) poor.push(`${element.localName} ${element.textContent.slice(0, 30)} ${ratio.toFixed(2)}`);
        }
    }
    return poor;
}"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", WIDTHS)
def test_all_text_can_be_read_and_nothing_is_wider_than_the_window(
    browser: Any, serve: Serve, shop_store: SessionStore, scheme: str, width: str
) -> None:
    client = serve(shop_store)
    client.predict(0, {"type": "terminate"})
    size = dict(zip(("width", "height"), WIDTHS[width], strict=True))
    with browser.new_context(viewport=size, color_scheme=scheme) as context:
        page = context.new_page()
        page.goto(client.server.address)
        wait_for_step(page, 1)
        for tab in ("page", "list", "shopper") if width == "phone" else ("page",):
            if width == "phone":
                page.click(f'#tabs [data-tab="{tab}"]')
            assert page.evaluate(CONTRAST) == []
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
            assert page.evaluate("document.documentElement.scrollHeight <= innerHeight")
            assert page.is_visible("#submit")


def fits(page: Any) -> bool:
    """Whether all text can be read and nothing is wider than the window or, where a person acts, below it."""
    buttons = "[...document.querySelectorAll('button')].filter(one => one.checkVisibility())"
    below = f"{buttons}.filter(one => one.getBoundingClientRect().bottom > innerHeight).length"
    wide = page.evaluate("document.documentElement.scrollWidth > innerWidth")
    return page.evaluate(CONTRAST) == [] and not wide and page.evaluate(below) == 0


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", WIDTHS)
def test_a_person_agrees_practises_answers_and_sees_the_result(
    browser: Any, serve: Serve, tmp_path: Path, scheme: str, width: str
) -> None:
    card = (
        '<li><a name="results.{0}_kettle.title">{0} kettle</a><button name="results.{0}_kettle.add">Add</button></li>'
    )
    steps = (
        Step(page=f"<ul>{card.format('red')}{card.format('blue')}</ul>", action=Click(name="results.red_kettle.add")),
    )
    session = Session(session_id="one", user_id="u", steps=steps, source="planted", official_split="test")
    client = serve(store_of(tmp_path / "store", [session]), first_action=True, consent=CONSENT)
    size = dict(zip(("width", "height"), WIDTHS[width], strict=True))
    with browser.new_context(viewport=size, color_scheme=scheme) as context:
        page = context.new_page()
        page.goto(client.server.address)
        page.wait_for_selector("#message:not([hidden])")
        assert "Taking part is voluntary" in page.inner_text("#message") and fits(page)
        page.click("#message button >> text=I agree")
        page.wait_for_selector("#work:not([hidden]):not([inert])")
        assert page.inner_text("#progress") == "Practice 1 of 2"
        assert "not recorded" in page.inner_text("#prediction") and fits(page)
        assert page.locator(".narrow").is_visible() is (width == "phone")  # the goal, which else is behind a tab
        page.keyboard.press("3")
        page.fill("#text", "kettle")
        page.click("#submit")
        page.wait_for_selector("#message:not([hidden])")
        assert "The shopper did the same." in page.inner_text("#message") and fits(page)
        page.close()  # and goes on where it was
        page = context.new_page()
        page.goto(client.server.address)
        page.wait_for_selector("#work:not([hidden]):not([inert])")
        assert page.inner_text("#progress") == "Practice 2 of 2"
        page.keyboard.press("0")
        page.click("#submit")
        page.wait_for_selector("#message:not([hidden])")
        assert "The shopper clicked Red enamel kettle, 1.5 l." in page.inner_text("#message") and fits(page)
        page.click("#message button")
        page.wait_for_selector("#message", state="hidden")
        wait_for_step(page, 0)
        labels = page.evaluate("[...document.querySelectorAll('#list li span')].map(one => one.textContent)")
        assert labels == ["red kettle", "red kettle – Add", "blue kettle", "blue kettle – Add"]
        page.keyboard.press("2")
        assert "The shopper clicks red kettle – Add" in page.inner_text("#chosen") and fits(page)
        page.click("#submit")
        page.wait_for_selector("#message:not([hidden])")
        assert "The same action as the shopper: 1 of 1 (100%)" in page.inner_text("#message") and fits(page)
        assert page.evaluate("document.getElementById('done').value") == 1


def test_a_person_who_does_not_take_part_is_thanked(page: Any, serve: Serve, shop_store: SessionStore) -> None:
    client = serve(shop_store, consent=CONSENT)
    page.goto(client.server.address)
    page.click("#message button >> text=I do not take part")
    page.wait_for_selector("#message >> text=That is fine")
    assert page.locator("#message button").count() == 0
    assert client.server.page_is_done.wait(10)


def test_what_happened_before_can_be_looked_at(page: Any, serve: Serve, shop_store: SessionStore) -> None:
    client = serve(shop_store)
    open_step(page, client)
    page.click("#history button")
    page.wait_for_selector("#past[open]")
    shown = page.frame_locator("#past iframe")
    assert shown.locator("[data-mark=logged]").count() == 1
    page.keyboard.press("Escape")
    page.wait_for_selector("#past", state="hidden")


def test_a_program_that_ended_is_told_and_what_was_typed_stays(
    page: Any, shop_store: SessionStore, tmp_path: Path
) -> None:
    process, address = start(shop_store, tmp_path / "people")
    page.goto(address)
    wait_for_step(page, 0)
    process.kill()
    process.communicate()
    page.click("#leave")
    page.click("#why summary")
    page.fill("#rationale", "kept")
    page.click("#submit")
    page.wait_for_selector("#problem:not([hidden])")
    assert "Submit again" in page.inner_text("#problem")
    assert page.input_value("#rationale") == "kept"
    assert page.is_enabled("#submit")


def test_the_answer_is_shown_where_that_was_asked_for(page: Any, serve: Serve, shop_store: SessionStore) -> None:
    client = serve(shop_store, show_answer=True)
    open_step(page, client)
    page.click("#leave")
    page.click("#submit")
    page.wait_for_selector("#message:not([hidden])")
    assert "The shopper clicked" in page.inner_text("#message")
    page.keyboard.press("Enter")
    page.wait_for_selector("#seen")
    wait_for_step(page, 1)
