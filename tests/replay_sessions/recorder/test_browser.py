"""The snippet in Chromium, on the pages of a shop of another origin than the collector's."""

import json
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from replay_sessions import Click, SessionStore, TypeAndSubmit
from replay_sessions.__main__ import main
from replay_sessions.recorder.collector import collector_server
from replay_sessions.recorder.journal import Journal
from replay_sessions.recorder.rrweb_bundle import recorder_script
from tests.oracles.browser import browser as browser
from tests.replay_sessions.recorder.test_collector import free_port

pytestmark = pytest.mark.browser

PATIENCE_MS = 300_000
STORED = "() => Object.keys(localStorage).filter((name) => name.startsWith('shop_r1.')).sort()"
ALL_SENT = "() => !Object.keys(localStorage).some((name) => name.startsWith('shop_r1.batch.'))"


class Study:
    """A shop with the snippet in it, and the collector, which may be away.

    Attributes:
        recordings: Where the collector writes.
    """

    def __init__(self, folder: Path, browser: Any) -> None:
        self.recordings = folder / "recordings"
        self.saying = 'data-consent="given"'
        self.released = threading.Event()  # what is posted to the shop is answered after that
        self._port = free_port()
        self._collecting = ExitStack()
        self._running = ExitStack()
        study = self

        class Shop(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                content = study.page(self.path).encode()
                self.send_response(200)
                self.send_header("Content-Type", "text/html; charset=utf-8")
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def do_POST(self) -> None:
                study.released.wait()
                self.send_response(204)
                self.end_headers()

            def log_message(self, *_: object) -> None: ...

        shop = self._running.enter_context(ThreadingHTTPServer(("127.0.0.1", 0), Shop))
        threading.Thread(target=shop.serve_forever, daemon=True).start()
        self._running.callback(shop.shutdown)
        self.address = f"http://127.0.0.1:{shop.server_port}"
        context = self._running.enter_context(browser.new_context())
        context.set_default_timeout(PATIENCE_MS)
        self.context = context
        self.visitor = context.new_page()

    def page(self, path: str) -> str:
        return (
            f'<title>{path}</title><script defer src="http://127.0.0.1:{self._port}/token/recorder.js" {self.saying}>'
            f"</script><form action='/found'><input name='q' aria-label='Search'></form><a href='/{len(path)}'>Kettle"
            f" {'of steel' * (len(path) % 2)}</a><input name='secret' type='password' aria-label='Secret'>"
            "<input name='note' aria-label='Note'><div class='rr-block'>for your eyes only</div>"
        )

    def begin(self) -> None:
        """The collector comes."""
        journal = self._collecting.enter_context(Journal(self.recordings, most_session_bytes=1 << 26))
        script = recorder_script()
        server = collector_server(
            journal, "token", most_bytes=1 << 22, script=script, host="127.0.0.1", port=self._port
        )
        self._collecting.enter_context(server)

    def end(self) -> None:
        """The collector goes."""
        self._collecting.close()

    def close(self) -> None:
        self.released.set()
        self._running.close()
        self._collecting.close()

    def open(self, path: str = "/") -> Any:
        self.visitor.goto(self.address + path)
        return self.visitor

    def wait_until_sent(self) -> None:
        self.visitor.wait_for_timeout(1_100)
        self.visitor.wait_for_function(ALL_SENT)

    def lines(self) -> list[Any]:
        return [json.loads(line) for file in self.recordings.glob("*.jsonl") for line in file.read_text().splitlines()]

    def store(self, folder: Path) -> SessionStore:
        words = ["import", "rrweb", str(self.recordings), "--workers", "1", "--out", str(folder / "store")]
        assert main(words) == 0
        return SessionStore.open(folder / "store")


@pytest.fixture
def study(browser, tmp_path) -> Iterator[Study]:
    running = Study(tmp_path, browser)
    running.begin()
    yield running
    running.close()


def type_into(page: Any, name: str, text: str) -> None:
    page.click(f"[name={name}]")
    page.keyboard.type(text)


def test_nothing_is_recorded_or_kept_before_a_yes_and_after_a_no(study):
    study.saying = ""
    page = study.open()
    page.wait_for_selector("text=Yes, record")
    type_into(page, "note", "before")
    assert page.evaluate(STORED) == []
    page.click("text=No")
    page.click("text=Kettle")
    page.wait_for_function("() => window.ShopR1 && !window.ShopR1.isRecording()")
    assert page.evaluate(STORED) == ["shop_r1.consent"]
    assert page.locator("text=Yes, record").count() == 0
    assert not list(study.recordings.glob("*.jsonl"))


def test_consent_starts_recording_and_withdrawal_drops_unsent_events(study):
    study.saying = ""
    page = study.open()
    page.click("text=Yes, record")
    page.wait_for_function("() => window.ShopR1.isRecording()")
    study.wait_until_sent()
    assert study.lines()
    study.end()
    before = study.lines()
    type_into(page, "note", "not meant for you")
    page.evaluate("() => window.ShopR1.consent(false)")
    assert page.evaluate(STORED) == ["shop_r1.consent"]
    study.begin()
    page.wait_for_timeout(2_500)
    assert study.lines() == before


def test_texts_are_masked_unless_they_are_named_and_passwords_always(study, tmp_path):
    study.saying = 'data-consent="given" data-named="q secret"'
    page = study.open()
    type_into(page, "note", "my own")
    type_into(page, "secret", "open sesame")
    type_into(page, "q", "red kettle")
    page.keyboard.press("Enter")
    page.wait_for_url("**/found?q=red+kettle")
    study.wait_until_sent()
    written = json.dumps(study.lines())
    for hidden in ("my own", "open sesame", "for your eyes only"):
        assert hidden not in written
    (session,) = study.store(tmp_path).sessions()
    assert [step.action for step in session.steps] == [
        TypeAndSubmit(name="note", text="", submitted=False),
        TypeAndSubmit(name="secret", text="", submitted=False),
        TypeAndSubmit(name="search", text="red kettle"),
    ]


def test_edited_parts_of_the_page_and_hidden_fields_are_masked(study):
    editors = (
        "<div contenteditable>a<b>b</b></div><p contenteditable='plaintext-only'></p><iframe srcdoc='<p>c'></iframe>"
        "<input type='hidden' name='mail' value='anna@example.org'><input type='file' name='proof'>"
        "<input type='submit' value='Order now'><span contenteditable='false'>Shown to all</span>"
        "<textarea name='wish'>For Ulla</textarea><select name='age'><option>Under 30<option selected>Over 90</select>"
    )
    study.page = lambda path, plain=study.page: plain(path) + editors
    page = study.open()
    frame = page.frames[1]
    frame.evaluate("document.designMode = 'on'")
    for place, text in (
        ("div[contenteditable]", "gift for Ida"),
        ("p[contenteditable]", "call me at home"),
        ("textarea", "with love"),
        (frame, "inside a frame"),
    ):
        target = place.locator("body") if place is frame else page.locator(place)
        target.click()
        page.keyboard.type(text)
    page.evaluate("document.querySelector('[type=hidden]').value = 'bert@example.org'")
    page.evaluate("document.querySelector('[type=hidden]').setAttribute('value', 'carl@example.org')")
    page.set_input_files("[type=file]", {"name": "passport.pdf", "mimeType": "text/plain", "buffer": b"x"})
    page.evaluate("rrwebRecord.record.takeFullSnapshot()")
    study.wait_until_sent()
    written = json.dumps(study.lines())
    for private in (
        "gift",
        "Ida",
        "call me",
        "home",
        "inside",
        "example.org",
        "passport",
        "Ulla",
        "love",
        '"selected": true',
    ):
        assert private not in written, private
    for public in ("Order now", "Shown to all", "Kettle"):
        assert public in written


def test_a_session_id_of_the_shop_may_have_capital_letters(study):
    study.saying = 'data-consent="given" data-session="ORD-7F3A" data-user="Customer 17"'
    study.open()
    study.wait_until_sent()
    payloads = [event["data"]["payload"] for line in study.lines() for event in line["data"] if event["type"] == 5]
    assert {"session_id": "ORD-7F3A", "user_id": "Customer 17"} in payloads


def test_a_refusal_is_shown_in_the_console_and_half_an_emoji_is_none(study):
    shown: list[str] = []
    page = study.open()
    page.on("console", lambda message: shown.append(message.text))
    page.evaluate("document.querySelector('a').textContent = '\\ud83e cut'")
    study.wait_until_sent()
    assert not [text for text in shown if "shop-r1" in text]
    assert "\ufffd cut" in json.dumps(study.lines(), ensure_ascii=False)
    page.evaluate("""localStorage.setItem('shop_r1.batch.broken', '{"events": []}'); ShopR1.note('a', {})""")
    study.wait_until_sent()
    (refusal,) = [text for text in shown if "shop-r1" in text]
    assert 'refused some events, which are lost (400): {"error": "that is no batch of events' in refusal


def test_a_withdrawal_stops_all_tabs_and_returns_the_sent_id(study):
    page = study.open()
    study.wait_until_sent()
    (other := study.context.new_page()).goto(study.address)
    assert page.evaluate("ShopR1.consent(false)") in json.dumps(study.lines())
    other.wait_for_function("() => !ShopR1.isRecording()")
    page.evaluate("ShopR1.consent(true)")
    page.wait_for_function("() => ShopR1.isRecording()")
    page.evaluate("localStorage['shop_r1.consent'] = 'no'")  # while the page was in the cache of the back button
    page.evaluate("dispatchEvent(new PageTransitionEvent('pageshow', {persisted: true}))")
    assert not page.evaluate("ShopR1.isRecording()")


def test_nothing_is_lost_while_the_collector_is_away(study, tmp_path):
    study.saying = 'data-consent="given" data-named="q"'
    page = study.open()
    study.wait_until_sent()
    study.end()
    clicked = []
    for _ in range(3):
        clicked.append(page.inner_text("a"))
        with page.expect_navigation():
            page.click("a")
        page.wait_for_function("() => window.ShopR1.isRecording()")
    page.wait_for_timeout(1_500)
    assert not page.evaluate(ALL_SENT)
    study.begin()
    study.wait_until_sent()
    (session,) = study.store(tmp_path).sessions()
    names = [text.strip().lower().replace(" ", "_") for text in clicked]
    assert [step.action for step in session.steps] == [Click(name=name) for name in names]
    assert not any(step.gap for step in session.steps)
    numbers: dict[str, list[int]] = {}
    for line in study.lines():
        if "number" in line:
            numbers.setdefault(line["window_id"], []).append(line["number"])
    assert all(sorted(found) == list(range(len(found))) for found in numbers.values())


def test_messages_too_large_for_keep_alive_are_sent(study):
    page = study.open()
    study.wait_until_sent()
    keep_alive = """size => {
        const sent = fetch("/", {method: "POST", body: "x".repeat(size), keepalive: true});
        return Promise.race([sent.then(() => "answered", () => "refused"), new Promise(say => setTimeout(say, 3_000))]);
    }"""
    assert page.evaluate(keep_alive, 60_000) is None  # nobody answers it
    assert page.evaluate(keep_alive, 6_000) == "refused"
    page.evaluate("ShopR1.note('long', {text: 'x'.repeat(6_000)})")
    study.wait_until_sent()
    assert any("x" * 6_000 in json.dumps(line) for line in study.lines())


@pytest.mark.parametrize("is_copy", [True, False])
def test_a_tab_opened_as_a_copy_or_by_the_middle_button_has_an_id_of_its_own(study, tmp_path, is_copy):
    page = study.open()
    study.wait_until_sent()
    with study.context.expect_page() as opened:
        if is_copy:  # with its sessionStorage
            page.evaluate("() => void window.open(location.href)")
        else:
            page.click("a", button="middle")
    opened.value.wait_for_function("() => window.ShopR1?.isRecording()")
    type_into(opened.value, "note", "there")
    type_into(page, "note", "here")
    study.wait_until_sent()
    assert len({line["window_id"] for line in study.lines()}) == 2
    (session,) = study.store(tmp_path).sessions()
    assert len(session.steps) == 3 - is_copy


def test_a_frame_of_the_shop_with_the_snippet_is_recorded_once(study, tmp_path):
    study.page = lambda path, plain=study.page: plain(path) + "<iframe src='/in'></iframe>" * (path == "/")
    study.open().frame_locator("iframe").locator("a").click()
    study.wait_until_sent()
    (session,) = study.store(tmp_path).sessions()
    assert len(session.steps) == 1


def test_a_purchase_ends_the_session_and_the_next_page_begins_another(study, tmp_path):
    study.saying = 'data-consent="given" data-purchase="#done"'
    study.page = lambda path, plain=study.page: plain(path) + "<p id='done' hidden>Thank you"
    page = study.open()
    type_into(page, "q", "kettle")
    page.keyboard.press("Enter")
    page.wait_for_url("**/found*")
    page.evaluate("done.hidden = false")
    study.wait_until_sent()
    study.open("/")
    study.wait_until_sent()
    assert len(list(study.recordings.glob("*.jsonl"))) == 2
    users = {
        event["data"]["payload"]["user_id"]
        for line in study.lines()
        for event in line["data"]
        if event["type"] == 5 and "user_id" in event["data"]["payload"]
    }
    assert len(users) == 1
