"""Is an agent like people, beyond how often it is right?

  python -m benchmarks.people runs/first
  python -m benchmarks.people runs/baselines --out runs/baselines/people
  python -m benchmarks.people runs/own --shuffled runs/other1 runs/other2

For each agent of a finished leaderboard or training run: whether it differs
from person to person as people do, how varied one person is, how near its mix
of actions, their order and the ranks of what it clicks come to people's
(between the floor of other people and chance), what is known of how people
shop; where it gives probabilities (leaderboard --likelihood) what these know;
and what its persona is worth to it. Leaves people.json and people.md in OUT.
Needs scikit-learn: pip install 'shop-r1[baselines]'. Exit codes: 0 done, 2 the
call was wrong.
"""

import sys
from pathlib import Path
from typing import Annotated

import msgspec
import tyro

from benchmarks.people.tables import people_table
from benchmarks.report.evidence import read_evidence
from replay_sessions.foundation.command_line import command
from replay_sessions.foundation.durable_files import write_results
from replay_sessions.foundation.errors import BadConfig
from replay_sessions.foundation.plugins import requires_extra
from replay_sessions.foundation.provenance import provenance
from replay_sessions.foundation.table import print_results
from replay_sessions.store import SessionStore
from shop_env.evaluation.entries import remarks_of


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


def _run(options: People) -> None:
    with requires_extra("baselines"):
        from benchmarks.people.measuring import measure  # noqa: PLC0415 - an extra that may be missing
    evidence = read_evidence(options.folder)
    if not evidence.labels:
        raise BadConfig(f"'{options.folder}' holds no agent that answered")
    store = SessionStore.open(options.store or evidence.config.store)
    if store.fingerprint != (run_on := evidence.provenance["store"]["fingerprint"]):
        raise BadConfig(f"The run was on a store of fingerprint {run_on}; '{store.path}' has {store.fingerprint}")
    log, rows = measure(evidence, [read_evidence(folder) for folder in options.shuffled], store)
    out = options.out or options.folder
    record = {"log": log, "agents": rows, "provenance": provenance({"folder": str(options.folder)}, store=store)}
    table = people_table(log, rows, f"{options.folder}: agents beside people", remarks_of(evidence.log))
    write_results(out, "people", record, table.markdown())
    print_results(table, f"written: {out / 'people.json'}, people.md")


main = command(People, _run)

if __name__ == "__main__":
    sys.exit(main())
