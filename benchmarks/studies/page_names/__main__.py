"""Measures the names of simplified pages: numbered ones, and those that are stable under changes.

    python -m benchmarks.studies.page_names ../shared/data/raw_pages --json pages.json

Names that end on a number only because another is the same without it describe the position of an element and not the
element. `stayed` is the share of the names of elements which a change does not touch that are the same after it, the
lowest and the median over the pages that it applies to; `visit` defines what is touched and where a change does not
apply. What a page shows is measured by `page_visibility`.
"""

import gzip
import random
import re
import statistics
import sys
from collections.abc import Container
from itertools import accumulate, chain
from pathlib import Path
from typing import Annotated, Any

import msgspec
import tyro

from benchmarks.studies.page_names.shop_changes import SHOP_CHANGES
from benchmarks.studies.page_names.source_changes import SOURCE_CHANGES
from benchmarks.studies.page_names.visit import Change, Visit, marked
from replay_sessions.foundation.command_line import command
from replay_sessions.foundation.durable_files import replace_json
from replay_sessions.foundation.errors import BadConfig
from replay_sessions.foundation.provenance import provenance
from replay_sessions.simplify import simplify

CHANGES: dict[str, Change] = {**SOURCE_CHANGES, **SHOP_CHANGES}

_NAMED = re.compile(r'<\w+ name="([^"]+)"')
_MARKED = re.compile(r'<\w+ name="([^"]+)"[^>]*? aria-current="(shopr[a-j]+)"')
_MARK = re.compile(r' aria-current="(shopr[a-j]+)"')
_NAME = re.compile(r' name="[^"]+"')
_NUMBERED = re.compile(r"(.*)_\d+")
_ENOUGH = 0.98


class Measure(msgspec.Struct, frozen=True, kw_only=True):
    """Measures simplified pages.

    Attributes:
        pages: The folder that holds *.html.gz, also below it.
        json: Write the figures of all pages there.
    """

    pages: tyro.conf.Positional[Annotated[Path, tyro.conf.arg(metavar="FOLDER")]]
    json: Path | None = None


def _run(options: Measure) -> int:
    folder = options.pages
    files = sorted(folder.rglob("*.html.gz"))
    if not files:
        raise BadConfig(f"no *.html.gz in {folder}: give the folder that holds the raw pages")
    pages: dict[str, Any] = {}
    for file in files:
        name = file.name.removesuffix(".html.gz")[:40]
        page = gzip.decompress(file.read_bytes())
        pages[name] = {"names": numbered(simplify(page).html), "stayed": stability(page, name)}
    summary = _summarize(list(pages.values()))
    for line, value in summary.items():
        print(f"{line:<44} {value}", flush=True)
    if options.json is not None:
        replace_json(
            options.json, {"summary": summary, "provenance": provenance({"pages": folder.name}), "pages": pages}
        )
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
    return summary


def numbered(html: str) -> dict[str, int]:
    """The number of names of a simplified page, of those that end on a number only because another name is the same
    without it, and of those that do so there or at the name of a card that they begin with."""
    names = _NAMED.findall(html)
    prefixes = {name: list(accumulate(name.split("."), "{}.{}".format)) for name in names}
    all_prefixes = set(chain.from_iterable(prefixes.values()))
    ends = sum(_is_numbered(name, prefixes) for name in names)
    anywhere = sum(any(_is_numbered(prefix, all_prefixes) for prefix in prefixes[name]) for name in names)
    return {"names": len(names), "numbered": ends, "numbered_or_in_a_numbered_card": anywhere}


def _is_numbered(name: str, others: Container[str]) -> bool:
    match = _NUMBERED.fullmatch(name)
    return match is not None and match[1] in others


def stability(page: bytes, seed: str) -> dict[str, dict[str, float] | None]:
    """For each change the number of elements that it does not touch, and the share of them with the same name
    afterwards; likewise of the touched ones. None where the change does not apply (see `visit`)."""
    unchanged = _SimplifiedPage(marked(page))
    return {name: _compare(unchanged, change, random.Random(f"{seed} {name}")) for name, change in CHANGES.items()}


def _compare(unchanged: "_SimplifiedPage", change: Change, rng: random.Random) -> dict[str, float] | None:
    visit = Visit(unchanged.source, rng)
    change(visit)
    before = unchanged if visit.before == unchanged.source else _SimplifiedPage(visit.before)
    after = _SimplifiedPage(visit.after)
    if before.source == after.source or (visit.is_shown and (before.html, before.names) == (after.html, after.names)):
        return None
    remaining = before.names.keys() & set(_MARK.findall(after.source))
    others, touched = remaining - visit.touched, remaining & visit.touched
    if not others:
        return None
    stayed = {mark for mark in remaining if after.names.get(mark) == before.names[mark]}
    return {
        "elements": len(others),
        "stayed": len(others & stayed) / len(others),
        "touched": len(touched),
        "touched_stayed": len(touched & stayed) / len(touched) if touched else 1.0,
    }


class _SimplifiedPage:
    """A marked page: the name of each mark, and the simplified page without names."""

    def __init__(self, source: str) -> None:
        self.source = source
        html = simplify(source, private_data=False).html
        self.names = {mark: name for name, mark in _MARKED.findall(html)}
        self.html = _NAME.sub("", html)


main = command(Measure, _run)

if __name__ == "__main__":
    sys.exit(main())
