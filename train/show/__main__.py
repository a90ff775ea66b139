"""Draws a run's curves, one figure a phase, and prints its main figures as a table.

  python -m train.show runs/mine
  python -m train.show runs/mine-seed1 runs/mine-seed2 --out curves

Several runs, such as seeds, lie over one another: their mean and the band from
the lowest to the highest. A run that is still going on can be shown too.
"""

import sys
from pathlib import Path
from typing import Annotated

import msgspec
import tyro

from replay_sessions.foundation.command_line import command
from replay_sessions.foundation.errors import BadConfig
from replay_sessions.foundation.plugins import requires_extra
from train.show.curves import phase_curves, read_run
from train.show.summary import summary

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


def _show(options: ShowOptions) -> None:
    with requires_extra("report"):
        from train.show.drawing import draw_phase  # noqa: PLC0415 - an extra that may be missing
    runs = [read_run(path) for path in options.runs]
    phases = phase_curves(runs)
    folder = options.out or options.runs[0] / "curves"
    folder.mkdir(parents=True, exist_ok=True)
    for curves in phases:
        name = runs[0].path.name if len(runs) == 1 else f"{runs[0].path.name} and {len(runs) - 1} more"
        for path in draw_phase(curves, f"{name}: {curves.name}", folder):
            print(path)
    print(summary(runs, phases))


main = command(ShowOptions, _show, program=PROGRAM, text=__doc__)

if __name__ == "__main__":
    sys.exit(main())
