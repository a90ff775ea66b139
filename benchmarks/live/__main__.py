"""Agents walk through the demo shop by themselves (ShopLive-v0); their visits are compared with the shoppers' own.

  python -m benchmarks.live --agents copy_match,oracle --out runs/live
  python -m benchmarks.live --agents runs/demo/shop_r1 \\
    "greedy=runs/demo/shop_r1?temperature=0" --out runs/live
  python -m benchmarks.live --agents oracle --population 7 --out runs/x

Exit codes: 0 done, 2 the call or its input was wrong.
"""

import sys

from benchmarks.leaderboard.ranking import agent_specs
from benchmarks.live.report import SCORES, LiveConfig, run_live, visits_table
from replay_sessions.foundation.command_line import command
from replay_sessions.foundation.table import format_cell, print_results


def _run(config: LiveConfig) -> None:
    results = run_live(config, agent_specs(config.agents))
    failures = [
        f"{row.label}: failed in {row.errors} visits, which are not compared; the first: {row.first_error}"
        for row in results.rows
        if row.errors
    ]
    scores = [
        f"{row.label}: {', '.join(_score(row.scores.get(name), words) for name, words in SCORES.items())} "
        "(other shoppers 1, chance 0)"
        for row in results.rows
        if row.scores
    ]
    written = f"written: {config.out}/live.json, live.md, agents/*/visits.jsonl"
    print_results(visits_table(results.rows), *failures, *scores, written)


def _score(score: float | None, words: str) -> str:
    return f"{words} {format_cell(score, 'ratio')}"


main = command(LiveConfig, _run, program="python -m benchmarks.live", text=__doc__)

if __name__ == "__main__":
    sys.exit(main())
