"""One free-running report: each agent through the same visits, the visits to disk, figures with intervals, tables."""

from pathlib import Path
from typing import Any

import msgspec

from agents.free_run import LiveVisit, free_run
from agents.registry import AgentSpec, agent_class, make_agent
from agents.results import Figure
from agents.scripted.oracle import OracleAgent
from benchmarks.leaderboard.agent_files import AgentFiles
from benchmarks.live.figures import LiveRow, compare_visits, shoppers_row
from replay_sessions.demo_shop import generate_sessions
from replay_sessions.demo_shop.pages import PageSize
from replay_sessions.errors import BadConfig
from replay_sessions.provenance import provenance
from replay_sessions.schema import Session
from replay_sessions.store.durable_files import replace_file
from shop_env.context import ContextConfig

__all__ = ["COLUMNS", "SCORES", "LiveConfig", "LiveResults", "cell", "run_live", "score_cell"]

SHOPPERS, DRAWN_ANEW = "the shoppers", "the shoppers, drawn anew"
# Figure -> heading. Shares in percent; lengths in replies, divergences in bits.
COLUMNS = {
    "length": "length",
    "purchase_rate": "bought",
    "limit_rate": "no end",
    "unreadable_rate": "unreadable",
    "impossible_rate": "impossible",
    "action_mix_divergence": "mix JSD",
    "transition_divergence": "transition JSD",
    "length_distance": "length W1",
    "purchase_rate_difference": "bought, difference",
}
SHARES = ("purchase_rate", "limit_rate", "unreadable_rate", "impossible_rate", "purchase_rate_difference")
WITH_INTERVAL = (
    "length",
    "purchase_rate",
    "action_mix_divergence",
    "transition_divergence",
    "length_distance",
    "purchase_rate_difference",
)
SCORES = {"action_mix": "mix", "transitions": "what follows what", "length": "length"}
DECIMALS = {"action_mix_divergence": 3, "transition_divergence": 3, "length": 2, "length_distance": 2}


class LiveConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Lets agents walk through the demo shop by themselves and compares their visits with those of its shoppers.

    Attributes:
        agents: Whom to run, separated by commas or spaces, as in the leaderboard.
        out: The folder for live.json, live.md and each agent's visits.
        sessions: How many visits, four to a shopper.
        population: The seed of the shoppers, their goals and the shop; the store `demo` holds population 0.
        seed: Seeds the agents and the bootstrap.
        context: What of a visit the agents are shown.
        page_size: The shop's pages.
        max_steps: The most replies in one visit.
        samples: How many bootstrap samples of users the intervals rest on.
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
    samples: int = 1000
    batch_size: int = 64

    def __post_init__(self) -> None:
        for name in ("sessions", "max_steps", "samples", "batch_size"):
            if (value := getattr(self, name)) < 1:
                raise BadConfig(f"--{name.replace('_', '-')} is {value}; it must be 1 or more")


class LiveResults(msgspec.Struct, frozen=True, kw_only=True):
    """live.json. `mode` tells it from a leaderboard's results, with which it is never to be mixed."""

    version: int = 1
    mode: str = "free_running"
    provenance: dict[str, Any]
    config: LiveConfig
    rows: list[LiveRow]


def run_live(config: LiveConfig, specs: list[AgentSpec]) -> LiveResults:
    """Runs every agent; writes live.json, live.md and the visits."""
    for spec in specs:
        agent_class(spec)  # a misspelt agent is found before hours of work, not after
    folder = Path(config.out)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BadConfig(f"--out {config.out} cannot be made: {error.strerror}") from error
    sessions = list(generate_sessions(config.sessions, config.population, config.page_size))
    rows = [shoppers_row(sessions, SHOPPERS), _drawn_anew(config, sessions)]
    for spec in specs:
        visits = _visits(config, spec)
        files = AgentFiles(folder, spec.label).folder
        files.mkdir(parents=True, exist_ok=True)
        replace_file(files / "visits.jsonl", msgspec.json.Encoder().encode_lines(visits))
        rows.append(compare_visits(sessions, visits, label=spec.label, samples=config.samples, seed=config.seed))
    made = provenance(msgspec.to_builtins(config), seed=config.seed)
    results = LiveResults(provenance=made, config=config, rows=rows)
    replace_file(folder / "live.json", msgspec.json.format(msgspec.json.encode(results)))
    replace_file(folder / "live.md", _markdown(results).encode())
    return results


def _visits(config: LiveConfig, spec: AgentSpec) -> list[LiveVisit]:
    return free_run(
        make_agent(spec),
        config.sessions,
        population=config.population,
        page_size=config.page_size,
        context=config.context,
        max_steps=config.max_steps,
        seed=config.seed,
        batch_size=config.batch_size,
        progress=spec.label,
    )


def _drawn_anew(config: LiveConfig, sessions: list[Session]) -> LiveRow:
    """The shoppers' own policy once more: how far two samples of the same population lie apart by chance."""
    visits = free_run(
        OracleAgent(temperature=1.0),
        config.sessions,
        population=config.population,
        page_size=config.page_size,
        seed=config.seed,
    )
    return compare_visits(sessions, visits, label=DRAWN_ANEW, samples=config.samples, seed=config.seed)


def cell(name: str, figure: Figure | None) -> str:
    """A figure as tables show it, its interval behind it."""
    if figure is None:
        return "–"
    shown = _number(name, figure.value)
    if name not in WITH_INTERVAL or figure.low is None or figure.high is None:
        return shown
    return f"{shown} ({_number(name, figure.low)} to {_number(name, figure.high)})"


def score_cell(score: float | None) -> str:
    """A score as tables show it."""
    return "–" if score is None else f"{score:.2f}"


def _number(name: str, value: float) -> str:
    if name in SHARES:
        return f"{100 * value:{'+' if name.endswith('difference') else ''}.1f}"
    return f"{value:.{DECIMALS[name]}f}"


def _markdown(results: LiveResults) -> str:
    config, rows = results.config, results.rows
    made = results.provenance
    lines = ["# Free running on the demo shop", ""]
    lines += ["| agent | " + " | ".join(COLUMNS.values()) + " | visits | errors |"]
    lines += ["|---" + "|--:" * (len(COLUMNS) + 2) + "|"]
    for row in rows:
        cells = [cell(name, row.figures.get(name)) for name in COLUMNS]
        lines.append("| " + " | ".join([_escaped(row.label), *cells, str(row.visits), str(row.errors)]) + " |")
    kinds = list(dict.fromkeys(kind for row in rows for kind in row.action_mix))
    lines += ["", "Share of each kind of action, percent:", ""]
    lines += ["| agent | " + " | ".join(kinds) + " |", "|---" + "|--:" * len(kinds) + "|"]
    for row in rows:
        shares = [f"{100 * row.action_mix.get(kind, 0.0):.1f}" for kind in kinds]
        lines.append("| " + " | ".join([_escaped(row.label), *shares]) + " |")
    lines += ["", "Distances from the shoppers, where other shoppers are 1 and chance is 0:", ""]
    lines += ["| agent | " + " | ".join(SCORES.values()) + " |", "|---" + "|--:" * len(SCORES) + "|"]
    lines += [
        "| " + " | ".join([_escaped(row.label), *(score_cell(row.scores.get(name)) for name in SCORES)]) + " |"
        for row in rows
        if row.scores
    ]
    commit = (made["commit"] or "a package")[:12] + (" with changes" if made["dirty"] else "")
    lines += [
        "",
        "Agents walk by themselves: pages follow from their own actions. Not comparable with figures on logged pages. "
        f"Shares in percent, lengths in replies, Jensen-Shannon divergences in bits; in parentheses 95% intervals "
        f"(bootstrap over users, {config.samples} samples). `{DRAWN_ANEW}` is what chance alone gives. Population "
        f"{config.population}, {config.sessions} visits, at most {config.max_steps} replies each, persona "
        f"`{config.context.persona}`, seed {config.seed}. Made at {made['time']} by {commit}, Python {made['python']}.",
    ]
    return "\n".join(lines) + "\n"


def _escaped(label: str) -> str:
    return label.replace("|", "\\|")
