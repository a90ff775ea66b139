"""Measures simplified pages: numbered names, names that stay under changes, agreement with a browser.

    python -m benchmarks.pages ../shared/data/raw_pages --truth tests/fixtures/browser_visibility.json --json pages.json

Names that end on a number only because another is the same without it say where an element stands and not what it is.
`stayed` is the share of the names of elements which a change does not touch that are the same after it, the lowest and
the median over the pages that it applies to; `visit` says what is touched and where a change does not apply. `recall`
is the share kept of the links, buttons and fields that the browser shows; `hidden_kept` the share kept of those that
it hides. A recipe's `drop` rules count against recall, since the browser does not know the style sheets that hide the
same.
"""

import gzip
import statistics
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import msgspec
import tyro

from benchmarks.pages.changes import CHANGES
from benchmarks.pages.measure import agreement, numbered, stability
from replay_sessions.commands.command_line import parse_options, run_command
from replay_sessions.errors import BadConfig
from replay_sessions.provenance import provenance

_ENOUGH = 0.98


class Measure(msgspec.Struct, frozen=True, kw_only=True):
    """Measures simplified pages.

    Attributes:
        pages: The folder that holds *.html.gz, also below it.
        truth: What tests.oracles.browser_visibility wrote; None: without the browser.
        json: Write the figures of all pages there.
    """

    pages: tyro.conf.Positional[Annotated[Path, tyro.conf.arg(metavar="FOLDER")]]
    truth: Path | None = None
    json: Path | None = None


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line: 0 done, 2 the call or its input was wrong."""
    words = sys.argv[1:] if arguments is None else arguments
    return run_command(lambda: _run(parse_options(Measure, words, program="python -m benchmarks.pages", text=__doc__)))


def _run(given: Measure) -> int:
    return _measure(given.pages, given.truth, given.json)


def _measure(folder: Path, truth_file: Path | None, output: Path | None) -> int:
    files = sorted(folder.rglob("*.html.gz"))
    if not files:
        raise BadConfig(f"no *.html.gz in {folder}: give the folder that holds the raw pages")
    truth = msgspec.json.decode(truth_file.read_bytes())["pages"] if truth_file is not None else {}
    pages: dict[str, Any] = {}
    for file in files:
        name = file.name.removesuffix(".html.gz")[:40]
        page = gzip.decompress(file.read_bytes())
        pages[name] = {"names": numbered(page), "stayed": stability(page, name)}
        if name in truth:
            pages[name]["browser"] = agreement(page, truth[name])
    summary = _summary(list(pages.values()))
    for line, value in summary.items():
        print(f"{line:<44} {value}", flush=True)
    if output is not None:
        made = provenance({"pages": folder.name, "truth": truth_file.name if truth_file else None})
        figures = {"summary": summary, "provenance": made, "pages": pages}
        output.write_bytes(msgspec.json.format(msgspec.json.encode(figures)) + b"\n")
    return 0


def _summary(pages: list[dict[str, Any]]) -> dict[str, float]:
    names = sum(page["names"]["names"] for page in pages)
    found: dict[str, float] = {"pages": len(pages), "names": names}
    for kind in ("numbered", "numbered_or_in_a_numbered_card"):
        found[f"{kind}.share"] = round(sum(page["names"][kind] for page in pages) / names, 4)
    for change in CHANGES:
        measured = [page["stayed"][change] for page in pages if page["stayed"][change] is not None]
        shares = [stayed["stayed"] for stayed in measured]
        found[f"stayed.{change}.pages"] = len(shares)
        if shares:
            found[f"stayed.{change}.lowest"] = round(min(shares), 4)
            found[f"stayed.{change}.median"] = round(statistics.median(shares), 4)
        found[f"stayed.{change}.pages_below_{_ENOUGH}"] = sum(share < _ENOUGH for share in shares)
        if touched := sum(stayed["touched"] for stayed in measured):
            kept = sum(stayed["touched"] * stayed["touched_stayed"] for stayed in measured)
            found[f"stayed.{change}.touched"] = touched
            found[f"stayed.{change}.touched_stayed"] = round(kept / touched, 4)
    seen = [page["browser"] for page in pages if "visible" in page.get("browser", {})]
    if seen:
        shown, kept, hidden, hidden_kept = (
            sum(page[what] for page in seen) for what in ("visible", "visible_kept", "hidden", "hidden_kept")
        )
        found |= {
            "browser.pages": len(seen),
            "browser.visible": shown,
            "browser.recall": round(kept / shown, 4),
            "browser.hidden": hidden,
            "browser.hidden_kept": round(hidden_kept / hidden, 4),
            "browser.precision": round(kept / (kept + hidden_kept), 4),
        }
    return found


if __name__ == "__main__":
    sys.exit(main())
