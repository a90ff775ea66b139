"""The lab's pictures, as PNG and SVG."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.patches import Patch

from benchmarks.studies.reward_hacking.arithmetic import (
    CODES,
    DARS,
    PRESETS,
    RIGHT,
    SCALES,
    THRESHOLDS,
    VOCABULARIES,
    Arithmetic,
)
from benchmarks.studies.reward_hacking.certainty import DEFINITIONS, PRIZES, compute_certainty, compute_gap
from benchmarks.studies.reward_hacking.disagreements import Disagreements
from benchmarks.studies.reward_hacking.earnings import StoreRecord
from benchmarks.studies.reward_hacking.trained import Trained
from shop_env.reward import REWARD_PRESETS
from train.show.drawing import WIDTH
from train.show.plot_style import COLOURS, plot_style, save_plot

BLUE, ORANGE, GREEN, _, YELLOW, SKY, BLACK = COLOURS[:7]
GREY = "#BBBBBB"
# Of different brightness too, for prints without colours.
ENDS = {
    "T": ("terminate", ORANGE),
    "G": ("its best guess at a click", BLUE),
    "Y": ("its best guess at a text", SKY),
    "I": ("an invented name", "#F0E442"),
    "F": ("the first element", GREEN),
    "M": ("between answers", GREY),
}
REWARDS = ("shop_r1", "no_dars", "binary_action", "binary", "customer_r1", "customer_r1_rl_only")
LINES = {
    "always_terminate": ORANGE,
    "first_element": GREEN,
    "invented_name": YELLOW,
    "copy_match": SKY,
    "oracle": BLUE,
}
SAMPLED = {
    "sampled_terminate": ("terminate", ORANGE),
    "sampled_click": ("click", BLUE),
    "sampled_type_and_submit": ("type_and_submit", SKY),
    "exact": ("exact match", GREEN),
    "groups_used": ("groups learnt from", BLACK),
}


def draw_all(
    store: StoreRecord,
    disagreements: Sequence[Disagreements],
    arithmetic: Arithmetic,
    trained: Trained | None,
    folder: Path,
) -> list[Path]:
    """Writes every picture as NAME.png and NAME.svg and returns the PNGs' paths."""
    pictures: dict[str, Callable[[], Figure]] = {
        "earned_and_worth": partial(_draw_earned, store),
        "disagreements": partial(_draw_disagreements, disagreements),
        "over_scale": partial(_draw_over_scale, store, arithmetic),
        "leaving": partial(_draw_regions, arithmetic),
        "certainty": _draw_certainty,
    }
    for number, mix in enumerate(dict.fromkeys(diagram.mix for diagram in arithmetic.diagrams), 1):
        pictures[f"ends_{number}"] = partial(_draw_diagrams, arithmetic, mix)
    if trained is not None:
        pictures["from_spam"] = partial(_draw_courses, trained)
    with plot_style():
        for name, draw in pictures.items():
            figure = draw()
            figure.draw_without_rendering()
            figure.set_layout_engine("none")  # it is laid out now, and need not be for each file again
            save_plot(figure, folder / f"{name}.svg", folder / f"{name}.png")
    return [folder / f"{name}.png" for name in pictures]


def _new_figure(height: float, title: str, legend: Mapping[str, str], caption: str = "") -> Figure:
    """A figure as wide as A4 with a title, a caption beneath it, and the meaning of each colour at its foot."""
    head = (0.45 if caption else 0.25) / height  # inches
    layout = ConstrainedLayoutEngine(rect=(0, 0, 1, 1 - head))
    figure = Figure(figsize=(WIDTH, height), layout=layout)
    figure.text(0.01, 1 - 0.06 / height, title, va="top", fontsize=10, weight="bold")
    figure.text(0.01, 1 - 0.27 / height, caption, va="top", fontsize=7.5, color="#444444")
    handles = [Patch(color=colour, label=label) for label, colour in legend.items()]
    figure.legend(handles=handles, loc="outside lower left", ncols=6, fontsize=7.5)
    return figure


def _panels(
    figure: Figure, rows: Sequence[str], columns: Sequence[str], xlabel: str
) -> Iterator[tuple[int, int, Axes]]:
    """Axes that share their scales: labels at the left of each row, titles above each column."""
    axes = figure.subplots(len(rows), len(columns), sharex=True, sharey=True, squeeze=False)
    for (row, column), axis in np.ndenumerate(axes):
        if row == 0:
            axis.set_title(columns[column], fontsize=8)
        if row == len(rows) - 1:
            axis.set_xlabel(xlabel)
        if column == 0:
            axis.set_ylabel(rows[row], fontsize=7.5)
        yield row, column, axis


def _draw_earned(store: StoreRecord) -> Figure:
    """A row for each policy, by exact accuracy: what it is worth, and what the reward pays it."""
    legend = {"exact accuracy": BLUE, "reward, of what replaying the log earns": ORANGE}
    figure = _new_figure(6.0, "What each policy earns, and what it is worth", legend)
    policies = sorted(store.earned, key=lambda row: (row.worth["exact_accuracy"].value, row.trivial))
    ys = np.arange(len(policies))
    worth = [100 * row.worth["exact_accuracy"].value for row in policies]
    for row, column, axis in _panels(figure, ["", ""], ["", "", ""], "%"):
        reward = REWARDS[3 * row + column]
        paid = [100 * (policy.paid[reward].of_best or 0.0) for policy in policies]
        axis.hlines(ys, worth, paid, color=GREY, linewidth=1.2)
        axis.scatter(worth, ys, 18, color=BLUE, marker="s", zorder=3)
        axis.scatter(paid, ys, 20, color=ORANGE, zorder=3, alpha=0.9)
        axis.set(title=reward, xlim=(-3, 100), yticks=ys)
        axis.set_yticklabels([policy.label for policy in policies], fontsize=6.5)
    return figure


def _draw_disagreements(disagreements: Sequence[Disagreements]) -> Figure:
    kinds = {"agrees": BLUE, "silent": "#DDDDDD", "blind": SKY, "unfounded": YELLOW, "opposite": ORANGE}
    figure = _new_figure(3.6, "Pairs of policies: does the reward put them in the order of their worth?", kinds)
    worths = {"exact_accuracy": "by exact accuracy", "type_f1_macro": "by macro-F1 of types"}
    for _, column, axis in _panels(figure, [""], list(worths.values()), "pairs"):
        rows = [row for row in disagreements if row.worth == list(worths)[column]][::-1]
        left = np.zeros(len(rows))
        for kind, colour in kinds.items():
            counts = np.array([row.pairs.get(kind, 0) for row in rows])
            bars = axis.barh([row.reward for row in rows], counts, left=left, color=colour, height=0.7)
            if kind == "opposite":
                axis.bar_label(bars, [str(count or "") for count in counts], fontsize=6.5, padding=1)
            left += counts
        axis.grid(axis="y", visible=False)
    return figure


def _draw_over_scale(store: StoreRecord, arithmetic: Arithmetic) -> Figure:
    lines = {label: colour for label, colour in LINES.items() if label in store.by_type}
    title = "What policies of this store earn of the log's reward, over DARS, τ and mixes of actions"
    figure = _new_figure(5.6, title, lines)
    mixes = [mix for mix in arithmetic.mixes if mix.name != "Shop-R1 train"]
    taus = (0.5, 0.75, 1.0)
    titles = [f"{mix.name} ({mix.terminate_share:.0%} terminate)" for mix in mixes]
    for row, column, axis in _panels(figure, [f"τ {tau:g}: % of the log's" for tau in taus], titles, "DARS"):
        for label, colour in lines.items():
            by_type = store.by_type[label][THRESHOLDS.index(taus[row])]
            shares = [100 * by_type.of_best(dars, mixes[column]) for dars in DARS]
            axis.plot(DARS, shares, "o-", color=colour, markersize=3, lw=1.2)
        axis.set(xscale="log", ylim=(-3, 100))
        axis.minorticks_off()
    return figure


def _draw_regions(arithmetic: Arithmetic) -> Figure:
    solid, dashed = RIGHT[0], RIGHT[2]
    legend = {
        f"paid most (solid p {solid:g}, dashed p {dashed:g})": BLUE,
        "GRPO's end, groups divided by their deviation": ORANGE,
        "right most often": GREEN,
    }
    title = "From which belief on terminating is optimal, is paid, and is where GRPO ends (τ 0.75)"
    figure = _new_figure(3.5, title, legend)
    shares = {mix.name: mix.terminate_share for mix in arithmetic.mixes}
    names = list(dict.fromkeys(region.mix for region in arithmetic.by_scale))
    titles = [f"{name} (dotted: {shares[name]:.0%} terminate)" for name in names]
    for _, column, axis in _panels(figure, ["belief that the shopper terminates"], titles, "DARS"):
        name = names[column]
        regions = [region for region in arithmetic.by_scale if (region.mix, region.threshold) == (name, 0.75)]
        for right, style in ((solid, "-"), (dashed, "--")):
            index = RIGHT.index(right)
            ends = [region.ends_from[index] for region in regions]
            axis.plot(DARS, [region.paid_from[index] for region in regions], style, marker="o", ms=3, color=BLUE)
            axis.plot(DARS, [1.0 if end is None else end for end in ends], style, marker="s", ms=3, color=ORANGE)
            axis.plot(DARS, [arithmetic.optimal_from[name][index]] * len(DARS), style, color=GREEN)
        axis.axhline(shares[name], color=BLACK, linewidth=0.7, linestyle=":")
        axis.set(xscale="log", ylim=(0, 1.03))
        axis.minorticks_off()
    return figure


def _draw_diagrams(arithmetic: Arithmetic, name: str) -> Figure:
    diagrams = {(row.reward, row.scale): row for row in arithmetic.diagrams if row.mix == name}
    used = {code for diagram in diagrams.values() for row in diagram.rows for code in row}
    codes = list(CODES.values())
    figure = _new_figure(
        5.0,
        f"Where GRPO ends, begun from 99% terminate (clicks and texts of {name})",
        {ENDS[code][0]: ENDS[code][1] for code in codes if code in used},
        "Right of the solid line terminating is right most often; dotted: the share of terminate actions in this log.",
    )
    share = next(mix.terminate_share for mix in arithmetic.mixes if mix.name == name)
    half = (arithmetic.grid[1] - arithmetic.grid[0]) / 2
    rows = [
        f"divided by {'the group’s deviation' if scale == 'group' else 'nothing'}\np: the best guess is right"
        for scale in SCALES
    ]
    titles = [preset.replace("_action_", "_action\n_").replace("1_rl", "1\n_rl") for preset in PRESETS]
    for row, column, axis in _panels(figure, rows, titles, "belief b: terminates"):
        axis.imshow(
            np.array([[codes.index(code) for code in line] for line in diagrams[PRESETS[column], SCALES[row]].rows]),
            origin="lower",
            cmap=ListedColormap([ENDS[code][1] for code in codes]),
            vmin=-0.5,
            vmax=len(codes) - 0.5,
            extent=(-half, 1 + half, -half, 1 + half),
            interpolation="nearest",
            aspect="auto",
        )
        axis.plot(arithmetic.optimal_on_grid[name], arithmetic.grid, color=BLACK, linewidth=1.1)
        axis.axvline(share, color=BLACK, linewidth=0.7, linestyle=":")
        axis.grid(visible=False)
        axis.set(xlim=(0, 1), ylim=(0, 1), xticks=[0, 0.5, 1], yticks=[0, 0.5, 1])
    return figure


def _draw_certainty() -> Figure:
    reward = REWARD_PRESETS["shop_r1"]
    colours: dict[str, str] = dict(zip(DEFINITIONS, (BLUE, ORANGE, GREEN), strict=True))
    small, large = VOCABULARIES
    caption = f"Solid: {large:,} tokens, dashed: {small:,}."
    title = "What self-certainty alone can pay: one token's logit above all others"
    figure = _new_figure(3.3, title, colours, caption)
    axis = figure.subplots()
    log_rest = -np.linspace(1e-3, 150, 3000)
    for definition in DEFINITIONS:
        for vocabulary, style in ((small, "--"), (large, "-")):
            paid = reward.self_certainty_weight * compute_certainty(log_rest, vocabulary, definition)
            axis.plot(compute_gap(log_rest, vocabulary), paid, style, color=colours[definition], linewidth=1.4)
    for field, name in PRIZES.items():
        points = getattr(reward, field)
        axis.axhline(points, color="#666666", linewidth=0.7, linestyle=":")
        axis.text(129, points + 0.008, name, ha="right", fontsize=7, color="#444444")
    axis.set(xlim=(0, 130), ylim=(-0.01, 0.62), xlabel="logit above all others", ylabel="α · s(r), points")
    return figure


def _draw_courses(trained: Trained) -> Figure:
    """What GRPO begun from spam samples: a row for each kind of spam, a column for each reward."""
    spams = list(dict.fromkeys(course.spam for course in trained.courses))
    rewards = list(dict.fromkeys(course.reward for course in trained.courses))
    figure = _new_figure(
        1.2 + 1.9 * len(spams),
        "What GRPO begun from spam samples",
        dict(SAMPLED.values()),
        "Shares of the sampled replies at each step; line: mean of the seeds, band: lowest to highest.",
    )
    for row, column, axis in _panels(figure, [f"{spam}\n%" for spam in spams], rewards, "step of GRPO"):
        key = (spams[row], rewards[column])
        courses = [course.figures for course in trained.courses if (course.spam, course.reward) == key]
        groups = np.maximum(np.array([course["groups"] for course in courses]), 1)
        for name, (_, colour) in SAMPLED.items():
            is_count = name == "groups_used"
            values = 100 * np.array([course[name] for course in courses]) / (groups if is_count else 1)
            steps = np.arange(1, values.shape[1] + 1)
            axis.plot(steps, values.mean(axis=0), "--" if is_count else "-", color=colour, linewidth=1.2)
            axis.fill_between(steps, values.min(axis=0), values.max(axis=0), color=colour, alpha=0.15, linewidth=0)
        axis.set(ylim=(-3, 103))
    return figure
