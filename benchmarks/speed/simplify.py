"""Measures the speed of the simplifier on real pages, on one core, beside BrowserGym-style pruning.

    python -m benchmarks.speed simplify --data ../shared/data

Speeds are megabytes of raw page per second of processor time. `simplify.amazon` is Amazon's pages, `simplify.shops` the
pages of all shops. `.walk` omits the removal of private data, which the peer does not do either. `.output` is the size
of the result.
"""

import gzip
import os
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

from benchmarks.speed.measurement import Measurement, Options, compare, median_times
from benchmarks.speed.simplify_peers import prune
from replay_sessions.foundation.errors import BadConfig
from replay_sessions.simplify import simplify
from replay_sessions.simplify.recipes import find_recipe

_PEER = "browsergym_style"
_WAYS: dict[str, Callable[[bytes], object]] = {
    "all": simplify,
    "walk": partial(simplify, private_data=False),
    _PEER: prune,
}


def measure(options: Options) -> Iterator[Measurement]:
    """Yields the measurements of all pages in the folder `raw_pages` of the test data.

    Raises:
        BadConfig: The folder has no page.
    """
    folder = Path(options.data or os.environ.get("SHOP_R1_TEST_DATA", ""), "raw_pages")
    packed = [file.read_bytes() for file in sorted(folder.rglob("*.html.gz"))]
    pages = [gzip.decompress(content) for content in packed if content[:2] == b"\x1f\x8b"]  # some are not gzipped
    if not pages:
        raise BadConfig(f"no *.html.gz in '{folder}': --data names the folder of third-party test data")
    amazon = [page for page in pages if find_recipe(page).name == "amazon"]
    for shops, selected in (("amazon", amazon), ("shops", pages)):
        seconds = median_times({name: partial(_take, way, selected) for name, way in _WAYS.items()}, options.runs)
        read = sum(map(len, selected))
        for way in ("all", "walk"):
            name, times = f"simplify.{shops}.{way}.{_PEER}", seconds | {"ours": seconds[way]}
            yield compare(name, times, _PEER, options.runs, unit="MB/s", amount=read / 1e6)
        written = sum(len(simplify(page).html.encode()) for page in selected)
        yield Measurement(name=f"simplify.{shops}.output", value=100 * written / read, unit="% of the input", runs=1)


def _take(way: Callable[[bytes], object], pages: Sequence[bytes]) -> None:
    for page in pages:
        way(page)
