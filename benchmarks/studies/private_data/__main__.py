"""Measures how much private data is removed, and what is removed that is not private.

    python -m benchmarks.studies.private_data ../shared/data --out benchmarks/results/private_data

Recall is measured on invented people in more than 400 pages, addresses and texts of 22 languages, per kind of private
data; its 95% interval counts templates, not texts. Rules are written beside the templates of `development` only, so
`held_out` is the figure to quote. What is removed wrongly is counted on the raw pages of FOLDER and on 500 product
texts drawn from it.
"""

import gzip
import hashlib
import html
import json
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, get_args

import msgspec
import numpy as np
import tyro
from scipy.stats import binomtest

from benchmarks.studies.private_data.cases import REFERENCE, STAY, Half, Outcome, load_cases, outcomes
from replay_sessions.foundation.command_line import command
from replay_sessions.foundation.durable_files import write_results
from replay_sessions.foundation.errors import BadConfig
from replay_sessions.foundation.provenance import provenance
from replay_sessions.foundation.table import Column, Estimate, Table
from replay_sessions.private_data import Removal, remove_from_text
from replay_sessions.simplify import simplify
from shop_env.metrics.statistics import cluster_sums, clustered_error, estimate


class Measure(msgspec.Struct, frozen=True, kw_only=True):
    """Measures how much private data is removed, and what is removed that is not private.

    Attributes:
        data: Where raw_pages, webshop_queries and merchandise_store are.
        out: Where private_data.json and private_data.md go.
    """

    data: tyro.conf.Positional[Annotated[Path, tyro.conf.arg(metavar="FOLDER")]]
    out: Path


def recall(results: Sequence[Outcome]) -> dict[str, Any]:
    """The share of planted texts that are gone, with its interval over templates.

    Where there are fewer than eight templates, or all have the same share, the interval is Wilson's over texts.
    """
    gone = np.array([not one.is_left for one in results], dtype=float)
    templates, codes = np.unique([one.case.template for one in results], return_inverse=True)
    value = float(gone.mean())
    influences = cluster_sums((gone - value)[:, None], codes)[:, 0] / len(gone)
    interval = estimate(value, clustered_error(influences, np.bincount(codes) / len(gone)), (0.0, 1.0))
    by_text = binomtest(int(gone.sum()), len(gone)).proportion_ci(method="wilson")
    is_clustered = interval.low is not None
    return {
        "texts": len(gone),
        "templates": len(templates),
        "recall": value,
        "low": interval.low if is_clustered else float(by_text.low),
        "high": interval.high if is_clustered else float(by_text.high),
        "interval_over": "templates" if is_clustered else "texts",
    }


def measure_half(half: Half) -> dict[str, Any]:
    """Recall per kind, how many texts are lost that must stay and, of the development half, all that went wrong."""
    cases = load_cases(half)
    results = outcomes(cases)
    groups: dict[str, list[Outcome]] = {}
    for one in results:
        kind = "name on a later page" if one.case.medium == "session" else one.planted.kind
        if one.planted.kind != STAY:
            groups.setdefault(kind, []).append(one)
    groups["all but references"] = [one for kind in groups if kind != REFERENCE for one in groups[kind]]
    wrong = [one for one in results if one.is_left != (one.planted.kind == STAY)]
    figures = {
        "cases": len(cases),
        "templates": len({case.template for case in cases}),
        "languages": len({case.language for case in cases}),
        "recall": {name: recall(group) for name, group in groups.items()},
        "must_stay": sum(one.planted.kind == STAY for one in results),
        "lost": sum(one.planted.kind == STAY for one in wrong),
    }
    if half == "development":
        figures["wrong"] = [
            f"{one.case.template} {one.case.language} {one.planted.kind}: {one.planted.text}" for one in wrong
        ]
    return figures


def product_texts(data: Path) -> list[str]:
    """500 texts of products that are nobody's: typed queries, names of merchandise, titles and headings of pages."""
    queries = json.loads((data / "webshop_queries/goal_query_map.json").read_text())
    merchandise = _read(data / "merchandise_store/sessions.jsonl.gz")
    pages = [simplify(_read(page), private_data=False).html for page in raw_pages(data)]
    sources = {
        200: [*queries, *(text for typed in queries.values() for text in typed)],
        160: re.findall(r'"name":"([^"\\]+)"', merchandise),
        140: [html.unescape(text) for page in pages for text in re.findall(r"<(?:title|h1)>([^<]*[a-z][^<]*)<", page)],
    }
    texts = []
    for count, every in sources.items():
        distinct = sorted(set(every))
        texts += [distinct[position * len(distinct) // count] for position in range(count)]
    return texts


def is_changed(text: str) -> bool:
    """Whether a product text loses any of it, typed by a shopper or in a paragraph and a link of a page."""
    page = f"<body><p>{html.escape(text)}</p><a href=x>{html.escape(text)}</a></body>"
    return remove_from_text(text) != text or simplify(page) != simplify(page, private_data=False)


def raw_pages(data: Path) -> list[Path]:
    return sorted((data / "raw_pages").rglob("*.html.gz"))


def digest(removal: Removal) -> str:
    """How judged_private.txt calls what was removed, which it must not repeat."""
    return hashlib.sha256(" ".join(removal.text.casefold().split()).encode()).hexdigest()[:16]


def false_removals(data: Path) -> dict[str, Any]:
    """Removals on raw pages that are not private.

    What a recipe marks by its place is; any other if judged_private.txt has its digest, which a person wrote there.
    """
    judged = set(Path(__file__).with_name("judged_private.txt").read_text().split())
    which: dict[str, list[str]] = {}
    pages = raw_pages(data)
    for page in pages:
        for one in simplify(_read(page)).removed:
            if one.found_by != "place" and digest(one) not in judged:
                which.setdefault(page.name, []).append(f"{one.kind}: {one.text} ({digest(one)})")
    return {"pages": len(pages), "which": which}


def _read(path: Path) -> str:
    return gzip.decompress(path.read_bytes()).decode("utf-8", errors="replace")


def _run(options: Measure) -> int:
    if not raw_pages(options.data):
        raise BadConfig(f"{options.data} has no raw_pages/*.html.gz: give the folder of the real data")
    texts = product_texts(options.data)
    figures = {
        "halves": {half: measure_half(half) for half in get_args(Half)},
        "raw_pages": false_removals(options.data),
        "product_texts": {"texts": len(texts), "which": list(filter(is_changed, texts))},
        "provenance": provenance({}),
    }
    text = _markdown(figures)
    write_results(options.out, "private_data", figures, text)
    print(text)
    return 0


def _markdown(figures: dict[str, Any]) -> str:
    lines = []
    for name, half in figures["halves"].items():
        rows = [
            [kind, share["texts"], Estimate(share["recall"], share["low"], share["high"]), share["interval_over"]]
            for kind, share in half["recall"].items()
        ]
        headings = [Column("kind"), Column("texts", "count"), Column("removed, %", "percent"), Column("interval over")]
        lines += [
            f"## {name}: {half['cases']} cases, {half['templates']} templates, {half['languages']} languages\n",
            Table(columns=headings, rows=rows).markdown(),
            f"{half['lost']} of {half['must_stay']} texts that must stay are lost.\n",
        ]
    pages, texts = figures["raw_pages"], figures["product_texts"]
    lines += [
        "## Not private\n",
        f"{len(pages['which'])} of {pages['pages']} raw pages lose something that is not private, and "
        f"{len(texts['which'])} of {texts['texts']} product texts change.\n",
    ]
    return "\n".join(lines)


main = command(Measure, _run)

if __name__ == "__main__":
    sys.exit(main())
