"""Draws a run's curves, one figure a phase, and prints its main figures as a table.

  python -m train.show runs/mine
  python -m train.show runs/mine-seed1 runs/mine-seed2 --out curves

Several runs, such as seeds, lie over one another: their mean and the band from
the lowest to the highest. A run that is still going on can be shown too.
"""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import msgspec
import tyro

from replay_sessions.commands.command_line import parse_options, run_command
from replay_sessions.errors import BadConfig
from replay_sessions.plugins import load_with_extra
from train.show.curves import phase_curves, read_run
from train.show.summary import summary

__all__ = ["main"]

PROGRAM = "python -m train.show"


class ShowOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What to show.

    Attributes:
        runs: Folders of runs, each with a metrics.jsonl.
        out: Where the figures are written, PHASE.png and PHASE.svg; None: the folder `curves` in the first run's.
    """

    runs: tyro.conf.Positional[Annotated[tuple[Path, ...], tyro.conf.arg(metavar="RUN [RUN ...]")]]
    out: Path | None = None

    def __post_init__(self) -> None:
        if not self.runs:
            raise BadConfig("missing: RUN, the folder of a run")


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line: 0 done, 2 the call or its input was wrong."""
    words = sys.argv[1:] if arguments is None else arguments
    return run_command(lambda: _show(parse_options(ShowOptions, words, program=PROGRAM, text=__doc__)))


def _show(options: ShowOptions) -> None:
    draw_phase = load_with_extra("train.show.drawing:draw_phase", "report")
    runs = [read_run(path) for path in options.runs]
    phases = phase_curves(runs)
    folder = options.out or options.runs[0] / "curves"
    folder.mkdir(parents=True, exist_ok=True)
    for curves in phases:
        shown = runs[0].path.name if len(runs) == 1 else f"{runs[0].path.name} and {len(runs) - 1} more"
        for path in draw_phase(curves, f"{shown}: {curves.name}", folder):
            print(path)
    print(summary(runs, phases))


if __name__ == "__main__":
    sys.exit(main())
