"""A visit to a shop made with Tailwind: every step's page names the controls that the browser offered, and no others.

The shop is built with npm (`benchmarks.studies.page_visibility`) and visited in Chromium, recorded by rrweb. Before
each action the browser is asked which controls it shows, with the pointer in a corner and nothing in focus: what a
pointer or focus reveals is no part of the page.

A tick box or radio button is as visible as the most visible of itself and its labels: shops hide it and draw the label,
and a person ticks it by its label. With our recorder the pages are equal. rrweb's alone does not say how wide a
container is: a control that only `@container` hides may be on the page, and none is missing that the browser shows.
"""

import json
import re
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from benchmarks.studies.page_names.visit import MARK
from benchmarks.studies.page_visibility.__main__ import main as page_visibility
from benchmarks.studies.page_visibility.browser import JAVASCRIPT, VIEWPORTS, chromium, states_by_mark
from benchmarks.studies.page_visibility.marks import SELECTOR, named_marks
from replay_sessions import SessionStore, TypeAndSubmit
from replay_sessions.importers.rrweb.importer import RrwebImporter, RrwebOptions
from replay_sessions.importers.running.run_import import run_import
from replay_sessions.recorder.rrweb_bundle import fetch_recorder

pytestmark = [pytest.mark.browser, pytest.mark.slow]

TRANSITIONS_MS = 400
VISITS: dict[str, list[str | tuple[str, str]]] = {  # what is clicked, or typed into with the text
    "desktop": [
        "#cookies [data-toggle]", "#cookies [data-hide] >> nth=0", "[data-mega] >> nth=0", ".mega a >> nth=0",
        "#filters summary >> nth=1", "#filters [name=size] >> nth=2", "#filters summary >> nth=2",
        "main [href='product.html'] >> nth=1", "[data-tab='#tab-care']", "[name=size] >> nth=1", "[name=gift]",
        ("[name=words]", "with care"), "[data-show='#size-guide']", "#size-guide form button", "form [data-add]",
        "#cart summary", ("#cart textarea", "ring twice"), "#cart [href='checkout.html']", "[value=shop]",
        "[name=same]", ("[name=bill]", "Hill Road"),
    ],
    "phone": [
        "[data-hide='#banner']", "[data-toggle='#menu'] >> nth=0", "#menu summary >> nth=1", "#menu details a >> nth=5",
        "[data-toggle='#filters'] >> nth=0", "#filters summary >> nth=2", "#filters [name=color] >> nth=0",
        "[data-toggle='#filters'] >> nth=1", "[data-add] >> nth=1", "#cart [data-toggle]",
        "main [href='product.html'] >> nth=2", "[name=size] >> nth=3", "[data-show='#size-guide']",
        "#size-guide form button", ".fixed [data-add]", "#cart [data-remove] >> nth=0", "#cart summary",
        "#cart [href='checkout.html']", "aside summary", "[value=shop]",
    ],
}  # fmt: skip
PREPARE = f"""next => {{
  document.activeElement?.blur();
  for (const node of document.querySelectorAll(`{SELECTOR}`)) {{
    if (node.getAttribute("{MARK}")?.startsWith("shopr")) continue;
    node.setAttribute("{MARK}", "shopr" + String(next++).replace(/\\d/g, digit => "abcdefghij"[digit]));
  }}
  return next;
}}"""
SOURCES = f"""() => Object.fromEntries([...document.querySelectorAll("[{MARK}^=shopr]")].map(
  node => [node.getAttribute("{MARK}"), node.outerHTML.replaceAll(/ {MARK}="\\w+"/g, "").slice(0, 90)]))"""
TICKED_BY_LABEL = f"""() => {{ {JAVASCRIPT}
  return [...document.querySelectorAll("input[type=checkbox], input[type=radio]")]
    .filter(node => [...node.labels].some(label => state(label) === "v")).map(node => node.getAttribute("{MARK}"));
}}"""
IN_CONTAINER = re.compile(r'class="[^"]*@(?:min|max)-')  # Tailwind's classes for container queries
RECORDERS = {  # how events leave the page; rrweb opens frames of its own
    "rrweb": """
;if (self === top)
  addEventListener("DOMContentLoaded", () => rrwebRecord.record({emit: event => emit(event)}));
""",
    "ours": """
;const start = rrwebRecord.record;
rrwebRecord.record = Object.assign(options => start({...options, emit: event => emit(event)}), start);
""",
}
SNIPPET = (files("replay_sessions.recorder.snippet") / "recorder.js").read_bytes()
TAG = b"<script src='/recorder.js' defer data-consent='given' data-named='words bill'></script></head>"


class Visit(NamedTuple):
    """What was recorded; before each action the visible controls and those that have no box; each control's source."""

    events: list[Any]
    shown: list[set[str]]
    without_box: list[set[str]]
    sources: dict[str, str]


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("playwright.sync_api", reason="pip install 'shop-r1[browser]'")
    if chromium() is None:
        pytest.skip("no chromium: apt-get install chromium")
    folder = tmp_path_factory.mktemp("pages")
    assert page_visibility(["build", "--out", str(folder), "--frameworks", "tailwind4"]) == 0
    return folder / "site" / "tailwind4"


@pytest.fixture(scope="module")
def browser(shop: Path) -> Iterator[Any]:
    with pytest.importorskip("playwright.sync_api").sync_playwright() as running:
        launched = running.chromium.launch(executable_path=chromium(), args=["--no-sandbox", "--disable-gpu"])
        yield launched
        launched.close()


def shop_at(browser: Any, shop: Path, viewport: str, recorder: str) -> Visit:
    """Visits the shop, one action after the other."""

    def answer(route: Any) -> None:
        name = route.request.url.split("/")[-1].partition("?")[0]
        if name in ("recorder.js", "batches"):
            route.fulfill(body=SNIPPET if name == "recorder.js" else b"")
        elif name.endswith(".html") and recorder == "ours":
            route.fulfill(body=(shop / name).read_bytes().replace(b"</head>", TAG, 1), content_type="text/html")
        else:
            route.fulfill(path=shop / name)

    context = browser.new_context(**VIEWPORTS[viewport])
    visit = Visit([], [], [], {})
    next_mark = 0
    context.route("**/*", answer)
    context.expose_function("emit", lambda event: visit.events.append(event))
    context.add_init_script(fetch_recorder().decode() + RECORDERS[recorder])
    page = context.new_page()
    page.goto("http://shop.example/home.html")
    for action in VISITS[viewport]:
        page.wait_for_load_state("networkidle")
        page.mouse.move(0, 0)
        next_mark = page.evaluate(PREPARE, next_mark)
        page.wait_for_timeout(TRANSITIONS_MS)
        visit.sources.update(page.evaluate(SOURCES))
        states = {mark: state for mark, state in page.evaluate(states_by_mark(MARK)).items() if mark in visit.sources}
        states.update(dict.fromkeys(page.evaluate(TICKED_BY_LABEL), "v"))
        visit.shown.append({mark for mark, state in states.items() if state == "v"})
        visit.without_box.append({mark for mark, state in states.items() if state == "e"})
        if isinstance(action, tuple):
            page.locator(action[0]).press_sequentially(action[1])
        else:
            page.locator(action).first.click()
    page.wait_for_timeout(TRANSITIONS_MS)
    context.close()
    return visit


@pytest.mark.parametrize("recorder", RECORDERS)
@pytest.mark.parametrize("viewport", VISITS)
def test_each_page_names_what_the_browser_showed(
    browser: Any, shop: Path, tmp_path: Path, viewport: str, recorder: str
) -> None:
    visit = shop_at(browser, shop, viewport, recorder)
    recording = tmp_path / "visit.json"
    recording.write_text(json.dumps(visit.events), "utf-8")
    run_import(RrwebImporter(recording, RrwebOptions()), tmp_path / "store")
    (session,) = SessionStore.open(tmp_path / "store").sessions()
    typed = [action for action in VISITS[viewport] if isinstance(action, tuple)]
    texts = [text if recorder == "rrweb" or "name=" in field else "" for field, text in typed]  # ours masks the others
    assert [step.action.text for step in session.steps if isinstance(step.action, TypeAndSubmit)] == texts
    assert len(session.steps) == len(VISITS[viewport])
    different: dict[object, tuple[list[str], list[str]]] = {}
    for number, step in enumerate(session.steps):
        named = set(named_marks(step.page)) - visit.without_box[number]
        missing, added = visit.shown[number] - named, named - visit.shown[number]
        if recorder == "rrweb":
            added = {mark for mark in added if not IN_CONTAINER.search(visit.sources[mark])}
        if missing or added:
            sources = [visit.sources[mark] for mark in sorted(missing)], [visit.sources[mark] for mark in sorted(added)]
            different[number, VISITS[viewport][number]] = sources
    assert not different, "missing and added controls before each action"
