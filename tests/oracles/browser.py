"""Chromium as the judge of what a page shows: it shares no rule with the simplifier.

Pages are loaded without network and without their own scripts (by a content security policy, so `<noscript>` stays
closed). Of an element it says

- `v`: it is visible (`checkVisibility`), not inert, and it or something in it has a box;
- `e`: visible, but without a box, as a link around an image is that could not be loaded;
- `h`: hidden.

What it cannot know: style sheets and images in other files, and what scripts would change.
"""

import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest

from replay_sessions.foundation.errors import MissingExtra
from replay_sessions.simplify.media import ViewportName

__all__ = ["JAVASCRIPT", "VIEWPORTS", "View", "browser", "launched", "playwright", "states_by_mark", "viewing"]

VIEWPORTS: dict[ViewportName, dict[str, Any]] = {
    "desktop": {"viewport": {"width": 1280, "height": 800}},
    "phone": {
        "viewport": {"width": 390, "height": 844},
        "is_mobile": True,
        "has_touch": True,
        "device_scale_factor": 3,
    },
}
View = Callable[[bytes, ViewportName], Any]  # a page and the name of a viewport -> what the script returns there

_HEADERS = {
    "Content-Type": "text/html",
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; img-src data:; frame-src 'self'",
}
# An element's parent in the flat tree: its slot, its element or the host of its root.
JAVASCRIPT = """
const boxed = node => [...node.getClientRects()].some(box => box.width > 0 && box.height > 0);
const shown = node => node.checkVisibility({visibilityProperty: true});
const above = node => node.assignedSlot ?? node.parentElement ?? node.getRootNode().host;
const inert = node => Boolean(node) && (node.hasAttribute("inert") || inert(above(node)));
const state = node => {
  if (!shown(node) || inert(node)) return "h";
  if (boxed(node)) return "v";
  return [...node.querySelectorAll("*")].some(inner => shown(inner) && boxed(inner)) ? "v" : "e";
};
const inside = tree => [...tree.querySelectorAll("*")].flatMap(node => {
  const below = node.shadowRoot ?? node.contentDocument;
  return [node, ...(below ? inside(below) : [])];
});
"""


def states_by_mark(attribute: str) -> str:
    """A script that returns the state of each element that has an attribute, by its value. What the parser copied, such
    as a link within a link, is as visible as the most visible copy."""
    return f"""() => {{ {JAVASCRIPT}
  const states = {{}};
  for (const node of inside(document)) {{
    const mark = node.getAttribute("{attribute}");
    const both = state(node) + (states[mark] ?? "");
    if (mark !== null) states[mark] = [..."veh"].find(letter => both.includes(letter));
  }}
  return states;
}}"""


def chromium() -> str | None:
    """Where the browser is; None if it is not installed (`apt-get install chromium`)."""
    return shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


def playwright() -> Any:
    """Playwright's module; the test is skipped where it or Chromium is not installed."""
    found = pytest.importorskip("playwright.sync_api", reason="pip install 'shop-r1[browser]'")
    if chromium() is None:
        pytest.skip("no chromium: apt-get install chromium")
    return found


@contextmanager
def launched(*arguments: str, without: Sequence[str] = ()) -> Iterator[Any]:
    """Chromium for tests, with these arguments and without those of playwright's own."""
    with playwright().sync_playwright() as running:
        words = ["--no-sandbox", *arguments]
        found = running.chromium.launch(executable_path=chromium(), args=words, ignore_default_args=[*without])
        yield found
        found.close()


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with launched() as found:
        yield found


@contextmanager
def viewing(script: str) -> Iterator[View]:
    """A browser that loads pages and runs a script in each.

    Raises:
        MissingExtra: Chromium or playwright's package is not installed.
    """
    try:
        from playwright.sync_api import Route, sync_playwright  # noqa: PLC0415 the tests of it are skipped without it
    except ImportError as error:
        raise MissingExtra("pages are viewed with playwright's package: pip install 'shop-r1[browser]'") from error
    path = chromium()
    if path is None:
        raise MissingExtra("pages are viewed with Chromium: apt-get install chromium")
    source = b""

    def answer(route: Route) -> None:
        if route.request.is_navigation_request() and route.request.frame.parent_frame is None:
            route.fulfill(body=source, headers=_HEADERS)
        else:
            route.abort()

    with sync_playwright() as running:
        arguments = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--disable-background-networking"]
        browser = running.chromium.launch(executable_path=path, args=arguments)
        tabs = {name: browser.new_context(**options).new_page() for name, options in VIEWPORTS.items()}
        for tab in tabs.values():
            tab.route("**/*", answer)

        def view(page: bytes, viewport: ViewportName) -> Any:
            nonlocal source
            source = page
            tabs[viewport].goto("http://page.example/", timeout=60_000)
            return tabs[viewport].evaluate(script)

        yield view
        browser.close()
