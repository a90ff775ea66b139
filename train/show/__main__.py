"""Draws a run's curves, one plot a phase, and prints its main metrics as a table.

  shop-r1 curves runs/mine
  shop-r1 curves runs/mine-seed1 runs/mine-seed2 --out curves

Runs that differ in nothing but seed and store are one line, their mean, and the
band from the lowest to the highest; runs of different configurations are lines
of their own, with a legend. A run that is still going on can be shown too.

The table has the main metrics of each phase at their first, best and last, as
the running means that the curves show, so that the best is no stroke of luck.
"""

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from textwrap import fill
from typing import Annotated

import numpy as np
import tyro

from replay_sessions.foundation.command_line import command
from replay_sessions.foundation.errors import BadConfig
from replay_sessions.foundation.plugins import requires_extra
from replay_sessions.foundation.records import Record
from train.metrics_file import COLLAPSE_STEPS, describe_collapse
from train.show.curves import Array, PhaseCurves, Run, phase_curves, read_run, smoothed, smoothing_window

WIDTH = 80
_MAIN = {  # figure -> which end is the better one
    "loss": "low",
    "exact": "high",
    "validation_exact": "high",
    "action_reward": "high",
    "self_certainty": "",
    "kl": "",
    "entropy": "",
    "groups_used": "",
    "malformed": "low",
    "cut": "low",
    "grad_norm": "",
    "tokens_per_s": "",
}
MANY_CUT = 0.1  # share of replies cut by their length, late in a phase
FEW_USED = 0.1  # share of groups that are learnt from, over a phase


class ShowOptions(Record):
    """What to show.

    Attributes:
        runs: Folders of runs, each with a metrics.jsonl.
        out: Where the plots are written, PHASE.png and PHASE.svg; None: the folder `curves` in the first run's.
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
    for group in phases:
        names = group[0].label if len(group) == 1 else f"{len(group)} configurations"
        for path in draw_phase(group, f"{names}: {group[0].name}", folder):
            print(path)
    print(summary(runs, phases))


def summary(runs: Sequence[Run], phases: Sequence[Sequence[PhaseCurves]]) -> str:
    """The table, then the warnings; all of it at most 80 columns wide."""
    lines = [f"{'phase':<14}{'metric':<18}{'first':>12}{'best':>12}{'(step)':>9}{'last':>13}"]
    for group in phases:
        for curves in group:
            lines += _rows(curves, curves.label if len(group) > 1 else "")
    warned = [fill(f"warning: {text}", WIDTH, subsequent_indent="  ") for run in runs for text in warnings_of(run)]
    return "\n".join([*lines, *warned])


def _rows(curves: PhaseCurves, label: str) -> Iterator[str]:
    window = smoothing_window(len(curves.steps))
    name = f"{curves.name} ({int(curves.steps[-1])})" + (f", {label}" if label else "")
    yield name if curves.runs == 1 else f"{name}, mean of {curves.runs} runs"
    for figure, better in _MAIN.items():
        if figure not in curves.figures:
            continue
        values = curves.figures[figure]
        lines = values if figure.startswith("validation_") else smoothed(values, window)
        defined = np.isfinite(lines).any(axis=0)
        if defined.any():
            yield _row(figure, better, curves.steps[defined], np.nanmean(lines[:, defined], axis=0))


def _row(figure: str, better: str, steps: Array, values: Array) -> str:
    best = step = ""
    if better:
        index = int(np.argmax(values) if better == "high" else np.argmin(values))
        best, step = _number(values[index]), f"({int(steps[index])})"
    return f"{'':<14}{figure:<18}{_number(values[0]):>12}{best:>12}{step:>9}{_number(values[-1]):>13}"


def _number(value: float) -> str:
    """Four figures at most.

    >>> [_number(value) for value in (0.03125, 6.0349, 12345.6)]
    ['0.03125', '6.035', '12,346']
    """
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def warnings_of(run: Run) -> Iterator[str]:
    """The warnings, run by run and phase by phase."""
    where = run.path.name
    if run.unreadable:
        lines = "1 line" if run.unreadable == 1 else f"{run.unreadable} lines"
        yield f"{where}: {lines} of metrics.jsonl cannot be read and {'is' if run.unreadable == 1 else 'are'} not shown"
    for phase, logged in run.phases.items():
        rows = [logged[step] for step in sorted(logged)]
        texts = dict.fromkeys(
            filter(
                None,
                (describe_collapse(rows[end - COLLAPSE_STEPS : end]) for end in range(COLLAPSE_STEPS, len(rows) + 1)),
            )
        )
        for text in texts:
            yield f"{where}, {phase}: {text}"
        late = [row["cut"] for row in rows[-max(1, len(rows) // 5) :] if "cut" in row]
        if late and sum(late) / len(late) > MANY_CUT:
            yield f"{where}, {phase}: over {MANY_CUT:.0%} of replies are cut by max_new_tokens at the end"
        groups = sum(row.get("groups", 0) for row in rows)
        if groups and sum(row.get("groups_used", 0) for row in rows) < FEW_USED * groups:
            yield f"{where}, {phase}: under {FEW_USED:.0%} of the groups differ in reward and are learnt from"


main = command(ShowOptions, _show, program="shop-r1 curves")

if __name__ == "__main__":
    sys.exit(main())
