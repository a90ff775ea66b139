"""Is an agent like people, beyond how often it is right?

  python -m benchmarks.people runs/first
  python -m benchmarks.people runs/floors --out runs/floors/people
  python -m benchmarks.people runs/own --shuffled runs/other1 runs/other2

For each agent of a finished leaderboard or training run: whether it differs
from person to person as people do, how varied one person is, how near its mix
of actions, their order and the ranks of what it clicks come to people's
(between the floor of other people and chance), what is known of how people
shop; where it gives probabilities (leaderboard --likelihood) what these know;
and what its persona is worth to it. Leaves people.json and people.md in OUT.
Needs scikit-learn: pip install 'shop-r1[floors]'. Exit codes: 0 done, 2 the
call was wrong.
"""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import msgspec
import tyro
from rich.box import SIMPLE_HEAD
from rich.table import Table
from rich.text import Text

from agents.results import results_console
from benchmarks.people.personas import check_shuffled, persona_figures
from benchmarks.people.tables import THE_LOG, Line, lines, markdown
from benchmarks.report.__main__ import read_evidence
from replay_sessions.commands.command_line import parse_options, run_command
from replay_sessions.errors import BadConfig
from replay_sessions.plugins import load_with_extra
from replay_sessions.provenance import provenance
from replay_sessions.store import SessionStore
from replay_sessions.store.durable_files import replace_file
from shop_env.context import ContextConfig

__all__ = ["main"]

PROGRAM = "python -m benchmarks.people"


class People(msgspec.Struct, frozen=True, kw_only=True):
    """Compares agents with the people whose sessions they answered.

    Attributes:
        folder: The --out of a leaderboard or of a training run.
        out: Where people.json and people.md go; None: into that folder.
        shuffled: Leaderboards of the same agents that were shown other people's personas, each by another persona seed.
        store: The store that was evaluated on, if it lies elsewhere now; None: where the run found it.
    """

    folder: tyro.conf.Positional[Annotated[Path, tyro.conf.arg(metavar="RUN|BOARD")]]
    out: Path | None = None
    shuffled: tuple[Path, ...] = ()
    store: str | None = None


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line: 0 done, 2 the call or its input was wrong."""
    words = sys.argv[1:] if arguments is None else arguments
    return run_command(lambda: _run(parse_options(People, words, program=PROGRAM, text=__doc__)))


def _run(given: People) -> int:
    measure = load_with_extra("benchmarks.people.measuring:measure", "floors")
    evidence = read_evidence(given.folder)
    if not evidence.labels:
        raise BadConfig(f"'{given.folder}' holds no agent that answered")
    store = SessionStore.open(given.store or evidence.store)
    if store.fingerprint != (run_on := evidence.provenance["store"]["fingerprint"]):
        raise BadConfig(f"The run was on a store of fingerprint {run_on}; '{store.path}' has {store.fingerprint}")
    shuffled = [read_evidence(folder) for folder in given.shuffled]
    check_shuffled(evidence, shuffled)
    log, rows = measure(evidence, store, _context(evidence.provenance["config"]))
    rows = [msgspec.structs.replace(row, persona=persona_figures(evidence, shuffled, row.label)) for row in rows]
    out = given.out or given.folder
    out.mkdir(parents=True, exist_ok=True)
    record = {"log": log, "agents": rows, "provenance": provenance({"folder": str(given.folder)}, store=store)}
    replace_file(out / "people.json", msgspec.json.format(msgspec.json.encode(record)) + b"\n")
    replace_file(out / "people.md", markdown(log, rows))
    results_console().print(_table(lines(log, rows), [row.label for row in rows], str(given.folder)))
    print(f"written: {out / 'people.json'}, people.md")
    return 0


def _table(found: Sequence[Line], labels: Sequence[str], title: str) -> Table:
    table = Table(title=f"{title}: agents beside people", box=SIMPLE_HEAD, show_edge=False, title_justify="left")
    table.pad_edge, table.collapse_padding = False, True
    table.add_column("figure", min_width=24)
    table.add_column("good is")
    for label in (THE_LOG, *labels):
        table.add_column(Text(label), justify="right", overflow="fold")
    for line in found:
        table.add_row(line.figure, line.good, line.people, *(cell.replace(" (p", "\n(p") for cell in line.agents))
    return table


def _context(config: dict[str, object]) -> ContextConfig:
    """What agents were shown; a training run's phases may have been shown less, but it keeps no probabilities."""
    return msgspec.convert(config["context"], ContextConfig)


if __name__ == "__main__":
    sys.exit(main())
