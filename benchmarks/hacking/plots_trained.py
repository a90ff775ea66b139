"""What was sampled while GRPO led away from spam, or did not: PNG and SVG."""

from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure

from benchmarks.hacking.plots import COLOURS, add_legend, new_figure, save
from benchmarks.hacking.trained import Trained
from train.show.drawing import STYLE

__all__ = ["draw"]

SHOWN = {"sampled_terminate": "terminate", "sampled_click": "click", "sampled_type_and_submit": "type_and_submit",
         "exact": "exact match", "learnt": "groups learnt from"}  # fmt: skip
ORDER = (1, 0, 5, 2, 6)  # of COLOURS


def draw(found: Trained, folder: Path) -> list[Path]:
    """One picture of all runs: a row for each kind of spam, a column for each reward."""
    with mpl.rc_context(STYLE):
        return [save(_figure(found), "from_spam", folder)]


def _figure(found: Trained) -> Figure:
    spams = list(dict.fromkeys(one.spam for one in found.courses))
    rewards = list(dict.fromkeys(one.reward for one in found.courses))
    seeds = len({one.seed for one in found.courses})
    figure = new_figure(
        1.2 + 1.9 * len(spams),
        "What GRPO begun from spam samples",
        "Shares of the sampled replies at each step"
        + (f"; line: mean of {seeds} seeds, band: lowest to highest." if seeds > 1 else ", one seed."),
    )
    axes = figure.subplots(len(spams), len(rewards), sharex=True, sharey=True, squeeze=False)
    for row, spam in enumerate(spams):
        for column, reward in enumerate(rewards):
            axis = axes[row, column]
            own = [one.figures for one in found.courses if (one.spam, one.reward) == (spam, reward)]
            for name, place in zip(SHOWN, ORDER, strict=True):
                values = 100 * np.array([_share(one, name) for one in own])
                steps = np.arange(1, values.shape[1] + 1)
                dashed = "--" if name == "learnt" else "-"
                axis.plot(steps, values.mean(axis=0), dashed, color=COLOURS[place], linewidth=1.2)
                axis.fill_between(
                    steps, values.min(axis=0), values.max(axis=0), color=COLOURS[place], alpha=0.15, linewidth=0
                )
            axis.set(ylim=(-3, 103))
            if row == 0:
                axis.set_title(reward)
            if row == len(spams) - 1:
                axis.set_xlabel("step of GRPO")
            if column == 0:
                axis.set_ylabel(f"{spam}\n%")
    add_legend(figure, {said: COLOURS[place] for said, place in zip(SHOWN.values(), ORDER, strict=True)})
    return figure


def _share(figures: dict[str, list[float]], name: str) -> list[float]:
    if name != "learnt":
        return figures[name]
    return [used / max(groups, 1) for used, groups in zip(figures["groups_used"], figures["groups"], strict=True)]
