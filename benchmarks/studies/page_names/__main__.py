"""Measures simplified pages: numbered names, names that are stable under changes, agreement with a browser.

    python -m benchmarks.studies.page_names ../shared/data/raw_pages --truth FILE --json pages.json

Names that end on a number only because another is the same without it describe the position of an element and not the
element. `stayed` is the share of the names of elements which a change does not touch that are the same after it, the
lowest and the median over the pages that it applies to; `visit` defines what is touched and where a change does not
apply. `recall` is the share kept of the links, buttons and fields that the browser shows; `hidden_kept` the share kept
of those that it hides. A recipe's `drop` rules count against recall, since the browser does not know the style sheets
that hide the same.
"""

import gzip
import statistics
import sys
from pathlib import Path
from typing import Annotated, Any

import msgspec
import tyro

from benchmarks.studies.page_names.measure import CHANGES, agreement, numbered, stability
from replay_sessions.foundation.command_line import command
from replay_sessions.foundation.durable_files import replace_json
from replay_sessions.foundation.errors import BadConfig
from replay_sessions.foundation.provenance import provenance

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


def _run(options: Measure) -> int:
    folder, truth_file = options.pages, options.truth
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
    summary = _summarize(list(pages.values()))
    for line, value in summary.items():
        print(f"{line:<44} {value}", flush=True)
    if options.json is not None:
        origin = provenance({"pages": folder.name, "truth": truth_file.name if truth_file else None})
        figures = {"summary": summary, "provenance": origin, "pages": pages}
        replace_json(options.json, figures)
    return 0


def _summarize(pages: list[dict[str, Any]]) -> dict[str, float]:
    names = sum(page["names"]["names"] for page in pages)
    summary: dict[str, float] = {"pages": len(pages), "names": names}
    for kind in ("numbered", "numbered_or_in_a_numbered_card"):
        summary[f"{kind}.share"] = round(sum(page["names"][kind] for page in pages) / names, 4)
    for change in CHANGES:
        measured = [page["stayed"][change] for page in pages if page["stayed"][change] is not None]
        shares = [figures["stayed"] for figures in measured]
        summary[f"stayed.{change}.pages"] = len(shares)
        if shares:
            summary[f"stayed.{change}.lowest"] = round(min(shares), 4)
            summary[f"stayed.{change}.median"] = round(statistics.median(shares), 4)
        summary[f"stayed.{change}.pages_below_{_ENOUGH}"] = sum(share < _ENOUGH for share in shares)
        if touched := sum(figures["touched"] for figures in measured):
            stayed = sum(figures["touched"] * figures["touched_stayed"] for figures in measured)
            summary[f"stayed.{change}.touched"] = touched
            summary[f"stayed.{change}.touched_stayed"] = round(stayed / touched, 4)
    compared = [page["browser"] for page in pages if "visible" in page.get("browser", {})]
    if compared:
        keys = ("visible", "visible_kept", "hidden", "hidden_kept")
        visible, visible_kept, hidden, hidden_kept = (sum(counts[key] for counts in compared) for key in keys)
        summary |= {
            "browser.pages": len(compared),
            "browser.visible": visible,
            "browser.recall": round(visible_kept / visible, 4),
            "browser.hidden": hidden,
            "browser.hidden_kept": round(hidden_kept / hidden, 4),
            "browser.precision": round(visible_kept / (visible_kept + hidden_kept), 4),
        }
    return summary


main = command(Measure, _run, program="python -m benchmarks.studies.page_names", text=__doc__)

if __name__ == "__main__":
    sys.exit(main())
