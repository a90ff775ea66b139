"""How often tests of a difference err with 15 users, on simulated agents.

  python -m benchmarks.statistics --out runs/statistics
  python -m benchmarks.statistics --pairs 200 --differences 0 0.1 --out runs/s

For 1,000 pairs of equal agents (and as many of which one is better) the share
in which each test finds a difference at 5%: two shares compared as if steps
were independent, percentile bootstrap over users, CR2 with its t interval, and
sign flips over users. Leaves error_rates.json and error_rates.md in OUT; takes
some minutes.
"""

import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec

from benchmarks.statistics.error_rates import TESTS, ErrorRate, error_rates
from benchmarks.statistics.worlds import WORLDS
from replay_sessions.commands.command_line import parse_options, run_command
from replay_sessions.errors import BadConfig
from replay_sessions.provenance import provenance
from replay_sessions.store.durable_files import replace_file

__all__ = ["main", "markdown"]


class Simulate(msgspec.Struct, frozen=True, kw_only=True):
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
        if self.pairs < 1:
            raise BadConfig(f"--pairs is {self.pairs}; it must be at least 1.")


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line: 0 done, 2 the call or its input was wrong."""
    words = sys.argv[1:] if arguments is None else arguments
    program = "python -m benchmarks.statistics"
    return run_command(lambda: _run(parse_options(Simulate, words, program=program, text=__doc__)))


def _run(given: Simulate) -> int:
    rates = error_rates(given.pairs, given.differences, given.seed, given.samples)
    given.out.mkdir(parents=True, exist_ok=True)
    config = {name: getattr(given, name) for name in ("pairs", "differences", "samples", "seed")}
    record = {
        "worlds": {name: world._asdict() for name, world in WORLDS.items()},
        "rates": rates,
        "provenance": provenance(config, seed=given.seed),
    }
    replace_file(given.out / "error_rates.json", msgspec.json.format(msgspec.json.encode(record)) + b"\n")
    replace_file(given.out / "error_rates.md", markdown(rates).encode())
    print(markdown(rates))
    return 0


def markdown(rates: Sequence[ErrorRate]) -> str:
    """A table of percentages, equal agents first."""
    lines = [
        "How often each test finds a difference at 5%, in percent of simulated pairs; of equal agents 5 is right.\n",
        f"| users | metric | better by | pairs | {' | '.join(TESTS)} |",
        "|---|---|--:|--:|" + "--:|" * len(TESTS),
    ]
    for rate in sorted(rates, key=lambda rate: rate.difference):
        shares = [f"{100 * rate.found[test]:.1f}" if test in rate.found else "–" for test in TESTS]
        said = [rate.world, rate.metric, f"{100 * rate.difference:g} points", str(rate.pairs), *shares]
        lines.append(f"| {' | '.join(said)} |")
    return "\n".join([*lines, "", *(f"- {name}: {world.said}" for name, world in WORLDS.items())]) + "\n"


if __name__ == "__main__":
    sys.exit(main())
