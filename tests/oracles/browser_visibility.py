"""What a real browser shows of a page: an oracle that shares no rule with the simplifier.

    python -m tests.oracles.browser_visibility ../shared/data/raw_pages tests/fixtures/browser_visibility.json

Chromium loads each page from a file, headless, in a window 1280 x 1024, without network and without the page's scripts
(a content security policy allows only ours), and says of each link, button and field, in the order of the page:

- `v`: it is visible (`checkVisibility`), not inert, and it or something in it has a box;
- `e`: visible, but without a box, as a link around an image is that could not be loaded;
- `h`: hidden.

What the browser cannot know: style sheets and images in other files, and what scripts would change. An element that
only an external style sheet hides is `v` here. The file holds letters alone, nothing of the pages' content.
"""

import gzip
import json
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

__all__ = ["CONTROLS", "chromium", "see"]

CONTROLS = "a, button, input, select, textarea"
_NONCE = "oracle"
_POLICY = (
    "<meta http-equiv=Content-Security-Policy content=\"default-src 'none'; style-src 'unsafe-inline'; "
    f"img-src data:; script-src 'nonce-{_NONCE}'\">"
)
_SCRIPT = f"""<script nonce={_NONCE}>
const boxed = node => [...node.getClientRects()].some(box => box.width > 0 && box.height > 0);
const seen = node => {{
  const asked = {{visibilityProperty: true, contentVisibilityAuto: true}};
  if (!node.checkVisibility(asked) || node.closest("[inert]")) return "h";
  if (boxed(node)) return "v";
  return [...node.querySelectorAll("*")].some(inner => inner.checkVisibility(asked) && boxed(inner)) ? "v" : "e";
}};
const nodes = [...document.querySelectorAll("{CONTROLS}")];
const told = {{tags: nodes.map(node => node.localName[0]).join(""), seen: nodes.map(seen).join("")}};
document.documentElement.setAttribute("data-oracle", JSON.stringify(told));
</script>"""
_HEAD = re.compile(rb"<head(?=[\s>])[^>]*>", re.IGNORECASE)
_TOLD = re.compile(r'<html[^>]*\sdata-oracle="([^"]*)"')


def chromium() -> str | None:
    """Where the browser is; None if it is not installed (`apt-get install chromium`)."""
    return shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


def see(page: bytes, browser: str) -> dict[str, str]:
    """The first letters of the tags of a page's controls, and what the browser says of each."""
    head = _HEAD.search(page)
    place = head.end() if head is not None else 0
    page = page[:place] + _POLICY.encode() + page[place:] + _SCRIPT.encode()
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "page.html")
        file.write_bytes(page)
        done = subprocess.run(
            [
                browser, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
                "--host-resolver-rules=MAP * ~NOTFOUND", "--disable-background-networking", "--window-size=1280,1024",
                f"--user-data-dir={folder}/profile", "--dump-dom", file.as_uri(),
            ],
            capture_output=True, timeout=120, check=True,
        )  # fmt: skip
    told = _TOLD.search(done.stdout.decode("utf-8", "replace"))
    if told is None:
        raise RuntimeError("the browser ran no script: its policy or its version may have changed")
    return dict(json.loads(told[1].replace("&quot;", '"')))


def main(folder: str, output: str) -> None:
    browser = chromium()
    if browser is None:
        sys.exit("no browser found: apt-get install chromium")
    version = subprocess.run([browser, "--version"], capture_output=True, text=True, check=True).stdout.split()[1]
    pages = {}
    for file in sorted(Path(folder).rglob("*.html.gz")):
        pages[file.name.removesuffix(".html.gz")[:40]] = see(gzip.decompress(file.read_bytes()), browser)
        print(file.name, len(pages), flush=True)
    found = {"browser": f"Chromium {version}", "window": [1280, 1024], "pages": pages}
    Path(output).write_text(json.dumps(found, indent=0, sort_keys=True) + "\n", "utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
