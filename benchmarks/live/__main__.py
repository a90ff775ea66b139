"""Agents walk through the demo shop by themselves (ShopLive-v0); their visits are compared with the shoppers' own.

  python -m benchmarks.live --agents copy_match,oracle --out runs/live
  python -m benchmarks.live --agents runs/demo/shop_r1 \\
    "greedy=runs/demo/shop_r1?temperature=0" --out runs/live
  python -m benchmarks.live --agents oracle --population 7 --out runs/x

Exit codes: 0 done, 2 the call or its input was wrong.
"""

import sys
from collections.abc import Sequence

from rich.box import SIMPLE_HEAD
from rich.table import Table
from rich.text import Text

from agents.results import results_console
from benchmarks.leaderboard.config import agent_specs
from benchmarks.live.report import COLUMNS, SCORES, LiveConfig, LiveResults, cell, run_live, score_cell
from replay_sessions.commands.command_line import parse_options, run_command


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line: 0 done, 2 the call or its input was wrong."""
    words = sys.argv[1:] if arguments is None else arguments
    return run_command(
        lambda: _run(parse_options(LiveConfig, words, program="python -m benchmarks.live", text=__doc__))
    )


def _run(config: LiveConfig) -> int:
    results = run_live(config, agent_specs(config.agents))
    console = results_console()
    console.print(_table(results))
    for row in results.rows:
        if row.errors:
            said = f"{row.label}: failed in {row.errors} visits, which are not compared; the first: {row.first_error}"
            console.print(said, markup=False, highlight=False)
    for row in results.rows:
        if row.scores:
            said = ", ".join(f"{words} {score_cell(row.scores.get(name))}" for name, words in SCORES.items())
            console.print(f"{row.label}: {said} (other shoppers 1, chance 0)", markup=False, highlight=False)
    console.print(f"written: {config.out}/live.json, live.md, agents/*/visits.jsonl", highlight=False)
    return 0


def _table(results: LiveResults) -> Table:
    caption = "pages follow from the agents' own actions; 95% intervals from a bootstrap over users"
    table = Table(title="free running on the demo shop", caption=caption, box=SIMPLE_HEAD, show_edge=False)
    table.title_justify = table.caption_justify = "left"
    table.add_column("agent", overflow="fold")
    for heading in COLUMNS.values():
        table.add_column(heading.replace(" ", "\n"), justify="right")
    for row in results.rows:
        table.add_row(Text(row.label), *(cell(name, row.figures.get(name)).replace(" (", "\n(") for name in COLUMNS))
    return table


if __name__ == "__main__":
    sys.exit(main())
