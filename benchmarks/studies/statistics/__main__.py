"""How often tests of a difference err with 15 users, on simulated agents.

  python -m benchmarks.studies.statistics --out runs/statistics
  python -m benchmarks.studies.statistics --pairs 200 --out runs/s

For 1,000 pairs of equal agents (and as many of which one is better) the share
in which each test finds a difference at 5%: two shares compared as if steps
were independent, percentile bootstrap over users, CR2 with its t interval, and
sign flips over users. Leaves error_rates.json and error_rates.md in OUT; takes
some minutes.
"""

import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.studies.statistics.error_rates import TESTS, WORLDS, ErrorRate, error_rates
from replay_sessions.foundation.command_line import command
from replay_sessions.foundation.durable_files import write_results
from replay_sessions.foundation.errors import check_at_least
from replay_sessions.foundation.provenance import provenance
from replay_sessions.foundation.records import Record
from replay_sessions.foundation.table import Column, Table


class Simulate(Record):
    """Counts how often each test finds a difference.

    Attributes:
        out: Where error_rates.json and error_rates.md go.
        pairs: Of agents, for each world and difference.
        differences: How much better the first agent is, as shares; 0: equal agents.
        samples: Of each bootstrap.
        seed: Of all that is drawn.
    """

    out: Path
    pairs: int = 1000
    differences: tuple[float, ...] = (0.0, 0.1)
    samples: int = 1000
    seed: int = 0

    def __post_init__(self) -> None:
        check_at_least(1, pairs=self.pairs)


def _run(options: Simulate) -> int:
    rates = error_rates(options.pairs, options.differences, options.seed, options.samples)
    config = {name: getattr(options, name) for name in ("pairs", "differences", "samples", "seed")}
    record = {
        "worlds": {name: world._asdict() for name, world in WORLDS.items()},
        "rates": rates,
        "provenance": provenance(config, seed=options.seed),
    }
    text = build_table(rates).markdown()
    write_results(options.out, "error_rates", record, text)
    print(text)
    return 0


def build_table(rates: Sequence[ErrorRate]) -> Table:
    """Shares by test, equal agents first."""
    return Table(
        title="How often each test finds a difference at 5%",
        columns=[Column("users"), Column("metric"), Column("better by", "percent"), Column("pairs", "count")]
        + [Column(test, "percent") for test in TESTS],
        rows=[
            [rate.world, rate.metric, rate.difference, rate.pairs, *(rate.found.get(test) for test in TESTS)]
            for rate in sorted(rates, key=lambda rate: rate.difference)
        ],
        notes=[
            "Percent of simulated pairs; of equal agents 5 is right.",
            *(f"{name}: {world.description}" for name, world in WORLDS.items()),
        ],
    )


main = command(Simulate, _run)

if __name__ == "__main__":
    sys.exit(main())
