"""The simplifier's speed against that of another working tree, on the raw pages, in one run.

    git worktree add ../before 99deac0
    python -m benchmarks.studies.speed.simplify_against ../before --data ../shared/data --json simplify_against.json

Each tree has a process of its own; page by page they take turns. `fresh` is the first time that a process simplifies
a page, `seen` the second time, when its style sheets and classes are cached. A process is warmed with one small page
before. Figures are seconds of processor time, the median of the runs; `ratio` is the other tree's time by this one's,
so 0.9 means nine tenths of its speed. This tree is measured as it stands, compiled where it is (`make compiled`), and
`interpreted`. `bare` is it interpreted without what commit 99deac0 did not do: style sheets, cards of what a page
repeats, labels without badges and prices, names disambiguated by addresses. Its pages are worse, and only its time is
of interest: it shows how much of the difference those four cost.
"""

import contextlib
import os
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Annotated, Any

import tyro

from benchmarks.studies.speed.measurement import find_pages
from benchmarks.studies.speed.study import show_results
from replay_sessions.foundation.command_line import command
from replay_sessions.foundation.errors import BadConfig, check_at_least
from replay_sessions.foundation.provenance import provenance
from replay_sessions.foundation.records import Record

_HERE = Path(__file__).resolve().parents[3]
_PASSES = ("fresh", "seen")
# What either tree runs; it stands on nothing but `simplify`, which both have.
_WORKER = """
import gzip, sys, time
from replay_sessions.simplify import simplify
simplify("<title>Kettle élan</title><body><p>Phone: 030 901820</p><a href=/x>Red kettle</a></body>")
for line in sys.stdin:
    page = gzip.open(line.rstrip("\\n")).read()
    start = time.process_time()
    simplify(page)
    print(time.process_time() - start, flush=True)
"""
# What `bare` runs before: the four do nothing.
_BARE = """
from replay_sessions.simplify import apart, page, pieces, trees, walk
rules = trees.StyleRules
trees.StyleRules = lambda *given, **named: rules([])
page.set_cards = lambda *given: []
walk.Walk._keep_part = lambda self, *given: None
pieces.PieceWriter.steady_text = lambda self, piece, words, *given: words
apart.tell_apart = lambda *given: {}
"""
# name -> what its worker runs before, and whether it is interpreted.
_TREES = {"this": ("", ""), "other": ("", ""), "interpreted": ("", "1"), "bare": (_BARE, "1")}

Seconds = dict[str, dict[str, list[float]]]  # by pass and tree, one for each run


class Against(Record):
    """Measures this working tree's simplifier against another's.

    Attributes:
        tree: The other working tree.
        data: The folder of third-party test data, with raw_pages in it.
        runs: How often all processes are started anew.
        json: Write the figures to this file.
    """

    tree: tyro.conf.Positional[Annotated[Path, tyro.conf.arg(metavar="FOLDER")]]
    data: Path
    runs: int = 5
    json: Path | None = None


def _run(options: Against) -> int:
    results = measure(options.tree, options.data / "raw_pages", options.runs)
    for name in _PASSES:
        ratio, interpreted, bare = (results[name][key] for key in ("ratio", "interpreted_ratio", "bare_ratio"))
        sys.stdout.write(
            f"{name:<8}{ratio:>6.2f} of the speed of {options.tree}, interpreted {interpreted:.2f}, bare {bare:.2f}\n"
        )
    if options.json is not None:
        results["provenance"] = provenance({"tree": options.tree.name, "runs": options.runs})
        show_results(options.json, results)
    return 0


def measure(other: Path, folder: Path, runs: int) -> dict[str, Any]:
    """The seconds that this tree and another take for all pages of a folder.

    Raises:
        BadConfig: There are no pages, no simplifier in the other tree, or nothing to do.
    """
    pages = find_pages(folder)
    if not (other / "replay_sessions" / "simplify").is_dir():
        raise BadConfig(f"no replay_sessions/simplify in {other}: give another working tree of this project")
    check_at_least(1, runs=runs)
    seconds: Seconds = {name: {tree: [] for tree in _TREES} for name in _PASSES}
    for run in range(runs):
        _measure_once(other.resolve(), pages, run, seconds)
        sys.stderr.write(f"run {run + 1} of {runs}\n")
    return {name: _summarize(by_tree) for name, by_tree in seconds.items()} | {"pages": len(pages)}


def _measure_once(other: Path, pages: list[Path], run: int, seconds: Seconds) -> None:
    with contextlib.ExitStack() as stack:
        workers = {
            name: stack.enter_context(_start_worker(other if name == "other" else _HERE, before, interpreted))
            for name, (before, interpreted) in _TREES.items()
        }
        for stopped in workers.values():
            stack.callback(stopped.kill)
        for name in _PASSES:
            sums = dict.fromkeys(workers, 0.0)
            for number, page in enumerate(pages):
                first = (number + run) % len(workers)
                for tree in [*workers, *workers][first : first + len(workers)]:
                    sums[tree] += _time_page(workers[tree], page)
            for tree, total in sums.items():
                seconds[name][tree].append(total)


def _start_worker(tree: Path, before: str, interpreted: str) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(
        # -P: whatever lies in the current folder is not taken for the tree's.
        [sys.executable, "-P", "-c", before + _WORKER],
        env={**os.environ, "PYTHONPATH": str(tree), "SHOP_R1_INTERPRETED": interpreted},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        bufsize=0,  # nothing is left to write when the pipe of a worker that has ended is closed
    )


def _time_page(worker: "subprocess.Popen[bytes]", page: Path) -> float:
    assert worker.stdin is not None
    assert worker.stdout is not None
    with contextlib.suppress(BrokenPipeError):  # of one that has ended, which answers nothing then
        worker.stdin.write(f"{page.resolve()}\n".encode())
    if not (seconds := worker.stdout.readline()):
        raise BadConfig(f"a tree's simplifier ended at {page.name}: its error stands above")
    return float(seconds)


def _summarize(seconds: dict[str, list[float]]) -> dict[str, Any]:
    figures: dict[str, Any] = {}
    for tree, values in seconds.items():
        prefix = "" if tree == "this" else f"{tree}_"
        ratios = [theirs / ours for ours, theirs in zip(values, seconds["other"], strict=True)]
        figures |= {f"{prefix}seconds": statistics.median(values), f"{prefix}ratio": statistics.median(ratios)}
        if tree == "this":
            figures["ratios"] = ratios
    return figures


main = command(Against, _run)

if __name__ == "__main__":
    sys.exit(main())
