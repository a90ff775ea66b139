"""Speed of the simplifier on real pages, on one core, beside BrowserGym-style pruning.

    python -m benchmarks.speed simplify --data ../shared/data

Figures are megabytes of raw page per second of processor time. `simplify.amazon` is Amazon's pages, `simplify.shops`
the pages of all shops; `.walk` goes without the removal of private data, as the peer does. `output` is the size of the
result.
"""

import gzip
import os
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from benchmarks.speed.measurement import Measurement, Options, compare_rates, find_pages, median_times
from benchmarks.speed.simplify_peers import prune
from replay_sessions.simplify import simplify
from replay_sessions.simplify.recipes import find_recipe

_RUNS = 5
_WAYS: dict[str, Callable[[bytes], object]] = {
    "all": simplify,
    "walk": partial(simplify, private_data=False),
    "browsergym_style": prune,
}


def measure(options: Options) -> Iterator[Measurement]:
    """Measures all pages below `raw_pages` of the test data.

    Raises:
        BadConfig: There is no such folder.
    """
    folder = options.data or os.environ.get("SHOP_R1_TEST_DATA", "")
    pages = [gzip.decompress(file.read_bytes()) for file in find_pages(Path(folder, "raw_pages"))]
    runs = options.get_runs(_RUNS)
    amazon = [page for page in pages if find_recipe(page).name == "amazon"]
    for shops, some in (("amazon", amazon), ("shops", pages)):
        seconds = dict.fromkeys(_WAYS, 0.0)
        for page in some:
            for way, median in median_times({way: partial(_WAYS[way], page) for way in _WAYS}, runs).items():
                seconds[way] += median
        read = sum(map(len, some))
        for way in ("all", "walk"):
            name, both = f"simplify.{shops}.{way}.browsergym_style", seconds | {"ours": seconds[way]}
            yield compare_rates(name, "MB/s", read / 1e6, both, "browsergym_style", runs)
        written = sum(len(simplify(page).html.encode()) for page in some)
        yield Measurement(name=f"simplify.{shops}.output", value=100 * written / read, unit="% of the input", runs=1)
