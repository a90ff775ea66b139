"""Fills, pools and compares many leaderboards that one file describes.

  python -m benchmarks.series series.toml
  python -m benchmarks.series series.toml --dry-run
  python -m benchmarks.series series.toml --take other/series

A file says who is asked about what:

  out = "boards/mine"
  compare = [["Shop-R1", "SFT"], ["Shop-R1", "ngram"]]
  [settings]                     # keys of a leaderboard
  sessions = 600
  [[runs]]
  agents = ["floors", "random"]
  stores = ["demo", "stores/mine"]
  [[runs]]
  agents = ["SFT=runs/seed{seed}/sft", "Shop-R1=runs/seed{seed}/shop_r1"]
  seeds = [0, 1, 2]              # of the training: they are one row
  draws = 3                      # each policy sampled three times

Each store, with each of its settings, has a table of its own: the mean over seeds and draws with a 95% interval over
users and seeds. Below it lies a leaderboard for each draw, which `leaderboard verify` takes. What was stopped goes on
with the same call; nothing is asked twice; other metrics or rewards are counted from what was kept. --take adds what
another machine asked. Exit codes: 0 done, 1 an agent gave no reply at all, 2 the call or its input was wrong.
"""

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any

import msgspec
import tyro
from rich.box import SIMPLE_HEAD
from rich.table import Table
from rich.text import Text

from agents.results import results_console
from benchmarks.leaderboard.ranking import VERSIONS, run_leaderboard
from benchmarks.leaderboard.taking import take
from benchmarks.series.config import Board, Series, boards_of, read_series
from benchmarks.series.pooled import SeriesTable, tables_of
from benchmarks.series.tables import cells, headings, markdown, sentences, title
from replay_sessions.commands.command_line import parse_options, run_command
from replay_sessions.provenance import provenance
from replay_sessions.store.durable_files import replace_file
from replay_sessions.store.locks import working_alone_in

__all__ = ["main"]

PROGRAM = "python -m benchmarks.series"
WIDE = 170  # characters that all columns take


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """Fills, pools and compares the leaderboards of a file.

    Attributes:
        file: The series, as TOML.
        out: The folder of all leaderboards, in place of the file's.
        take: The same series asked in part elsewhere: its replies are taken over first.
        dry_run: Only tells which leaderboards there are and what is asked there.
    """

    file: tyro.conf.Positional[Annotated[Path, tyro.conf.arg(metavar="FILE")]]
    out: Path | None = None
    take: tuple[Path, ...] = ()
    dry_run: bool = False


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line: 0 done, 1 an agent gave no reply at all, 2 the call or its input was wrong."""
    words = sys.argv[1:] if arguments is None else arguments
    return run_command(lambda: _run(parse_options(Options, words, program=PROGRAM, text=__doc__)))


def _run(given: Options) -> int:
    series = read_series(given.file)
    out = given.out or Path(series.out)
    boards = boards_of(series, out)
    if given.dry_run:
        for line in _told(boards):
            print(line)
        return 0
    with working_alone_in(out):
        for other in given.take:
            print(f"{other}: {take(out, other)} files of replies hold something new")
        results = [run_leaderboard(board.config) for board in boards]
        tables = tables_of(boards, series.compare)
        record = {"versions": VERSIONS, "tables": tables, "provenance": _provenance(series, boards, results)}
        replace_file(out / "series.json", msgspec.json.format(msgspec.json.encode(record)) + b"\n")
        replace_file(out / "series.md", markdown(tables))
    console = results_console()
    for table in tables:
        console.print(_shown(table, brief=console.width < WIDE))
        for line in sentences(table):
            console.print(line, markup=False, highlight=False)
    console.print(f"written: {out / 'series.json'}, series.md; {len(boards)} leaderboards", highlight=False)
    return 1 if any(entry.row.steps == 0 for result in results for entry in result.entries) else 0


def _shown(table: SeriesTable, *, brief: bool) -> Table:
    """For a terminal, intervals under their figures."""
    shown = Table(title=title(table), box=SIMPLE_HEAD, show_edge=False, pad_edge=False, title_justify="left")
    shown.collapse_padding = True
    label, *others, stands_on = headings(table, brief=brief)
    shown.add_column(label, overflow="fold", min_width=8)
    for heading in others:
        shown.add_column(heading, justify="right", no_wrap=True)
    shown.add_column(stands_on.replace(" × ", "\n× "), justify="right", no_wrap=True)
    for row in table.rows:
        shown.add_row(*(Text(cell.replace(" [", "\n[")) for cell in cells(row, table, brief=brief)))
    return shown


def _told(boards: Sequence[Board]) -> Iterator[str]:
    for board in boards:
        config = board.config
        finished = " (finished before)" if (config.folder / "results.json").exists() else ""
        yield f"{config.folder}: {config.store}, {config.split}, seed {config.seed}{finished}"
        yield from (f"    {agent}" for agent in config.agents)


def _provenance(series: Series, boards: Sequence[Board], results: Sequence[Any]) -> dict[str, Any]:
    """Of the series; that of each leaderboard lies in its folder."""
    stores = {board.config.store: result.provenance["store"] for board, result in zip(boards, results, strict=True)}
    return provenance(msgspec.to_builtins(series)) | {"stores": stores}


if __name__ == "__main__":
    sys.exit(main())
