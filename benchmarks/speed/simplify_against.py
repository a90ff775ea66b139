"""The simplifier's speed against that of another working tree, on the raw pages, in one run.

    git worktree add ../before 99deac0
    python -m benchmarks.speed.simplify_against ../before --data ../shared/data --json simplify_against.json

Each tree has a process of its own; page by page they take turns. `fresh` is the first time that a process simplifies
a page, `seen` the second time, when its style sheets and classes are known. A process is warmed with one small page
before. Figures are seconds of processor time, the median of the runs; `ratio` is the other tree's time by this one's,
so 0.9 means nine tenths of its speed. This tree is measured as it stands, compiled where it is (`make compiled`), and
`interpreted`. `bare` is it interpreted without what commit 99deac0 did not do: style sheets, cards of what a page
repeats, labels without badges and prices, names told apart by addresses. Its pages are worse, and nothing but its time
is of interest: it tells how much of the difference is the price of those four.
"""

import contextlib
import os
import statistics
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import msgspec
import tyro

from replay_sessions.commands.command_line import parse_options, run_command
from replay_sessions.errors import BadConfig
from replay_sessions.provenance import provenance

_HERE = Path(__file__).resolve().parents[2]
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
from replay_sessions.simplify import last_parts, page, pieces, walk
rules = page.StyleRules
page.StyleRules = lambda styles: rules([])
page.set_cards = lambda *given: []
walk.Walk._keep_part = lambda self, *given: None
pieces.PieceWriter.steady_text = lambda self, piece, words, *given: words
last_parts.tell_apart = lambda *given: {}
"""
_TREES = ("this", "other", "interpreted", "bare")


class Against(msgspec.Struct, frozen=True, kw_only=True):
    """Measures this working tree's simplifier against another's.

    Attributes:
        tree: The other working tree.
        data: The folder of third-party test data, with raw_pages in it.
        runs: How often both processes are started anew.
        json: Write the figures to this file.
    """

    tree: tyro.conf.Positional[Annotated[Path, tyro.conf.arg(metavar="FOLDER")]]
    data: Path
    runs: int = 5
    json: Path | None = None


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line: 0 done, 2 the call or its input was wrong."""
    words = sys.argv[1:] if arguments is None else arguments
    program = "python -m benchmarks.speed.simplify_against"
    return run_command(lambda: _run(parse_options(Against, words, program=program, text=__doc__)))


def _run(options: Against) -> int:
    results = measure(options.tree, options.data / "raw_pages", options.runs)
    for name in _PASSES:
        ratio, interpreted, bare = (results[name][key] for key in ("ratio", "interpreted_ratio", "bare_ratio"))
        sys.stdout.write(
            f"{name:<8}{ratio:>6.2f} of the speed of {options.tree}, interpreted {interpreted:.2f}, bare {bare:.2f}\n"
        )
    if options.json is not None:
        results["provenance"] = provenance({"tree": options.tree.name, "runs": options.runs})
        options.json.write_bytes(msgspec.json.format(msgspec.json.encode(results), indent=2) + b"\n")
    return 0


def measure(other: Path, folder: Path, runs: int) -> dict[str, Any]:
    """The seconds that this tree and another take for all pages of a folder.

    Raises:
        BadConfig: There are no pages, no simplifier in the other tree, or nothing to do.
    """
    pages = [file for file in sorted(folder.rglob("*.html.gz")) if file.read_bytes()[:2] == b"\x1f\x8b"]
    if not pages:
        raise BadConfig(f"no *.html.gz in {folder}: --data names the folder of third-party test data")
    if not (other / "replay_sessions" / "simplify").is_dir():
        raise BadConfig(f"no replay_sessions/simplify in {other}: give another working tree of this project")
    if runs < 1:
        raise BadConfig(f"runs is {runs}; at least 1")
    seconds: dict[str, dict[str, list[float]]] = {name: {tree: [] for tree in _TREES} for name in _PASSES}
    for run in range(runs):
        for name, sums in _one_run(other.resolve(), pages, run).items():
            for tree, value in sums.items():
                seconds[name][tree].append(value)
        sys.stderr.write(f"run {run + 1} of {runs}\n")
    return {name: _figures(found) for name, found in seconds.items()} | {"pages": len(pages)}


def _one_run(other: Path, pages: list[Path], run: int) -> dict[str, dict[str, float]]:
    workers = {
        "this": _started(_HERE),
        "other": _started(other),
        "interpreted": _started(_HERE, is_interpreted=True),
        "bare": _started(_HERE, _BARE, is_interpreted=True),
    }
    try:
        sums = {name: dict.fromkeys(workers, 0.0) for name in _PASSES}
        for name in _PASSES:
            for number, page in enumerate(pages):
                first = (number + run) % len(_TREES)
                for tree in (*_TREES[first:], *_TREES[:first]):
                    sums[name][tree] += _asked(workers[tree], page)
        return sums
    finally:
        for worker in workers.values():
            worker.kill()
            worker.wait()
            for pipe in (worker.stdin, worker.stdout):
                assert pipe is not None
                with contextlib.suppress(BrokenPipeError):  # of what was written to one that has ended
                    pipe.close()


def _started(tree: Path, before: str = "", *, is_interpreted: bool = False) -> "subprocess.Popen[str]":
    # -P: whatever lies in the current folder is not taken for the tree's.
    return subprocess.Popen(
        [sys.executable, "-P", "-c", before + _WORKER],
        env={**os.environ, "PYTHONPATH": str(tree), "SHOP_R1_INTERPRETED": "1" if is_interpreted else ""},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def _asked(worker: "subprocess.Popen[str]", page: Path) -> float:
    assert worker.stdin is not None
    assert worker.stdout is not None
    with contextlib.suppress(BrokenPipeError):  # of one that has ended, which says nothing then
        worker.stdin.write(f"{page.resolve()}\n")
        worker.stdin.flush()
    if not (told := worker.stdout.readline()):
        raise BadConfig(f"a tree's simplifier ended at {page.name}: its error stands above")
    return float(told)


def _figures(found: dict[str, list[float]]) -> dict[str, Any]:
    seconds = {tree: statistics.median(found[tree]) for tree in _TREES}
    ratios = {tree: _ratios(found, tree) for tree in _TREES}
    return {
        "seconds": seconds["this"],
        "ratio": statistics.median(ratios["this"]),
        "ratios": ratios["this"],
        "other_seconds": seconds["other"],
        "interpreted_seconds": seconds["interpreted"],
        "interpreted_ratio": statistics.median(ratios["interpreted"]),
        "bare_seconds": seconds["bare"],
        "bare_ratio": statistics.median(ratios["bare"]),
    }


def _ratios(found: dict[str, list[float]], tree: str) -> list[float]:
    return [theirs / ours for ours, theirs in zip(found[tree], found["other"], strict=True)]


if __name__ == "__main__":
    sys.exit(main())
