"""Ranks agents on the logged steps of a split.

  python -m benchmarks.leaderboard --agents random,oracle --out runs/first
  python -m benchmarks.leaderboard --agents random my.py:MyAgent --out runs/m
  python -m benchmarks.leaderboard --agents "T=0.6=runs/demo/sft" \\
    "greedy=runs/demo/sft?temperature=0" --out runs/sft
  python -m benchmarks.leaderboard --agents random --store stores/mine \\
    --split validation --sessions 100 --out runs/x
  python -m benchmarks.leaderboard --agents oracle --likelihood --out runs/l
  python -m benchmarks.leaderboard --agents oracle \\
    --context.persona shuffled --out runs/shuffled

The figures are recomputed from the records, and two agents compared step by step, by

  python -m benchmarks.leaderboard verify runs/first
  python -m benchmarks.leaderboard compare runs/first random oracle
  python -m benchmarks.leaderboard compare runs/first oracle oracle \\
    --second-folder runs/shuffled

An agent whose records are complete is not run again (--fresh runs it). Exit codes: 0 done, 1 verify found a mismatch,
2 the call or its input was wrong.
"""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal

import msgspec
import tyro
from rich.box import SIMPLE_HEAD
from rich.table import Table

from agents.results import render_table, results_console
from benchmarks.leaderboard.compare import COMPARED, compare
from benchmarks.leaderboard.config import LeaderboardConfig
from benchmarks.leaderboard.run import Results, run_leaderboard
from benchmarks.leaderboard.verify import verify
from replay_sessions.commands.command_line import parse_options, run_command
from replay_sessions.store import SessionStore

PROGRAM = "python -m benchmarks.leaderboard"
MISMATCHES_SHOWN = 10


class Verify(msgspec.Struct, frozen=True, kw_only=True):
    """Recomputes a leaderboard's figures from its records and says whether they match.

    Attributes:
        folder: The --out of a leaderboard run.
        store: Compare the logged actions with this store too: `demo` or a path.
    """

    folder: tyro.conf.Positional[Annotated[Path, tyro.conf.arg(metavar="FOLDER")]]
    store: str | None = None


class Compare(msgspec.Struct, frozen=True, kw_only=True):
    """The paired difference of two agents, first less second, with its 95% interval.

    Attributes:
        folder: The --out of a leaderboard run.
        first: The label of an agent in it.
        second: The label of another.
        second_folder: The --out of another leaderboard run that holds the second; None: the same.
        metrics: Names of shop_env.metrics.over_steps.
        cluster: Draw whole sessions or whole users; None: as the leaderboard did.
    """

    folder: tyro.conf.Positional[Annotated[Path, tyro.conf.arg(metavar="FOLDER")]]
    first: tyro.conf.Positional[Annotated[str, tyro.conf.arg(metavar="FIRST")]]
    second: tyro.conf.Positional[Annotated[str, tyro.conf.arg(metavar="SECOND")]]
    second_folder: Path | None = None
    metrics: tuple[str, ...] = COMPARED
    cluster: Literal["session", "user"] | None = None


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line: 0 done, 1 verify found a mismatch, 2 the call or its input was wrong."""
    words = sys.argv[1:] if arguments is None else arguments
    return run_command(lambda: _run(words))


def _run(words: Sequence[str]) -> int:
    # Ranking is what one mostly wants, so it needs no subcommand; the two others are named.
    if words[:1] == ["verify"]:
        return _verify(parse_options(Verify, words[1:], program=f"{PROGRAM} verify"))
    if words[:1] == ["compare"]:
        return _compare(parse_options(Compare, words[1:], program=f"{PROGRAM} compare"))
    return _rank(parse_options(LeaderboardConfig, words, program=PROGRAM, text=__doc__))


def _rank(config: LeaderboardConfig) -> int:
    results = run_leaderboard(config)
    console = results_console()
    caption = f"percent, reward in points; 95% intervals from a bootstrap over {config.cluster}s"
    title = f"{config.store}, split {config.split}"
    console.print(render_table(results.rows, title=title, caption=caption, width=console.width))
    for line in _remarks(results):
        console.print(line, markup=False, highlight=False)
    return 0


def _remarks(results: Results) -> list[str]:
    config = results.config
    lines = []
    for entry in results.entries:
        errors, asked = entry.row.errors, entry.row.steps + entry.row.errors
        if errors:
            lines.append(f"{entry.row.label}: no reply at {errors} of {asked} steps; the same command asks them again")
            lines.append(f"    the first: {entry.row.first_error}")
    if reused := [entry for entry in results.entries if entry.reused]:
        labels = ", ".join(entry.spec.label for entry in reused)
        lines.append(f"from records that were there: {labels} (--fresh runs them again)")
    for entry in reused:
        before, now = entry.run.provenance["commit"], results.provenance["commit"]
        if before != now:
            lines.append(f"{entry.spec.label}: its records were made at commit {before}, this is {now}")
    return [*lines, f"written: {config.folder / 'results.json'}, leaderboard.md, agents/*/steps.jsonl"]


def _verify(asked: Verify) -> int:
    mismatches = verify(asked.folder, SessionStore.open(asked.store) if asked.store else None)
    for label, found in mismatches.items():
        print(f"{label}: {'matches its records' if not found else f'{len(found)} mismatches'}")
        for line in found[:MISMATCHES_SHOWN]:
            print(f"    {line}")
    return 1 if any(mismatches.values()) else 0


def _compare(asked: Compare) -> int:
    found = compare(
        asked.folder,
        asked.first,
        asked.second,
        second_folder=asked.second_folder,
        metrics=asked.metrics,
        cluster=asked.cluster,
    )
    second = asked.second if asked.second_folder is None else f"{asked.second} in {asked.second_folder}"
    table = Table(title=f"{asked.first} less {second}", box=SIMPLE_HEAD, title_justify="left")
    for heading in ("metric", asked.first, asked.second, "difference", "95% interval", ""):
        table.add_column(heading, justify="left" if heading in ("metric", "") else "right")
    for one in found:
        shown = [f"{value:.4f}" for value in (one.first, one.second)]
        verdict = "excludes 0" if one.excludes_zero else "includes 0"
        table.add_row(one.metric, *shown, f"{one.difference:+.4f}", f"{one.low:+.4f} to {one.high:+.4f}", verdict)
    results_console().print(table)
    return 0


if __name__ == "__main__":
    sys.exit(main())
