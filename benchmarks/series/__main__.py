"""Fills, pools and compares many leaderboards that one file describes.

  python -m benchmarks.series series.toml
  python -m benchmarks.series series.toml --dry-run

A file says which agents run on which stores:

  out = "boards/mine"
  compare = [["Shop-R1", "SFT"], ["Shop-R1", "ngram"]]
  [settings]                     # keys of a leaderboard
  sessions = 600
  [[runs]]
  agents = ["baselines", "random"]
  stores = ["demo", "stores/mine"]
  [[runs]]
  agents = ["SFT=runs/seed{seed}/sft", "Shop-R1=runs/seed{seed}/shop_r1"]
  seeds = [0, 1, 2]              # of the training: they are one row
  draws = 3                      # each policy sampled three times

Each store, with each of its settings, has a table of its own: the mean over seeds and draws with a 95% interval over
users and seeds. Below it lies a leaderboard for each draw, which `leaderboard verify` takes. What was stopped goes on
with the same call; no step is run twice; other metrics or rewards are computed from the steps.
Exit codes: 0 done, 1 an agent gave no reply at all, 2 the call or its input was wrong.
"""

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated

import msgspec
import tyro

from benchmarks.leaderboard.ranking import run_leaderboard
from benchmarks.series.config import Board, boards_of, read_series
from benchmarks.series.tables import markdown, sentences, series_table, tables_of
from replay_sessions.foundation.command_line import command
from replay_sessions.foundation.durable_files import write_results
from replay_sessions.foundation.locks import working_alone_in
from replay_sessions.foundation.provenance import provenance
from replay_sessions.foundation.table import print_results
from shop_env.evaluation.log import VERSIONS


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """Fills, pools and compares the leaderboards of a file.

    Attributes:
        file: The series, as TOML.
        out: The folder of all leaderboards, in place of the file's.
        dry_run: Only list the leaderboards and their agents.
    """

    file: tyro.conf.Positional[Annotated[Path, tyro.conf.arg(metavar="FILE")]]
    out: Path | None = None
    dry_run: bool = False


def _run(options: Options) -> int:
    series = read_series(options.file)
    out = options.out or Path(series.out)
    boards = boards_of(series, out)
    if options.dry_run:
        print_results(*_plan(boards))
        return 0
    with working_alone_in(out):
        results = [run_leaderboard(board.config) for board in boards]
        tables = tables_of(boards, series.compare)
        # Of the series; that of each leaderboard lies in its folder.
        stores = {board.config.store: result.provenance["store"] for board, result in zip(boards, results, strict=True)}
        described = provenance(msgspec.to_builtins(series)) | {"stores": stores}
        record = {"versions": VERSIONS, "tables": tables, "provenance": described}
        write_results(out, "series", record, markdown(tables))
    for table in tables:
        print_results(series_table(table), *sentences(table))
    print_results(f"written: {out / 'series.json'}, series.md; {len(boards)} leaderboards")
    return 1 if any(entry.row.steps == 0 for result in results for entry in result.entries) else 0


def _plan(boards: Sequence[Board]) -> Iterator[str]:
    for board in boards:
        config = board.config
        finished = " (finished before)" if (config.folder / "results.json").exists() else ""
        yield f"{config.folder}: {config.store}, {config.split}, seed {config.seed}{finished}"
        yield from (f"    {agent}" for agent in config.agents)


main = command(Options, _run)

if __name__ == "__main__":
    sys.exit(main())
