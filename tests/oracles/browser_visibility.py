"""What a real browser shows of a page: an oracle that shares no rule with the simplifier.

    python -m tests.oracles.browser_visibility ../shared/data/raw_pages

It writes tests/fixtures/browser_visibility.json. Chromium loads each page headless, without network and without the
page's scripts (by a content security policy, so `<noscript>` stays closed), in the windows of `VIEWPORTS`, and says of
each link, button and field, in the order of the page:

- `v`: it is visible (`checkVisibility`), not inert, and it or something in it has a box;
- `e`: visible, but without a box, as a link around an image is that could not be loaded;
- `h`: hidden.

What the browser cannot know: style sheets and images in other files, and what scripts would change. An element that
only an external style sheet hides is `v` here. The file holds letters alone, nothing of the pages' content; for the
cases that are written for tests (visibility_cases.toml) the words of the links that are visible, those in shadow trees
and frames included.
"""

import gzip
import json
import re
import shutil
import sys
import tomllib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

__all__ = ["CASES", "CASE_SCRIPT", "CONTROLS", "TRUTH", "View", "chromium", "see", "viewing"]

CONTROLS = "a, button, input, select, textarea"
CASES = Path(__file__).parents[1] / "replay_sessions" / "simplify" / "visibility_cases.toml"
TRUTH = Path(__file__).parents[1] / "fixtures" / "browser_visibility.json"
_WINDOWS: dict[str, dict[str, Any]] = {
    "desktop": {"viewport": {"width": 1280, "height": 800}},
    "phone": {
        "viewport": {"width": 390, "height": 844}, "is_mobile": True, "has_touch": True, "device_scale_factor": 3,
    },
}  # fmt: skip
_POLICY = (
    b"<meta http-equiv=Content-Security-Policy content=\"default-src 'none'; style-src 'unsafe-inline'; "
    b"img-src data:; frame-src 'self'\">"
)
_JAVASCRIPT = """
const boxed = node => [...node.getClientRects()].some(box => box.width > 0 && box.height > 0);
const shown = node => node.checkVisibility({visibilityProperty: true});
const seen = node => {
  if (!shown(node) || node.closest("[inert]")) return "h";
  if (boxed(node)) return "v";
  return [...node.querySelectorAll("*")].some(inner => shown(inner) && boxed(inner)) ? "v" : "e";
};
const inside = tree => [...(tree ? tree.querySelectorAll("*") : [])].flatMap(node => [
  node, ...inside(node.shadowRoot), ...inside(node.contentDocument),
]);
"""
_PAGE = f"""() => {{ {_JAVASCRIPT}
  const nodes = [...document.querySelectorAll("{CONTROLS}")];
  return {{tags: nodes.map(node => node.localName[0]).join(""), seen: nodes.map(seen).join("")}};
}}"""
CASE_SCRIPT = f"""() => {{ {_JAVASCRIPT}
  return inside(document).filter(node => node.localName === "a" && seen(node) !== "h").map(node => node.textContent);
}}"""
_HEAD = re.compile(rb"<head(?=[\s>])[^>]*>|<!doctype[^>]*>(?!\s*<html)", re.IGNORECASE)

View = Callable[[bytes, str], Any]  # a page and the name of a window -> what the browser says


def chromium() -> str | None:
    """Where the browser is; None if it is not installed (`apt-get install chromium`)."""
    return shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


@contextmanager
def viewing(browser: str, script: str = _PAGE) -> Iterator[View]:
    """A browser that tells of pages in windows; needs playwright (`pip install 'shop-r1[browser]'`)."""
    from playwright.sync_api import sync_playwright  # noqa: PLC0415 - of the extra `browser`

    with sync_playwright() as running:
        arguments = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--disable-background-networking"]
        opened = running.chromium.launch(executable_path=browser, args=arguments)
        tabs = {name: opened.new_context(**window).new_page() for name, window in _WINDOWS.items()}
        current = [b""]
        for tab in tabs.values():
            tab.route("**/*", lambda route: route.fulfill(body=current[0], content_type="text/html"))

        def view(page: bytes, window: str = "desktop") -> Any:
            head = _HEAD.search(page)
            place = head.end() if head is not None else 0
            current[0] = page[:place] + _POLICY + page[place:]
            tabs[window].goto("http://page.example/", wait_until="load", timeout=60_000)
            return tabs[window].evaluate(script)

        yield view
        opened.close()


def see(page: bytes, browser: str) -> dict[str, str]:
    """The first letters of the tags of a page's controls, and what the browser says of each."""
    with viewing(browser) as view:
        return dict(view(page, "desktop"))


def see_cases(browser: str) -> dict[str, dict[str, list[str]]]:
    """The words of the visible links of each case, by window."""
    cases = tomllib.loads(CASES.read_text("utf-8"))
    with viewing(browser, CASE_SCRIPT) as view:
        return {
            name: {window: view(case["html"].encode(), window) for window in _WINDOWS} for name, case in cases.items()
        }


def main(folder: str) -> None:
    browser = chromium()
    if browser is None:
        sys.exit("no browser found: apt-get install chromium")
    pages = {}
    with viewing(browser) as view:
        for file in sorted(Path(folder).rglob("*.html.gz")):
            page = gzip.decompress(file.read_bytes())
            seen = {window: view(page, window) for window in _WINDOWS}
            phone = {"phone": seen["phone"]["seen"]} if seen["phone"]["tags"] == seen["desktop"]["tags"] else {}
            pages[file.name.removesuffix(".html.gz")[:40]] = {**seen["desktop"], **phone}
            print(file.name, len(pages), flush=True)
    truth = {"browser": "Chromium", "windows": _WINDOWS, "pages": pages, "cases": see_cases(browser)}
    TRUTH.write_text(json.dumps(truth, indent=0, sort_keys=True, ensure_ascii=False) + "\n", "utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
