"""Agents walk through the demo shop by themselves (ShopLive-v0); their visits are compared with the shoppers' own.

  python -m benchmarks.live --agents copy_match,oracle --out runs/live
  python -m benchmarks.live --agents runs/demo/shop_r1 \\
    "greedy=runs/demo/shop_r1?temperature=0" --out runs/live
  python -m benchmarks.live --agents oracle --population 7 --out runs/x

Exit codes: 0 done, 1 an agent failed in all visits, 2 the call or its input was
wrong.
"""

import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from agents.agent_code import gives_probabilities
from agents.agent_process import build_agent
from agents.baselines.rules import OracleAgent
from benchmarks.leaderboard.ranking import agent_specs, format_commit
from benchmarks.live.figures import LiveRow, compare_visits, shoppers_row
from replay_sessions.demo_shop import generate_sessions
from replay_sessions.demo_shop.shop import PageSize
from replay_sessions.foundation.command_line import command
from replay_sessions.foundation.durable_files import replace_file, write_results
from replay_sessions.foundation.errors import BadConfig, check_at_least
from replay_sessions.foundation.provenance import provenance
from replay_sessions.foundation.table import Cell, Column, Estimate, Table, columns, print_results
from shop_env.evaluation.evaluate import LazyAgent
from shop_env.evaluation.free_run import free_run
from shop_env.evaluation.generate import AgentSpec
from shop_env.evaluation.log import AgentFiles
from shop_env.evaluation.results import interval_notes
from shop_env.observation import ContextConfig

SHOPPERS, DRAWN_ANEW = "the shoppers", "the shoppers, drawn anew"
COLUMNS = {
    "length": Column("length", "ratio"),
    "purchase_rate": Column("bought", "percent"),
    "limit_rate": Column("no end", "percent"),
    "unreadable_rate": Column("unreadable", "percent"),
    "impossible_rate": Column("impossible", "percent"),
    "action_mix_divergence": Column("mix JSD", "bits"),
    "transition_divergence": Column("transition JSD", "bits"),
    "length_distance": Column("length W1", "ratio"),
    "purchase_rate_difference": Column("bought, difference", "difference"),
}
WITHOUT_INTERVAL = ("limit_rate", "unreadable_rate", "impossible_rate")
SCORES = {"action_mix": "mix", "transitions": "what follows what", "length": "length"}


class LiveConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Lets agents walk through the demo shop by themselves and compares their visits with those of its shoppers.

    Attributes:
        agents: Whom to run, separated by commas or spaces, as in the leaderboard.
        out: The folder for live.json, live.md and each agent's visits.
        sessions: How many visits, four to a shopper.
        population: The seed of the shoppers, their goals and the shop; the store `demo` holds population 0.
        seed: Seeds the agents.
        context: What of a visit the agents are shown.
        page_size: The shop's pages.
        max_steps: The most replies in one visit.
        batch_size: How many visits an agent that answers batches plays side by side.
    """

    agents: tuple[str, ...]
    out: str
    sessions: int = 400
    population: int = 1000
    seed: int = 0
    context: ContextConfig = ContextConfig()
    page_size: PageSize = "small"
    max_steps: int = 20
    batch_size: int = 64

    def __post_init__(self) -> None:
        check_at_least(1, sessions=self.sessions, max_steps=self.max_steps, batch_size=self.batch_size)


def run_live(config: LiveConfig, specs: list[AgentSpec]) -> list[LiveRow]:
    """Runs every agent; writes live.json, live.md and the visits; returns the rows, the shoppers' first."""
    for spec in specs:
        gives_probabilities(spec)  # a misspelt agent is found before hours of work, not after
    folder = Path(config.out)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BadConfig(f"--out {config.out} cannot be made: {error.strerror}") from error
    sessions = list(generate_sessions(config.sessions, config.population, config.page_size))
    run = partial(
        free_run,
        visits=config.sessions,
        population=config.population,
        page_size=config.page_size,
        seed=config.seed,
        batch_size=config.batch_size,
    )
    # The shoppers' own policy once more: how far two samples of the same population lie apart by chance.
    drawn_anew = run(OracleAgent(temperature=1.0))
    rows = [
        shoppers_row(sessions, SHOPPERS),
        compare_visits(sessions, drawn_anew, label=DRAWN_ANEW, seed=config.seed),
    ]
    for spec in specs:
        lazy = LazyAgent(partial(build_agent, spec, None))
        visits = run(lazy.get(), context=config.context, max_steps=config.max_steps, progress=spec.label)
        lazy.close()
        files = AgentFiles.of(folder, spec.label).folder
        files.mkdir(parents=True, exist_ok=True)
        replace_file(files / "visits.jsonl", msgspec.json.Encoder().encode_lines(visits))
        rows.append(compare_visits(sessions, visits, label=spec.label, seed=config.seed))
    source = provenance(msgspec.to_builtins(config), seed=config.seed)
    # The mode tells them from a leaderboard's results, with which they are never to be mixed.
    record = {"version": 1, "mode": "free_running", "provenance": source, "config": config, "rows": rows}
    write_results(folder, "live", record, _markdown(config, rows, source))
    return rows


def visits_table(rows: Sequence[LiveRow]) -> Table:
    """The metrics of all rows; the shoppers themselves come first."""
    return Table(
        title="free running on the demo shop",
        columns=[Column("agent"), *COLUMNS.values(), Column("visits", "count"), Column("errors", "count")],
        rows=[
            [row.label, *(_cell(name, row.figures.get(name)) for name in COLUMNS), row.visits, row.errors]
            for row in rows
        ],
        notes=[
            "Pages follow from the agents' own actions. Shares in percent, lengths in replies, Jensen-Shannon "
            "divergences in bits; in brackets 95% intervals (CR2 over users).",
            *interval_notes(row.figures.get("purchase_rate") for row in rows if row.label != SHOPPERS),
        ],
    )


def _cell(name: str, estimate: Estimate | None) -> Cell:
    return estimate.value if estimate and name in WITHOUT_INTERVAL else estimate


def scores_table(rows: Sequence[LiveRow]) -> Table:
    """How near the visits come to the shoppers' own."""
    return Table(
        title="nearness to the shoppers: other shoppers 1, chance 0",
        columns=columns("agent", ratio=SCORES.values()),
        rows=[[row.label, *(row.scores.get(name) for name in SCORES)] for row in rows if row.scores],
    )


def _markdown(config: LiveConfig, rows: Sequence[LiveRow], source: dict[str, Any]) -> str:
    kinds = list(dict.fromkeys(kind for row in rows for kind in row.action_mix))
    mix = Table(
        columns=columns("agent", percent=kinds),
        rows=[[row.label, *(row.action_mix.get(kind, 0.0) for kind in kinds)] for row in rows],
    )
    return "\n".join(
        [
            "# Free running on the demo shop\n",
            visits_table(rows).markdown(),
            "Share of each kind of action, percent:\n",
            mix.markdown(),
            "Distances from the shoppers, where other shoppers are 1 and chance is 0:\n",
            scores_table(rows).markdown(),
            "Agents walk by themselves: pages follow from their own actions. Not comparable with metrics on logged "
            f"pages. `{DRAWN_ANEW}` is what chance alone gives. Population {config.population}, "
            f"{config.sessions} visits, at most {config.max_steps} replies each, "
            f"persona `{config.context.persona}`, seed {config.seed}. Made at "
            f"{source['time']} by {format_commit(source)}, Python {source['python']}.\n",
        ]
    )


def _run(config: LiveConfig) -> int:
    rows = run_live(config, agent_specs(config.agents))
    failures = [
        f"{row.label}: failed in {row.errors} visits, which are not compared; the first: {row.first_error}"
        for row in rows
        if row.errors
    ]
    written = f"written: {config.out}/live.json, live.md, agents/*/visits.jsonl"
    print_results(visits_table(rows), *failures, scores_table(rows), written)
    return 1 if any(row.visits == 0 for row in rows) else 0


main = command(LiveConfig, _run)

if __name__ == "__main__":
    sys.exit(main())
