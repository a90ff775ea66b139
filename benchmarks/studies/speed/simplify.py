"""Speed of the simplifier on real pages, on one core, beside BeautifulSoup's walk and BrowserGym-style pruning.

    python -m benchmarks.speed simplify --data ../shared/data

Figures are megabytes of raw page per second of processor time. `simplify.amazon.all` is what `simplify` does to
Amazon's pages by default; `.walk` goes without the removal of private data, as the peers do. `simplify.tag_rules` is
seconds for half a megabyte with 3,000 style rules that were not read before, beside the same page without them.
`simplify.shops` is the pages of all shops. `output` is the size of the result. Peers are interpreted, as ours beside
them is; `simplify.compiled` is ours compiled, where it is (`make compiled`).
"""

import gzip
import itertools
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from itertools import product
from pathlib import Path

import msgspec

from benchmarks.studies.speed import tag_rules
from benchmarks.studies.speed.measurement import Measurement, Options, compare_rates, find_pages, median_times
from benchmarks.studies.speed.simplify_peers import prune, soup_simplify
from replay_sessions.simplify import IS_COMPILED, load_recipe, simplify

Tasks = dict[str, Callable[[bytes], object]]

_RUNS = 5
# The removal of private data is ours alone: `walk` goes without it, as the peers do.
_OURS: Tasks = {"all": simplify, "walk": partial(simplify, private_data=False)}
_PEERS: Tasks = {"beautifulsoup": soup_simplify, "browsergym_style": prune}


def measure(options: Options) -> Iterator[Measurement]:
    """Measures all pages below `raw_pages` of the test data.

    Raises:
        BadConfig: there is no such folder.
    """
    folder = options.data or os.environ.get("SHOP_R1_TEST_DATA", "")
    pages = [gzip.decompress(file.read_bytes()) for file in find_pages(Path(folder, "raw_pages"))]
    amazon = load_recipe("amazon")
    runs = options.get_runs(_RUNS)
    yield from _tag_rules(runs)
    amazon_pages = [page for page in pages if amazon.recognises(page)]
    if IS_COMPILED:
        for shops, some in (("amazon", amazon_pages), ("shops", pages)):
            for task, value in _speed(some, _OURS, runs).items():
                yield Measurement(name=f"simplify.compiled.{shops}.{task}", value=value, unit="MB/s", runs=runs)
        yield from _measure_interpreted(options.data, runs)
        return
    speed = _speed(amazon_pages, _OURS | _PEERS, runs)
    for ours, peer in product(_OURS, _PEERS):
        seconds = {"ours": 1 / speed[ours], peer: 1 / speed[peer]}  # for a megabyte
        yield compare_rates(f"simplify.amazon.{ours}.{peer}", "MB/s", 1.0, seconds, peer, runs)
    yield _output("simplify.amazon.output", amazon_pages)
    for task, value in _speed(pages, _OURS, runs).items():
        yield Measurement(name=f"simplify.shops.{task}", value=value, unit="MB/s", runs=runs)
    yield _output("simplify.shops.output", pages)


def _tag_rules(runs: int) -> Iterator[Measurement]:
    """The time that rules about tags take, each kind on the same page."""
    kind = "simplify.compiled.tag_rules" if IS_COMPILED else "simplify.tag_rules"
    for name, rule in tag_rules.RULES.items():
        firsts = itertools.count(0, 3_000)

        def style_page(rule: str = rule, firsts: Iterator[int] = firsts) -> None:
            simplify(tag_rules.write_rules(rule, next(firsts)) + tag_rules.PAGE)

        seconds = median_times({"ours": style_page, "without_rules": partial(simplify, tag_rules.PAGE)}, runs)
        ours, alone = seconds["ours"], seconds["without_rules"]
        yield Measurement(
            name=f"{kind}.{name}.without_rules", value=ours, unit="s", runs=runs, peer="without_rules",
            peer_value=alone, ratio=alone / ours,
        )  # fmt: skip


def _measure_interpreted(data: Path | None, runs: int) -> list[Measurement]:
    """The same measurement by a process that interprets all of it, for a compiled walk takes no nodes but lexbor's."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "interpreted.json")
        command = ["benchmarks.speed", "simplify", "--runs", str(runs), "--json", str(file)]
        command += ["--data", str(data)] if data is not None else []
        environment = {**os.environ, "SHOP_R1_INTERPRETED": "1"}
        subprocess.run([sys.executable, "-m", *command], env=environment, stdout=subprocess.DEVNULL, check=True)
        return msgspec.json.decode(file.read_bytes(), type=list[Measurement])


def _speed(pages: list[bytes], tasks: Tasks, runs: int) -> dict[str, float]:
    """Megabytes per second of each task, by the sum of the median times of the pages."""
    seconds = dict.fromkeys(tasks, 0.0)
    for page in pages:
        calls = {task: partial(function, page) for task, function in tasks.items()}
        for task, median in median_times(calls, runs).items():
            seconds[task] += median
    return {task: sum(map(len, pages)) / 1e6 / second for task, second in seconds.items()}


def _output(name: str, pages: list[bytes]) -> Measurement:
    written = sum(len(simplify(page).html.encode()) for page in pages)
    return Measurement(name=name, value=written / sum(map(len, pages)) * 100, unit="% of the input", runs=1)
