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

Whether the figures follow from the kept replies, whether those are the agents'
own, and how two agents differ step by step, is told by

  python -m benchmarks.leaderboard verify runs/first
  python -m benchmarks.leaderboard verify runs/first --reask 20
  python -m benchmarks.leaderboard compare runs/first random oracle
  python -m benchmarks.leaderboard compare runs/first oracle oracle \\
    --second-folder runs/shuffled --across context

Replies that another machine asked for are taken over, and what was verified
becomes a recorded result, by

  python -m benchmarks.leaderboard take runs/first other/first
  python -m benchmarks.leaderboard submit runs/first floors/mine --reask 20

Each reply is kept as it comes, and no step is asked twice (--fresh asks again): another reward, other metrics or
sessions are counted from what was kept. Exit codes: 0 done, 1 verify found a mismatch or an agent gave no reply at all,
2 the call or its input was wrong.
"""

import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Literal

import msgspec
import tyro
from rich.box import SIMPLE_HEAD
from rich.table import Table

from agents.results import render_table, results_console
from benchmarks.leaderboard.compare import COMPARED, Compared, compare, settings_that_differ
from benchmarks.leaderboard.config import LeaderboardConfig
from benchmarks.leaderboard.ranking import Results, run_leaderboard
from benchmarks.leaderboard.submission import submit
from benchmarks.leaderboard.taking import take
from benchmarks.leaderboard.verify import read_results, verify
from replay_sessions.commands.command_line import parse_options, run_command
from replay_sessions.errors import BadConfig, StoreNotFound
from replay_sessions.store import SessionStore

PROGRAM = "python -m benchmarks.leaderboard"
MISMATCHES_SHOWN = 10


class Verify(msgspec.Struct, frozen=True, kw_only=True):
    """Makes a leaderboard's records, figures and table anew from the kept replies and says whether they match.

    Attributes:
        folder: The --out of a leaderboard run.
        store: The store it was run on, `demo` or a path; None: where the run found it.
        reask: Ask each agent so many of its steps again and compare: nothing else finds replies that are not its own.
    """

    folder: tyro.conf.Positional[Annotated[Path, tyro.conf.arg(metavar="FOLDER")]]
    store: str | None = None
    reask: int = 0


class Compare(msgspec.Struct, frozen=True, kw_only=True):
    """The paired difference of two agents, first less second, with its 95% interval.

    Attributes:
        folder: The --out of a leaderboard run.
        first: The label of an agent in it.
        second: The label of another.
        second_folder: The --out of another leaderboard run that holds the second; None: the same.
        across: What may differ between the two folders beside the agents, such as `context`; it is said in the title.
        metrics: Names of shop_env.metrics.over_steps.
        cluster: Draw whole users or whole sessions; None: as the leaderboard did.
        with_errors: Compare agents that gave no reply at some steps too; those count as misses.
    """

    folder: tyro.conf.Positional[Annotated[Path, tyro.conf.arg(metavar="FOLDER")]]
    first: tyro.conf.Positional[Annotated[str, tyro.conf.arg(metavar="FIRST")]]
    second: tyro.conf.Positional[Annotated[str, tyro.conf.arg(metavar="SECOND")]]
    second_folder: Path | None = None
    across: tuple[str, ...] = ()
    metrics: tuple[str, ...] = COMPARED
    cluster: Literal["session", "user"] | None = None
    with_errors: bool = False


class Take(msgspec.Struct, frozen=True, kw_only=True):
    """Takes replies that were kept elsewhere over into a leaderboard, or a series of them; the next run counts them.

    Attributes:
        folder: The --out that they go to; it may be new.
        others: Folders of the same leaderboard or series, asked in part, from other machines say.
    """

    folder: tyro.conf.Positional[Annotated[Path, tyro.conf.arg(metavar="FOLDER")]]
    others: tyro.conf.Positional[Annotated[tuple[Path, ...], tyro.conf.arg(metavar="OTHER")]]


class Submit(msgspec.Struct, frozen=True, kw_only=True):
    """Verifies a leaderboard and, if nothing is found, records its figures.

    Attributes:
        folder: The --out of a leaderboard run.
        name: Of the record, such as floors/demo: RESULTS/floors/demo.json and demo.md are written.
        results: The folder of recorded results.
        store: The store it was run on, `demo` or a path; None: where the run found it.
        reask: Ask each agent so many of its steps again: nothing else finds replies that are not its own.
    """

    folder: tyro.conf.Positional[Annotated[Path, tyro.conf.arg(metavar="FOLDER")]]
    name: tyro.conf.Positional[Annotated[str, tyro.conf.arg(metavar="NAME")]]
    results: Path = Path("benchmarks/results")
    store: str | None = None
    reask: int = 0


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line: 0 done, 1 verify found a mismatch, 2 the call or its input was wrong."""
    words = sys.argv[1:] if arguments is None else arguments
    return run_command(lambda: _run(words))


def _run(words: Sequence[str]) -> int:
    # Ranking is what one mostly wants, so it needs no subcommand; the others are named.
    if words[:1] == ["verify"]:
        return _verify(parse_options(Verify, words[1:], program=f"{PROGRAM} verify"))
    if words[:1] == ["compare"]:
        return _compare(parse_options(Compare, words[1:], program=f"{PROGRAM} compare"))
    if words[:1] == ["take"]:
        return _take(parse_options(Take, words[1:], program=f"{PROGRAM} take"))
    if words[:1] == ["submit"]:
        return _submit(parse_options(Submit, words[1:], program=f"{PROGRAM} submit"))
    return _rank(parse_options(LeaderboardConfig, words, program=PROGRAM, text=__doc__))


def _rank(config: LeaderboardConfig) -> int:
    results = run_leaderboard(config)
    console = results_console()
    caption = f"percent, reward in points; 95% intervals from a bootstrap over {config.cluster}s"
    title = f"{config.store}, split {config.split}"
    console.print(render_table(results.rows, title=title, caption=caption, width=console.width))
    for line in _remarks(results):
        console.print(line, markup=False, highlight=False)
    return 1 if any(entry.row.steps == 0 for entry in results.entries) else 0


def _remarks(results: Results) -> list[str]:
    config = results.config
    lines = []
    for entry in results.entries:
        errors, asked = entry.row.errors, entry.row.steps + entry.row.errors
        if errors:
            where = "all" if errors == asked else str(errors)
            said = f"{entry.row.label}: no reply at {where} of {asked} steps, so it is not ranked"
            lines += [f"{said}; the same command asks again", f"    the first: {entry.row.first_error}"]
    lines += [f"{entry.spec.label}: {remark}" for entry in results.entries for remark in entry.remarks]
    if kept := [entry for entry in results.entries if not entry.asked_now]:
        labels = ", ".join(entry.spec.label for entry in kept)
        lines.append(f"from replies that were kept: {labels} (--fresh asks again)")
    now = results.provenance["commit"]
    for entry in results.entries:
        others = dict.fromkeys(one["commit"] for one in entry.run.asked_by if one["commit"] != now)
        lines += [f"{entry.spec.label}: has replies from commit {commit}, this is {now}" for commit in others]
    return [*lines, f"written: {config.folder / 'results.json'}, leaderboard.md, agents/*/steps.jsonl"]


def _verify(asked: Verify) -> int:
    store = _store_of(asked)
    if store is None:
        print("the store is not at hand (--store): records are compared with their own replies only, not with the log")
    return _told(verify(asked.folder, store, reask=asked.reask), asked.reask)


def _told(mismatches: Mapping[str, Sequence[str]], reask: int) -> int:
    for part, found in mismatches.items():
        print(f"{part}: {'as it should be' if not found else f'{len(found)} mismatches'}")
        for line in found[:MISMATCHES_SHOWN]:
            print(f"    {line}")
    if not reask:
        print("whether the replies are the agents' own, only --reask N tells")
    return 1 if any(mismatches.values()) else 0


def _take(asked: Take) -> int:
    for other in asked.others:
        print(f"{other}: {take(asked.folder, other)} files of replies hold something new")
    return 0


def _submit(asked: Submit) -> int:
    store = _store_of(asked)
    if store is None:
        raise BadConfig("only what the store proves is recorded: give it by --store")
    code = _told(submit(asked.folder, asked.name, asked.results, store, reask=asked.reask), asked.reask)
    print(f"recorded: {asked.results / asked.name}.json, .md" if code == 0 else "not recorded")
    return code


def _store_of(asked: Verify | Submit) -> SessionStore | None:
    if asked.store is not None:
        return SessionStore.open(asked.store)
    try:
        return SessionStore.open(read_results(asked.folder).config.store)
    except StoreNotFound:
        return None


def _compare(asked: Compare) -> int:
    found = compare(
        asked.folder,
        asked.first,
        asked.second,
        second_folder=asked.second_folder,
        across=asked.across,
        metrics=asked.metrics,
        cluster=asked.cluster,
        with_errors=asked.with_errors,
    )
    second = asked.second if asked.second_folder is None else f"{asked.second} in {asked.second_folder}"
    differing = settings_that_differ(read_results(asked.folder), read_results(asked.second_folder or asked.folder))
    title = "\n".join([f"{asked.first} less {second}", *(f"across {name}: {both}" for name, both in differing.items())])
    table = Table(title=title, box=SIMPLE_HEAD, title_justify="left")
    for heading in ("metric", asked.first, asked.second, "difference", "95% interval", "differ", "p", "Holm p"):
        table.add_column(heading, justify="left" if heading in ("metric", "differ") else "right")
    for one in found:
        table.add_row(one.difference.metric, *_cells(one))
    console = results_console()
    console.print(table)
    for line in _how_much_can_be_told(found, cluster=asked.cluster or read_results(asked.folder).config.cluster):
        console.print(line, markup=False, highlight=False)
    return 0


def _cells(found: Compared) -> Iterator[str]:
    one = found.difference
    yield from (f"{value:.4f}" for value in (found.first, found.second))
    yield f"{one.difference:+.4f}"
    bootstrap = f"{one.low:+.4f} to {one.high:+.4f}"
    yield bootstrap if one.test is None else f"{one.ends[0]:+.4f} to {one.ends[1]:+.4f}\nbootstrap {bootstrap}"
    yield "yes" if one.told_apart else "no"
    yield from ["–", "–"] if one.test is None else [f"{one.test.sign_flip_p_value:.2g}", f"{one.holm_p_value:.2g}"]


def _how_much_can_be_told(found: Sequence[Compared], cluster: str) -> Iterator[str]:
    yield "differ: the 95% interval (CR2, which holds for few too) does not hold 0"
    yield f"p: of swapping the two {cluster} by {cluster}; Holm p: adjusted for {len(found)} metrics"
    for one in (compared.difference for compared in found):
        if one.test is not None:
            correlation = "–" if one.test.correlation is None else f"{one.test.correlation:.2f}"
            yield (
                f"{one.metric}: {one.test.steps} steps of {one.test.clusters} {cluster}s count as "
                f"{one.test.effective_steps:.0f} (intra-class correlation {correlation}); a difference of "
                f"{one.test.smallest_difference:.4f} would be found with 80% probability"
            )


if __name__ == "__main__":
    sys.exit(main())
