"""The lab's pictures, PNG and SVG, by matplotlib; colours are Okabe and Ito's, which the colour-blind tell apart."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.patches import Patch

from benchmarks.hacking.certainty import DEFINITIONS, certainty, gap_of, prizes
from benchmarks.hacking.leaving import CODES, DARS, RIGHT, SCALES, THRESHOLDS, TOLD
from benchmarks.hacking.record import VOCABULARIES, Arithmetic, OfStore
from shop_env.reward import REWARD_PRESETS
from train.show.drawing import DOTS_PER_INCH, STYLE, WIDTH

__all__ = ["COLOURS", "add_legend", "draw_all", "new_figure", "save"]

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
# Dark to light too, for who sees no colours at all.
OF_CODE = {"T": "#D55E00", "G": "#0072B2", "Y": "#56B4E9", "I": "#F0E442", "F": "#009E73", "M": "#BBBBBB"}
IN_WORDS = {
    "T": "terminate",
    "G": "its best guess at a click",
    "Y": "its best guess at a text",
    "I": "an invented name",
    "F": "the first element",
    "M": "between answers",
}
SHOWN = ("shop_r1", "no_dars", "binary_action", "binary", "customer_r1", "customer_r1_rl_only")
TRIVIAL_LINES = ("always_terminate", "first_element", "invented_name", "copy_match", "oracle")


def draw_all(store: OfStore, found: Arithmetic, folder: Path) -> list[Path]:
    """Writes every picture and returns the PNGs' paths."""
    pictures: Mapping[str, Callable[[], Figure]] = {
        "earned_and_worth": lambda: _earned(store),
        "disagreements": lambda: _disagreements(store),
        "over_scale": lambda: _over_scale(store, found),
        "leaving": lambda: _leaving(found),
        **{
            f"ends_{number}": lambda mix=mix: _diagrams(found, mix)  # type: ignore[misc]
            for number, mix in enumerate(dict.fromkeys(one.mix for one in found.diagrams), 1)
        },
        "certainty": _certainty,
    }
    paths = []
    for name, draw in pictures.items():
        with mpl.rc_context(STYLE):
            paths.append(save(draw(), name, folder))
    return paths


def save(figure: Figure, name: str, folder: Path) -> Path:
    """Writes NAME.png and NAME.svg; returns the former's path."""
    figure.draw_without_rendering()
    figure.set_layout_engine("none")  # it is laid out now, and need not be for each file again
    for suffix in ("svg", "png"):
        figure.savefig(folder / f"{name}.{suffix}", metadata={"Date": None} if suffix == "svg" else None)
    return folder / f"{name}.png"


def new_figure(height: float, title: str, caption: str = "") -> Figure:
    """A figure as wide as A4 with a title, a line beneath it, and room for what is drawn."""
    head = (0.45 if caption else 0.25) / height  # inches
    layout = ConstrainedLayoutEngine(rect=(0, 0, 1, 1 - head))
    figure = Figure(figsize=(WIDTH, height), dpi=DOTS_PER_INCH, layout=layout)
    figure.text(0.01, 1 - 0.06 / height, title, va="top", fontsize=10, weight="bold")
    figure.text(0.01, 1 - 0.27 / height, caption, va="top", fontsize=7.5, color="#444444")
    return figure


def _earned(store: OfStore) -> Figure:
    """A row for each policy, by exact accuracy: what it is worth, and what the reward pays it."""
    figure = new_figure(6.0, "What each policy earns, and what it is worth")
    axes = figure.subplots(2, 3, sharex=True, sharey=True).flatten()
    policies = sorted(store.earned, key=lambda one: (one.worth["exact_accuracy"].value, one.trivial))
    places = np.arange(len(policies))
    worth = [100 * one.worth["exact_accuracy"].value for one in policies]
    for axis, reward in zip(axes, SHOWN, strict=True):
        paid = [100 * (one.paid[reward].of_best or 0.0) for one in policies]
        axis.hlines(places, worth, paid, color="#BBBBBB", linewidth=1.2)
        axis.scatter(worth, places, 18, color=COLOURS[0], marker="s", zorder=3)
        axis.scatter(paid, places, 20, color=COLOURS[1], zorder=3, alpha=0.9)
        axis.set(title=reward, xlim=(-3, 100), yticks=places)
        axis.set_yticklabels([one.label for one in policies], fontsize=6.5)
    for axis in axes[3:]:
        axis.set_xlabel("%")
    add_legend(figure, {"exact accuracy": COLOURS[0], "reward, of what replaying the log earns": COLOURS[1]})
    return figure


def _disagreements(store: OfStore) -> Figure:
    figure = new_figure(3.6, "Pairs of policies: does the reward put them in the order of their worth?")
    kinds = {
        "agrees": COLOURS[0],
        "silent": "#DDDDDD",
        "blind": COLOURS[5],
        "unfounded": COLOURS[4],
        "opposite": COLOURS[1],
    }
    axes = figure.subplots(1, 2, sharey=True)
    worths = {"exact_accuracy": "by exact accuracy", "type_f1_macro": "by macro-F1 of types"}
    for axis, (worth, said) in zip(axes, worths.items(), strict=True):
        rows = [one for one in store.disagreements if one.worth == worth][::-1]
        left = np.zeros(len(rows))
        for kind, colour in kinds.items():
            counts = np.array([one.pairs.get(kind, 0) for one in rows])
            bars = axis.barh([one.reward for one in rows], counts, left=left, color=colour, height=0.7)
            if kind == "opposite":
                axis.bar_label(bars, [str(count) if count else "" for count in counts], fontsize=6.5, padding=1)
            left += counts
        axis.set(title=said, xlabel="pairs")
        axis.grid(axis="y", visible=False)
    add_legend(figure, kinds)
    return figure


def _over_scale(store: OfStore, found: Arithmetic) -> Figure:
    figure = new_figure(5.6, "What policies of this store earn of the log's reward, over DARS, τ and mixes of actions")
    mixes = [mix for mix in found.mixes if mix.name != "Shop-R1 train"]
    taus = (0.5, 0.75, 1.0)
    axes = figure.subplots(len(taus), len(mixes), sharex=True, sharey=True, squeeze=False)
    shown = [label for label in TRIVIAL_LINES if label in store.by_type]
    for row, tau in enumerate(taus):
        for column, mix in enumerate(mixes):
            axis = axes[row, column]
            for label, colour in zip(shown, COLOURS[1:2] + COLOURS[2:3] + COLOURS[4:5] + COLOURS[5:6] + COLOURS[:1],
                                     strict=False):  # fmt: skip
                by_type = store.by_type[label][THRESHOLDS.index(tau)]
                axis.plot(
                    DARS, [100 * by_type.of_best(dars, mix) for dars in DARS], "o-", color=colour, markersize=3, lw=1.2
                )
            axis.set_xscale("log")
            axis.minorticks_off()
            axis.set_ylim(-3, 100)
            if row == 0:
                axis.set_title(f"{mix.name} ({100 * mix.leaving:.0f}% leave)")
            if column == 0:
                axis.set_ylabel(f"τ {tau:g}: % of the log's")
            if row == len(taus) - 1:
                axis.set_xlabel("DARS")
    add_legend(figure, dict(zip(shown, (COLOURS[1], COLOURS[2], COLOURS[4], COLOURS[5], COLOURS[0]), strict=False)))
    return figure


def _leaving(found: Arithmetic) -> Figure:
    figure = new_figure(3.5, "From which belief on leaving is worth it, is paid, and is where GRPO ends (τ 0.75)")
    mixes = list(dict.fromkeys(one.mix for one in found.by_scale))
    axes = figure.subplots(1, len(mixes), sharey=True)
    for axis, name in zip(axes, mixes, strict=True):
        own = [one for one in found.by_scale if (one.mix, one.threshold) == (name, 0.75)]
        for place, style in ((0, "-"), (2, "--")):
            axis.plot(DARS, [one.paid_from[place] for one in own], style, marker="o", ms=3, color=COLOURS[0])
            ends = [1.0 if one.leaves_from[place] is None else one.leaves_from[place] for one in own]
            axis.plot(DARS, ends, style, marker="s", ms=3, color=COLOURS[1])
            axis.plot(DARS, [found.worth_leaving_from[name][place]] * len(DARS), style, color=COLOURS[2])
        mix = next(one for one in found.mixes if one.name == name)
        axis.axhline(mix.leaving, color="#000000", linewidth=0.7, linestyle=":")
        axis.set_xscale("log")
        axis.minorticks_off()
        axis.set(ylim=(0, 1.03), xlabel="DARS", title=f"{name} (dotted: {100 * mix.leaving:.0f}% leave)")
    axes[0].set_ylabel("belief that the shopper leaves")
    solid, dashed = (f"p {RIGHT[place]:g}" for place in (0, 2))
    add_legend(
        figure,
        {
            f"paid most (solid {solid}, dashed {dashed})": COLOURS[0],
            "GRPO's end, groups divided by their deviation": COLOURS[1],
            "right most often": COLOURS[2],
        },
    )
    return figure


def _diagrams(found: Arithmetic, mix: str) -> Figure:
    own = {(one.reward, one.scale): one for one in found.diagrams if one.mix == mix}
    leaves = next(one for one in found.mixes if one.name == mix)
    figure = new_figure(
        5.0,
        f"Where GRPO ends, begun from 99% leaving (clicks and texts of {mix})",
        "Right of the solid line leaving is right most often; dotted: how many shoppers leave in this log.",
    )
    axes = figure.subplots(2, len(TOLD), sharex=True, sharey=True)
    colours = ListedColormap([OF_CODE[code] for code in CODES.values()])
    codes = list(CODES.values())
    for row, scale in enumerate(SCALES):
        for column, reward in enumerate(TOLD):
            axis: Axes = axes[row, column]
            cells = np.array([[codes.index(code) for code in line] for line in own[reward, scale].rows])
            half = (found.grid[1] - found.grid[0]) / 2
            axis.imshow(
                cells,
                origin="lower",
                cmap=colours,
                vmin=-0.5,
                vmax=len(codes) - 0.5,
                extent=(-half, 1 + half, -half, 1 + half),
                interpolation="nearest",
                aspect="auto",
            )
            axis.plot(found.worth_on_grid[mix], found.grid, color="#000000", linewidth=1.1)
            axis.axvline(leaves.leaving, color="#000000", linewidth=0.7, linestyle=":")
            axis.grid(visible=False)
            axis.set(xlim=(0, 1), ylim=(0, 1), xticks=[0, 0.5, 1], yticks=[0, 0.5, 1])
            if row == 0:
                axis.set_title(reward.replace("_action_", "_action\n_").replace("1_rl", "1\n_rl"), fontsize=7.5)
            if row == 1:
                axis.set_xlabel("belief b: leaves")
        said = "divided by the group's deviation" if scale == "group" else "divided by nothing"
        axes[row, 0].set_ylabel(f"{said}\np: the best guess is right", fontsize=7)
    present = {code for one in own.values() for line in one.rows for code in line}
    add_legend(figure, {IN_WORDS[code]: OF_CODE[code] for code in codes if code in present})
    return figure


def _certainty() -> Figure:
    reward = REWARD_PRESETS["shop_r1"]
    figure = new_figure(3.3, "What self-certainty alone can pay: one token's logit above all others")
    axis = figure.subplots()
    log_rest = -np.linspace(1e-3, 150, 3000)
    for definition, colour in zip(DEFINITIONS, COLOURS, strict=False):
        for vocabulary, style in zip(VOCABULARIES, ("--", "-"), strict=True):
            paid = reward.self_certainty_weight * certainty(log_rest, vocabulary, definition)
            axis.plot(gap_of(log_rest, vocabulary), paid, style, color=colour, linewidth=1.4)
    for name, points in prizes(reward).items():
        axis.axhline(points, color="#666666", linewidth=0.7, linestyle=":")
        axis.text(129, points + 0.008, name, ha="right", fontsize=7, color="#444444")
    axis.set(xlim=(0, 130), ylim=(-0.01, 0.62), xlabel="logit above all others", ylabel="α · s(r), points")
    solid, dashed = f"{VOCABULARIES[1]:,}", f"{VOCABULARIES[0]:,}"
    axis.set_title(f"solid: {solid} tokens, dashed: {dashed}", fontsize=7.5, weight="normal")
    add_legend(figure, dict(zip(DEFINITIONS, COLOURS, strict=False)))
    return figure


def add_legend(figure: Figure, colours: Mapping[str, str], columns: int = 6) -> None:
    """What each colour means, beneath the figure."""
    handles: Sequence[Patch] = [Patch(color=colour, label=label) for label, colour in colours.items()]
    figure.legend(handles=handles, loc="outside lower left", ncols=columns, frameon=False, fontsize=7.5)
